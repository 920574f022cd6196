"""``mosesplug oracle``: the best translations that n-best lists could give, by several methods."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from mosesplug.cli.shared.parameters import Json, Lists, MetricName, MetricSettings
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosesplug.inspection.oracles import Method, Oracle, OracleSettings, Ranked
    from mosesplug.metrics import Metric
    from mosesplug.optimizers import Progress
    from mosesplug.store import NBestStore
    from mosesplug.tuning_set import TuningSet

__all__ = ["oracle"]

_DEFAULT = "sentence,greedy"


def oracle(
    places: Lists,
    refs: Annotated[
        Path | None, typer.Option(help="The reference; or the prefix of several: REFS0, ...")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD,...",
            help="sentence: the best of each sentence by itself, by a smoothed BLEU; greedy: for "
            "the corpus score of all; batch: for that of each mini-batch; pseudo-corpus, "
            "background: of each sentence beside what was chosen for others before; or all.",
        ),
    ] = _DEFAULT,
    top: Annotated[
        str | None,
        typer.Option(
            metavar="N,...", help="Only the first N of each list are allowed; all for all [all]."
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rank the lists by these: moses.ini, runN.dense, ... [of a store, by the run's "
            "result; else in the order of the files].",
        ),
    ] = None,
    sparse_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of sparse features, name value a line.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of all random choices.")] = 1,
    restarts: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of greedy: first choices; the best counts.")
    ] = 3,
    smoothing: Annotated[
        Literal["lin-och", "moses", "nakov"],
        typer.Option(metavar="lin-och|moses|nakov", help="Of sentence: which BLEU of a sentence."),
    ] = "lin-och",
    batch: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Of batch, pseudo-corpus, background: sentences at a time."
        ),
    ] = 16,
    decay: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="X", help="Of background: kept of it at each sentence."
        ),
    ] = 0.999,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the translations of the method that scores highest, of the longest lists "
            "asked for, one a line; a sentence without a list has an empty one.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write its sentences, ranks (from 1) and numbers of equals, tab-separated.",
        ),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    metric: MetricName = None,
    metric_settings: MetricSettings = "",
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the table only.")] = False,
) -> None:
    """How good the translations out of n-best lists could be, and which they are.

    Prints the corpus score of the first of each list and of the oracle by each method: whatever a
    method looks at, its whole choice is scored as one corpus. "greedy" repeats the search from
    --restarts random choices; the differences are told by --json. Merged lists hold every
    hypothesis once, those of the first file first.

    Examples: mosesplug oracle tuning --top 1,10,100,all; mosesplug oracle run7.best100.out.gz
    --refs dev.en --method all -o oracle.en
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.evaluation.error_rates import explain_signature
    from mosesplug.inspection.oracles import OracleSettings, find_oracle, ranked

    methods, tops = _methods(method), _tops(top)
    settings = OracleSettings(restarts, smoothing, batch, decay)
    if sparse_weights is not None and weights is None:
        raise UsageError("--sparse-weights needs the dense weights too: give them by --weights")
    if not quiet:
        for said in _idle(settings, OracleSettings(), methods):
            print(f"warning: {said}", file=sys.stderr)
    for path in (*places, weights, sparse_weights):
        if path is not None:
            path.stat()
    with progress_bar(quiet or json) as told:
        source = _Source(places, refs, metric, metric_settings, names)
        with _opened(source, weights, sparse_weights, told) as given:
            lists = ranked(given.lists, given.scores)
            found: dict[tuple[Method, int | None], Oracle] = {}
            for number, count in enumerate(tops):
                part = lists.first(count).lists
                for place, each in enumerate(methods):
                    told(number * len(methods) + place, len(tops) * len(methods), each)
                    found[each, count] = find_oracle(each, part, given.metric, seed, settings)
            longest = max(tops, key=lambda count: float("inf") if count is None else count)
            best = max(methods, key=lambda each: found[each, longest].score)
            chosen = lists.first(longest)
            if output is not None:
                _write_texts(output, given, chosen, found[best, longest])
            if rows is not None:
                _write_rows(rows, chosen, found[best, longest])
        first = float(given.metric.score(lists.lists.stats[lists.firsts].sum(axis=0, dtype=float)))
    if json:
        print_json(
            {
                "signature": given.signature,
                "sentences": len(lists.firsts),
                "hypotheses": given.lists.n_hyps,
                "first": first,
                "settings": {"seed": seed, **asdict(settings)},
                "oracles": [_record(*key, oracle) for key, oracle in found.items()],
            }
        )
        return
    print(
        f"{len(lists.firsts)} sentences, {given.lists.n_hyps} distinct hypotheses\n"
        f"{explain_signature(given.signature)}\n"
    )
    heads = ["all" if count is None else f"first {count}" for count in tops]
    table = [(each, *(f"{found[each, count].score:.4f}" for count in tops)) for each in methods]
    print_table(
        ("oracle", *heads), [("(first best)", *[f"{first:.4f}"] * len(tops)), *table], left=1
    )


@dataclass(frozen=True)
class _Source:
    """Where the lists are, as the command line says it."""

    places: Sequence[Path]
    references: Path | None
    metric: str | None
    settings: str
    names: str | None


