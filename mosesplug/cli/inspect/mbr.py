"""``mosesplug mbr``: choose translations by minimum Bayes risk."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.inputs import SCORES, WEIGHTS
from mosesplug.cli.shared.parameters import (
    THREADS,
    MetricSettings,
    Output,
    Quiet,
    SparseWeights,
    Threads,
)
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_list_parameters,
    print_formats,
    take_list_settings,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.text import StrPath
    from mosesplug.forest.mbr import Decision
    from mosesplug.metrics import Metric
    from mosesplug.results.choices.mbr import MbrTask
    from mosesplug.settings.lists import ListSettings
    from mosesplug.settings.scores import ScoreSource


def _mbr(
    graphs: Annotated[
        Path | None,
        typer.Argument(metavar="GRAPHS", help="Search graphs: a directory of them, or a file."),
    ] = None,
    nbest: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An n-best list instead of graphs.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The graphs of a run with --forest instead.")
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Iteration of --store [the newest with graphs]."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE|RUN", help="Weights, in any format [those of the input]."),
        WEIGHTS,
    ] = None,
    sparse_weights: SparseWeights = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=FILE",
            help="With --nbest: utilities from outside, such as COMET of all pairs.",
        ),
        SCORES,
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --nbest: maximize a metric, such as WER.",
            autocompletion=complete_metrics,
        ),
    ] = None,
    metric_settings: MetricSettings = "",
    list_mbr: Annotated[
        bool,
        typer.Option(
            "--list-mbr", help="Maximize expected BLEU+1 over a list (Kumar & Byrne 2004)."
        ),
    ] = False,
    lattice_mbr: Annotated[
        bool,
        typer.Option("--lattice-mbr", help="Maximize linear BLEU (Tromble et al. 2008)."),
    ] = False,
    scale: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Scale of the model scores.")
    ] = 1.0,
    size: Annotated[
        int, typer.Option(min=1, metavar="K", help="Translations of a graph to choose from.")
    ] = 200,
    precision: Annotated[
        float | None,
        typer.Option(metavar="P", help="With --lattice-mbr, unigram precision [0.8, as -lmbr-p]."),
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option(metavar="R", help="With --lattice-mbr, ratio of precisions [0.6, -lmbr-r]."),
    ] = None,
    beam: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="B", help="Prune edges of graphs by this beam [exact]."),
    ] = None,
    output: Output = None,
    threads: Threads = THREADS,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Choose translations by minimum Bayes risk or consensus.

    By default each of the best translations is compared, by BLEU, with the expected n-grams of the
    whole graph or list (DeNero et al. 2009, fast consensus decoding). The output has one
    translation a line, empty for a sentence without graph or list.

    Without --weights, graphs use the file "weights" beside them, a store those of the iteration,
    and lists their scores. The posterior is sharper with a larger --scale; normalized weights need
    more than 1. --beam B drops edges whose best derivation is less likely than the best by a factor
    of exp(B), for graphs that are too large.

    --scores takes the utility from another program. Each hypothesis has a line (or a row of a .npy
    array) with a number for each hypothesis of its sentence, its utility if that one is right; or
    with one number, its own. NAME=FILE:error: less is better. Lists without scores count all
    hypotheses alike, as --scale 0 does.

    --metric compares each hypothesis with each other one by a metric of sentences, as in minimum
    word error rate decoding (Stolcke et al. 1997): WER, CER, CHRF, TER, ...

    Examples: mosesplug mbr search-graphs/ --weights run1.dense --scale 20 -o translations;
    mosesplug mbr --nbest list --scores COMET=pairs.npy --scale 0 -o translations
    """
    settings = take_list_settings(given)
    _check_options(graphs, nbest, store, iteration, settings, list_mbr, lattice_mbr, beam)
    _check_finite(scale, "--scale")
    _check_finite(beam, "--beam")
    if not lattice_mbr and (precision is not None or ratio is not None):
        raise UsageError("--precision and --ratio require --lattice-mbr")
    if scores is not None and (nbest is None or list_mbr or lattice_mbr):
        raise UsageError("--scores requires --nbest, and excludes --list-mbr and --lattice-mbr")
    utility = _parse_utility(scores)
    if metric is not None and (nbest is None or list_mbr or lattice_mbr or scores is not None):
        raise UsageError(
            "--metric requires --nbest, and excludes --scores, --list-mbr and --lattice-mbr"
        )
    if metric_settings and metric is None:
        raise UsageError("--metric-settings requires --metric")
    inputs = [path for path in (graphs, nbest, store, sparse_weights) if path is not None]
    # Imported here, since --help needs none of it.
    from formats.pipes import copy_pipes
    from formats.weights.named import find_weight_files
    from mosesplug.cli.shared.output import check_output, progress_bar, write_output
    from mosesplug.forest.mbr import Criterion
    from mosesplug.learning.weights import find_graph_weights
    from mosesplug.metrics.linear_bleu import LinearBleu
    from mosesplug.results.choices.mbr import decide_translations
    from mosesplug.results.views.texts import format_translations

    inputs += [*settings.input_paths, *([] if weights is None else find_weight_files(weights))]
    if graphs is not None and (beside := find_graph_weights([graphs])) is not None:
        inputs.append(beside)
    check_output(output, inputs=[*inputs, *(utility.paths if utility is not None else ())])
    began = time.perf_counter()
    criterion = Criterion(
        "list" if list_mbr else "lattice" if lattice_mbr else "consensus",
        scale,
        size,
        beam,
        LinearBleu.of_precisions(
            _check_share(precision, 0.8, "--precision"), _check_share(ratio, 0.6, "--ratio")
        ),
    )
    lists = None if nbest is None else copy_pipes([nbest])[0]
    if lists is not None:
        print_formats([lists], settings, quiet=quiet)
    compared = None if metric is None else _find_utility(metric, metric_settings)
    tasks = _read_tasks(
        graphs, lists, store, iteration, weights, sparse_weights, settings, utility, compared
    )
    decisions: dict[int, Decision] = {}
    with progress_bar(quiet) as progress:
        for sentence, decision in decide_translations(tasks, criterion, threads):
            decisions[sentence] = decision
            progress(len(decisions), len(decisions), "sentences")
    texts = {sentence: b" ".join(each.words) for sentence, each in decisions.items()}
    write_output(output, format_translations(texts))
    if not quiet:
        _report(decisions, time.perf_counter() - began)


