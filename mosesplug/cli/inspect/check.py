"""``mosesplug check``: what to know of data before tuning."""

from __future__ import annotations

from dataclasses import asdict

from mosesplug.api.checking import check as check_data
from mosesplug.cli.inspect.score_options import CheckCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_blocks
from mosesplug.errors import DataError, spell_option
from mosesplug.metrics import metric as find_metric
from mosesplug.results.checking import NO_WARNINGS


def check(options: CheckCommand) -> None:
    """Check a tuning set and its lists before tuning."""
    report = check_data(
        options.source,
        options.references,
        nbest=options.nbest or None,
        phrase_table=options.phrase_table,
        train=options.train,
        test=options.test,
        metric=find_metric(options.metric, options.metric_settings),
    ).spell(spell_option)
    is_text = current_layout() is TableLayout.TEXT
    if options.json:
        warnings = [{"name": sign.name, "message": sign.message} for sign in report.signs]
        texts = [asdict(text) for text in report.texts]
        print_json({"texts": texts, "facts": dict(report.facts), "warnings": warnings})
    else:
        for place, table in enumerate(report.tabulate()):
            print_blocks(["", table] if is_text and place else [table])
        if is_text and not report.signs:
            print(f"\n{NO_WARNINGS}")
    if options.strict and report.signs:
        names = ", ".join(dict.fromkeys(sign.name for sign in report.signs))
        raise DataError(f"--strict: {names}; see the warnings")
