"""``mosesplug check``: what to know of data before tuning."""

from __future__ import annotations

from mosesplug.api.checking import check as check_data
from mosesplug.cli.inspect.score_options import CheckCommand
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import DataError, spell_option
from mosesplug.metrics import metric as find_metric


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
    print_record(report)
    if options.strict and report.signs:
        names = ", ".join(dict.fromkeys(sign.name for sign in report.signs))
        raise DataError(f"--strict: {names}; see the warnings")
