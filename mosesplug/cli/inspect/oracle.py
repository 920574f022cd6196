"""``mosesplug oracle``: the best translations in n-best lists, by several methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from formats.pipes import wrap_files
from formats.references import reference_files
from formats.text import write_atomic
from formats.weights.named import find_weight_files
from mosesplug.cli.inspect.list_options import OracleCommand
from mosesplug.cli.shared.output import (
    check_output,
    check_two_outputs,
    print_formats,
    print_warnings,
    progress_bar,
)
from mosesplug.cli.shared.parameters import THREADS
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.results.choices.oracle_lists import (
    ListOracle,
    OracleLists,
    RankedLists,
    open_oracle_lists,
    rank_lists,
)
from mosesplug.results.choices.oracles import (
    METHODS,
    OracleMethod,
    OracleReport,
    OracleSettings,
    compare_oracles,
)
from mosesplug.results.weights.sources import read_weights_of


def oracle(options: OracleCommand) -> None:
    """Find and score the oracle translations of n-best lists."""
    methods, sizes = _parse_methods(options.method), _parse_sizes(options.top)
    settings = OracleSettings(options.restarts, options.smoothing, options.batch, options.decay)
    if not options.quiet:
        print_warnings(_warn_of_unused(settings, methods))
    inputs = _find_inputs(options)
    check_output(options.output, inputs=inputs)
    check_output(options.rows, "--rows", inputs)
    check_two_outputs({"--output": options.output, "--rows": options.rows})
    lists = wrap_files(options.places)
    files = [path for path in lists if not Path(path).is_dir()]
    print_formats(files, options.settings, quiet=options.quiet or options.json)
    with (
        progress_bar(options.quiet or options.json) as progress,
        open_oracle_lists(
            lists,
            options.refs,
            metric=options.metric,
            metric_settings=options.metric_settings,
            settings=options.settings,
            weights=read_weights_of(options.weights, options.sparse_weights),
            threads=THREADS,
            progress=progress,
        ) as opened,
    ):
        print_warnings(opened.warnings)
        ranked = rank_lists(opened.lists, opened.scores)
        comparison = compare_oracles(
            ranked, opened.metric, methods, sizes, options.seed, settings, progress
        )
        longest, best = comparison.longest, comparison.best
        if options.output is not None:
            texts = opened.read_texts(longest, best)
            write_atomic(options.output, b"".join(text + b"\n" for text in texts))
        if options.rows is not None:
            write_atomic(options.rows, _format_rows(opened, longest, best))
    print_record(
        OracleReport(
            opened.signature,
            len(ranked.first_rows),
            opened.lists.n_hyps,
            comparison.first_best,
            {"seed": options.seed, **asdict(settings)},
            comparison.list_oracles(),
        )
    )


def _find_inputs(options: OracleCommand) -> list[Path]:
    inputs = [
        *options.places,
        *([] if options.weights is None else find_weight_files(options.weights)),
    ]
    inputs += [] if options.sparse_weights is None else [options.sparse_weights]
    inputs += options.settings.input_paths
    return inputs + ([] if options.refs is None else reference_files(options.refs))


def _warn_of_unused(settings: OracleSettings, methods: Sequence[OracleMethod]) -> list[str]:
    """Return warnings of settings that none of the methods uses."""
    users: dict[str, set[OracleMethod]] = {
        "restarts": {"greedy"},
        "smoothing": {"sentence"},
        "batch": {"batch", "pseudo-corpus", "background"},
        "decay": {"background"},
    }
    default = OracleSettings()
    return [
        f"--{name} has no effect without --method {' or '.join(sorted(own))}"
        for name, own in users.items()
        if getattr(settings, name) != getattr(default, name) and not own.intersection(methods)
    ]


def _parse_methods(text: str) -> list[OracleMethod]:
    """Return the methods of ``--method``, each once."""
    wanted = list(dict.fromkeys(text.split(","))) if text != "all" else list(METHODS)
    if unknown := [method for method in wanted if method not in METHODS]:
        raise UsageError(f"--method takes {', '.join(METHODS)}, or all, not {unknown[0]!r}")
    return cast("list[OracleMethod]", wanted)


def _parse_sizes(text: str | None) -> list[int | None]:
    """Return the list sizes of ``--top``, each once; None for whole lists."""
    sizes: dict[int | None, None] = {}
    for word in (text or "all").split(","):
        if word != "all" and not (word.isdecimal() and int(word)):
            raise UsageError(f"--top takes numbers from 1, and all, not {word!r}")
        sizes[None if word == "all" else int(word)] = None
    return list(sizes)


def _format_rows(opened: OracleLists, ranked: RankedLists, oracle: ListOracle) -> bytes:
    lines = ["sentence\trank\tequals"]
    rows = zip(ranked.pair_rows(oracle), oracle.equals.tolist(), strict=True)
    for (sentence, row), equals in rows:
        rank = row - int(ranked.lists.offsets[sentence]) + 1
        lines.append(f"{opened.name_sentence(sentence)}\t{rank}\t{equals}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")