def _check_options(
    graphs: Path | None,
    nbest: Path | None,
    store: Path | None,
    iteration: int | None,
    settings: ListSettings,
    list_mbr: bool,
    lattice_mbr: bool,
    beam: float | None,
) -> None:
    """Reject options that exclude each other."""
    sources = [given for given in (graphs, nbest, store) if given is not None]
    if len(sources) > 1:
        raise UsageError("GRAPHS, --nbest and --store exclude each other")
    if list_mbr and lattice_mbr:
        raise UsageError("--list-mbr and --lattice-mbr exclude each other")
    if iteration is not None and store is None:
        raise UsageError("--iteration requires --store")
    if nbest is None and (option := settings.first_given) is not None:
        raise UsageError(f"--{option} requires --nbest")
    if beam is not None and (nbest is not None or list_mbr):
        raise UsageError("--beam prunes graphs: it cannot be used with --nbest or --list-mbr")


def _parse_utility(text: str | None) -> ScoreSource | None:
    """Return the file of utilities that ``--scores`` names."""
    from mosesplug.settings.scores import parse_score_sources

    if text is None:
        return None
    (found,) = parse_score_sources([text])
    if len(found.paths) != 1 or found.formula is not None:
        raise UsageError(f"--scores={text}: mbr takes NAME=FILE or NAME=FILE:error, one file")
    return found


def _find_utility(name: str, settings: str) -> Metric:
    """Return the metric of ``--metric``."""
    from mosesplug.metrics.registry import metric
    from mosesplug.results.choices.mbr import check_utility

    found = metric(name, settings)
    check_utility(found)
    return found


def _check_finite(value: float | None, option: str) -> None:
    if value is not None and not math.isfinite(value):
        raise UsageError(f"{option}={value:g}: it must be a finite number")


def _check_share(value: float | None, default: float, option: str) -> float:
    """Return a number above 0 and at most 1."""
    if value is None:
        return default
    if not 0.0 < value <= 1.0:
        raise UsageError(f"{option}={value:g}: it must be above 0, and 1 at most")
    return value


def _read_tasks(
    graphs: Path | None,
    nbest: StrPath | None,
    store: Path | None,
    iteration: int | None,
    weights: str | None,
    sparse: Path | None,
    settings: ListSettings,
    utility: ScoreSource | None,
    metric: Metric | None,
) -> Iterator[MbrTask]:
    from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
    from mosesplug.results.choices.mbr import read_graph_tasks, read_list_tasks
    from mosesplug.results.views.stored_graphs import read_stored_graphs
    from mosesplug.results.weights.sources import read_weights_of

    if sparse is not None and weights is None:
        raise UsageError("--sparse-weights requires --weights")
    file = read_weights_of(weights, sparse)
    if nbest is not None:
        return read_list_tasks(nbest, settings, file, utility, metric)
    if store is not None:
        known = None if file is None else read_graph_weights(file, [])
        return read_graph_tasks(read_stored_graphs(store, known, iteration))
    if graphs is None:
        raise UsageError("there is no input: give GRAPHS, --nbest FILE or --store DIR")
    known = read_graph_weights(file, [graphs])
    if known is None:
        place = graphs if graphs.is_dir() else graphs.parent
        raise UsageError(f"there is no file {place / 'weights'}: give --weights FILE")
    return read_graph_tasks(read_weighted_graphs([graphs], known))


def _report(decisions: dict[int, Decision], seconds: float) -> None:
    other = sum(not decision.is_best for decision in decisions.values())
    print(
        f"{len(decisions)} sentences, {other} not the model's best, {seconds:.1f} s",
        file=sys.stderr,
    )
    missing = sorted(set(range(max(decisions, default=-1) + 1)) - decisions.keys())
    if missing:
        print(
            f"{len(missing)} sentences have no graph or list, the first is {missing[0]}: their "
            "lines are empty",
            file=sys.stderr,
        )


mbr = add_parameters(_mbr, make_list_parameters(without=["scores", "ids"]))