@dataclass(frozen=True)
class _Given:
    """Lists, with what scores them.

    Attributes:
        store: that has the texts.
        lists: all of them, merged.
        metric: whose statistics they have.
        signature: of that.
        scores: of the model, float64 ``[n_hyps]``, or None.
    """

    store: NBestStore
    lists: TuningSet
    metric: Metric
    signature: str
    scores: NDArray[np.float64] | None

    def text(self, sentence: int, row: int) -> bytes:
        """Of a hypothesis, by its place in the merged lists."""
        return self.store.hypotheses(sentence)[row - int(self.lists.offsets[sentence])]


@contextmanager
def _opened(
    source: _Source, weights: Path | None, sparse: Path | None, told: Progress
) -> Iterator[_Given]:
    """The lists of a store, or of files."""
    from mosesplug.learning.weights import read_starting_weights

    if len(source.places) == 1 and source.places[0].is_dir():
        from mosesplug.inspection.run import open_run
        from mosesplug.learning.data import read_data
        from mosesplug.settings.learning import LearningSettings

        if source.names is not None:
            raise UsageError("--names belongs to n-best lists: a store has its names")
        settings = LearningSettings(
            store=source.places[0],
            metric=source.metric,
            metric_settings=source.settings,
            references=source.references,
        )
        made = read_data(settings, told)
        lists = made.problem.tuning_set
        with open_run(source.places[0], with_lists=True) as run:
            vector = run.vector
            if weights is not None:
                vector = read_starting_weights(lists.space, weights, sparse).weights
            yield _Given(
                run.store, lists, made.problem.metric, made.signature, lists.model_scores(vector)
            )
        return
    if source.references is None:
        raise UsageError("no reference is given: use --refs FILE")

    from mosesplug.learning.lists import list_dense_features, store_lists
    from mosesplug.metrics import metric as find_metric

    measure = find_metric(source.metric or "BLEU", source.settings)
    names = None if source.names is None else [name.strip() for name in source.names.split(",")]
    with store_lists(
        source.places,
        source.references,
        measure,
        names=names,
        dense=list_dense_features(source.places, None),
        threads=os.cpu_count() or 1,
        loaded=lambda done: told(done, len(source.places), "lists"),
    ) as stored:
        lists, scores = stored.store.tuning_set(), None
        if weights is not None:
            scores = lists.model_scores(read_starting_weights(lists.space, weights, sparse).weights)
        yield _Given(stored.store, lists, measure, stored.signature, scores)


def _idle(settings: OracleSettings, default: OracleSettings, methods: list[Method]) -> list[str]:
    """What is said of settings that none of the methods looks at."""
    readers: dict[str, set[Method]] = {
        "restarts": {"greedy"},
        "smoothing": {"sentence"},
        "batch": {"batch", "pseudo-corpus", "background"},
        "decay": {"background"},
    }
    return [
        f"--{name} does nothing but with --method {' or '.join(sorted(own))}"
        for name, own in readers.items()
        if getattr(settings, name) != getattr(default, name) and not own.intersection(methods)
    ]


def _methods(text: str) -> list[Method]:
    """The methods that ``--method`` names, each once."""
    from mosesplug.inspection.oracles import METHODS

    wanted = list(dict.fromkeys(text.split(","))) if text != "all" else list(METHODS)
    if unknown := [each for each in wanted if each not in METHODS]:
        raise UsageError(f"--method takes {', '.join(METHODS)}, or all, not {unknown[0]!r}")
    return cast("list[Method]", wanted)


def _tops(text: str | None) -> list[int | None]:
    """The list sizes that ``--top`` names, each once; None for all."""
    found: dict[int | None, None] = {}
    for word in (text or "all").split(","):
        if word != "all" and not (word.isdecimal() and int(word)):
            raise UsageError(f"--top takes numbers from 1, and all, not {word!r}")
        found[None if word == "all" else int(word)] = None
    return list(found)


def _record(method: Method, count: int | None, oracle: Oracle) -> dict[str, Any]:
    return {
        "method": method,
        "top": count,
        "score": oracle.score,
        "scores": list(oracle.scores),
        "hypotheses_as_good": int(oracle.equals.sum()),
    }


def _write_texts(path: Path, given: _Given, lists: Ranked, oracle: Oracle) -> None:
    from formats.text import write_atomic

    lines = [b""] * given.lists.n_sentences
    for sentence, row in _sentences_of(lists, oracle):
        lines[sentence] = given.text(sentence, int(lists.rows[row]))
    write_atomic(path, b"".join(line + b"\n" for line in lines))


def _write_rows(path: Path, lists: Ranked, oracle: Oracle) -> None:
    from formats.text import write_atomic

    found = zip(_sentences_of(lists, oracle), oracle.equals.tolist(), strict=True)
    lines = ["sentence\trank\tequals"]
    for (sentence, row), equals in found:
        rank = row - int(lists.lists.offsets[sentence]) + 1
        lines.append(f"{lists.lists.sentence_ids[sentence]}\t{rank}\t{equals}")
    write_atomic(path, "".join(line + "\n" for line in lines).encode())


def _sentences_of(lists: Ranked, oracle: Oracle) -> Iterator[tuple[int, int]]:
    """Each sentence that has hypotheses, with the row that was chosen."""
    import numpy as np

    filled = np.flatnonzero(np.diff(lists.lists.offsets) > 0)
    return zip(filled.tolist(), oracle.rows.tolist(), strict=True)
