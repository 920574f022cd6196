"""``mosesplug oracle``: the best translations in n-best lists.

Several methods find them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from mosesplug.cli.shared.inputs import OUTPUT
from mosesplug.cli.shared.parameters import (
    THREADS,
    Json,
    ListReferences,
    Lists,
    ListWeights,
    MetricName,
    MetricSettings,
    Quiet,
    Seed,
    SparseWeights,
)
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_list_parameters,
    print_formats,
    take_list_settings,
)
from mosesplug.errors import UsageError, count_noun

if TYPE_CHECKING:
    from mosesplug.results.choices.oracle_lists import ListOracle, OracleLists, RankedLists
    from mosesplug.results.choices.oracles import OracleComparison, OracleMethod, OracleSettings


def _oracle(
    places: Lists,
    refs: ListReferences = None,
    method: Annotated[
        str, typer.Option(metavar="METHOD,...", help="Methods, comma-separated, or all.")
    ] = "sentence,greedy",
    top: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Sizes: the first N of each list, or all [all]."),
    ] = None,
    weights: ListWeights = None,
    sparse_weights: SparseWeights = None,
    seed: Seed = 1,
    restarts: Annotated[
        int, typer.Option(min=1, metavar="N", help="greedy: random starts; the best counts.")
    ] = 3,
    smoothing: Annotated[
        Literal["lin-och", "moses", "nakov"],
        typer.Option(metavar="lin-och|moses|nakov", help="sentence: BLEU of a sentence."),
    ] = "lin-och",
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Sentences of a mini-batch.")] = 16,
    decay: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, metavar="X", help="background: its decay at each sentence."),
    ] = 0.999,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the best method's translations."
        ),
        OUTPUT,
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write its sentence ids, ranks and ties, tab-separated."),
        OUTPUT,
    ] = None,
    metric: MetricName = None,
    metric_settings: MetricSettings = "",
    json: Json = False,
    quiet: Quiet = False,
    **given_settings: Any,
) -> None:
    """Find and score the oracle translations of n-best lists.

    Prints the corpus score of the first of each list, and that of the oracle by each method:
    sentence (the best of each sentence by a smoothed BLEU), greedy (for the corpus score), batch
    (for that of each mini-batch), pseudo-corpus and background (of each sentence in the context of
    earlier choices).

    Lists are ranked by --weights, else by the result of a run, else in the order of the files.
    Merged lists hold every hypothesis once. --output and --rows are those of the method with the
    highest score, in the longest lists.

    Examples: mosesplug oracle tuning --top 1,10,100,all; mosesplug oracle run7.best100.out.gz
    --refs dev.en --method all -o oracle.en; mosesplug oracle list --scores COMET=comet.txt
    """
    from formats.pipes import copy_pipes
    from formats.references import reference_files
    from formats.text import write_atomic
    from formats.weights.named import find_weight_files
    from mosesplug.cli.shared.output import (
        check_output,
        check_two_outputs,
        print_json,
        print_warnings,
        progress_bar,
    )
    from mosesplug.results.choices.oracle_lists import open_oracle_lists, rank_lists
    from mosesplug.results.choices.oracles import OracleSettings, compare_oracles
    from mosesplug.results.weights.sources import read_weights_of

    methods, sizes = _parse_methods(method), _parse_sizes(top)
    settings = OracleSettings(restarts, smoothing, batch, decay)
    if sparse_weights is not None and weights is None:
        raise UsageError("--sparse-weights requires --weights")
    if not quiet:
        print_warnings(_warn_of_unused(settings, OracleSettings(), methods))
    list_options = take_list_settings(given_settings)
    inputs = [*places, *([] if weights is None else find_weight_files(weights))]
    inputs += [] if sparse_weights is None else [sparse_weights]
    inputs += [*list_options.input_paths, *([] if refs is None else reference_files(refs))]
    check_output(output, inputs=inputs)
    check_output(rows, "--rows", inputs)
    check_two_outputs({"--output": output, "--rows": rows})
    lists = copy_pipes(places)
    files = [path for path in lists if not Path(path).is_dir()]
    print_formats(files, list_options, quiet=quiet or json)
    with (
        progress_bar(quiet or json) as progress,
        open_oracle_lists(
            lists,
            refs,
            metric=metric,
            metric_settings=metric_settings,
            settings=list_options,
            weights=read_weights_of(weights, sparse_weights),
            threads=THREADS,
            progress=progress,
        ) as given,
    ):
        print_warnings(given.warnings)
        ranked = rank_lists(given.lists, given.scores)
        found = compare_oracles(ranked, given.metric, methods, sizes, seed, settings, progress)
        if output is not None:
            texts = given.read_texts(found.longest, found.best)
            write_atomic(output, b"".join(text + b"\n" for text in texts))
        if rows is not None:
            write_atomic(rows, _format_rows(given, found.longest, found.best))
    n_sentences, n_hypotheses = len(ranked.first_rows), given.lists.n_hyps
    if json:
        print_json(
            {
                "signature": given.signature,
                "sentences": n_sentences,
                "hypotheses": n_hypotheses,
                "first": found.first_best,
                "settings": {"seed": seed, **asdict(settings)},
                "oracles": [
                    {
                        "method": name,
                        "top": size,
                        "score": each.score,
                        "scores": each.scores,
                        "hypotheses_as_good": int(each.equals.sum()),
                    }
                    for (name, size), each in found.oracles.items()
                ],
            }
        )
        return
    from mosesplug.metrics.error_rates import explain_shown_scores

    signature = explain_shown_scores(given.signature)
    hypotheses = count_noun(n_hypotheses, "distinct hypothesis")
    print(f"{count_noun(n_sentences, 'sentence')}, {hypotheses}\n{signature}\n")
    _print(found, methods, sizes, given.signature)


def _warn_of_unused(
    settings: OracleSettings, default: OracleSettings, methods: list[OracleMethod]
) -> list[str]:
    """Return warnings of settings that none of the methods uses."""
    users: dict[str, set[OracleMethod]] = {
        "restarts": {"greedy"},
        "smoothing": {"sentence"},
        "batch": {"batch", "pseudo-corpus", "background"},
        "decay": {"background"},
    }
    return [
        f"--{name} has no effect without --method {' or '.join(sorted(own))}"
        for name, own in users.items()
        if getattr(settings, name) != getattr(default, name) and not own.intersection(methods)
    ]


def _parse_methods(text: str) -> list[OracleMethod]:
    """Return the methods of ``--method``, each once."""
    from mosesplug.results.choices.oracles import METHODS

    wanted = list(dict.fromkeys(text.split(","))) if text != "all" else list(METHODS)
    if unknown := [each for each in wanted if each not in METHODS]:
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


def _format_rows(given: OracleLists, ranked: RankedLists, oracle: ListOracle) -> bytes:
    lines = ["sentence\trank\tequals"]
    for (sentence, row), equals in zip(
        ranked.pair_rows(oracle), oracle.equals.tolist(), strict=True
    ):
        rank = row - int(ranked.lists.offsets[sentence]) + 1
        lines.append(f"{given.name_sentence(sentence)}\t{rank}\t{equals}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def _print(
    found: OracleComparison,
    methods: list[OracleMethod],
    sizes: list[int | None],
    signature: str,
) -> None:
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.metrics.error_rates import display_score
    from mosesplug.results.render.tables import format_score

    head = ("oracle", *("all" if size is None else f"first {size}" for size in sizes))
    rows = [
        ("(first best)", *[format_score(display_score(signature, found.first_best))] * len(sizes))
    ]
    rows += [
        (
            each,
            *(
                format_score(display_score(signature, found.oracles[each, size].score))
                for size in sizes
            ),
        )
        for each in methods
    ]
    print_table(head, rows, left=1)


oracle = add_parameters(_oracle, make_list_parameters())
