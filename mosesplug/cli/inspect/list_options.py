"""Options of the commands that choose hypotheses; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from mosesplug.cli.shared.commands import NestedSettings, list_setting_options
from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.parameters import (
    THREADS,
    GraphSparse,
    GraphWeights,
    Json,
    ListReferences,
    Lists,
    ListWeights,
    MetricName,
    MetricSettings,
    Output,
    Quiet,
    References,
    Seed,
    SentenceIdsOfLines,
    SparseWeights,
    Threads,
)
from mosesplug.options import Opt, list_options
from mosesplug.settings.lists import NO_SETTINGS, ListSettings, make_list_settings
from mosesplug.settings.scores.commands import ScoreCommands


def list_settings(without: Collection[str] = ()) -> NestedSettings:
    """Return the options of reading n-best lists, except some."""
    return NestedSettings(list_setting_options(without), make_list_settings, has_panels=False)


SCORE_COMMANDS = tuple(option.name for option in list_options(ScoreCommands))
"""Options of commands that score hypotheses."""
_FILES_OF_SCORES = ("scores", "ids")
_OWN_SCORES = (*_FILES_OF_SCORES, *SCORE_COMMANDS)


@dataclass(frozen=True)
class OracleCommand:
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

    places: Lists
    refs: ListReferences = None
    method: Annotated[str, Opt("Methods, comma-separated, or all.", metavar="METHOD,...")] = (
        "sentence,greedy"
    )
    top: Annotated[
        str | None, Opt("Sizes: the first N of each list, or all [all].", metavar="N,...")
    ] = None
    weights: ListWeights = None
    sparse_weights: SparseWeights = None
    seed: Seed = 1
    restarts: Annotated[
        int, Opt("greedy: random starts; the best counts.", minimum=1, metavar="N")
    ] = 3
    smoothing: Annotated[
        Literal["lin-och", "moses", "nakov"],
        Opt("sentence: BLEU of a sentence.", metavar="lin-och|moses|nakov"),
    ] = "lin-och"
    batch: Annotated[int, Opt("Sentences of a mini-batch.", minimum=1, metavar="N")] = 16
    decay: Annotated[
        float, Opt("background: its decay at each sentence.", minimum=0.0, maximum=1.0, metavar="X")
    ] = 0.999
    output: Annotated[
        Path | None,
        Opt("Write the best method's translations.", short="o", metavar="FILE", is_output=True),
    ] = None
    rows: Annotated[
        Path | None,
        Opt(
            "Write its sentence ids, ranks and ties, tab-separated.", metavar="FILE", is_output=True
        ),
    ] = None
    metric: MetricName = None
    metric_settings: MetricSettings = ""
    json: Json = False
    quiet: Quiet = False
    settings: Annotated[ListSettings, list_settings()] = NO_SETTINGS


_OF_LISTS = ("list-mbr", "lattice-mbr")


@dataclass(frozen=True)
class MbrCommand:
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
    word error rate decoding (Stolcke et al. 1997): WER, CER, CHRF, TER, or one that a
    --score-command computes, which gets every pair of a list once.

    Examples: mosesplug mbr search-graphs/ --weights run1.dense --scale 20 -o translations;
    mosesplug mbr --nbest list --scores COMET=pairs.npy --scale 0 -o translations
    """

    graphs: Annotated[
        Path | None,
        Opt("Search graphs: a directory of them, or a file.", is_positional=True, metavar="GRAPHS"),
    ] = None
    nbest: Annotated[
        Path | None,
        Opt("An n-best list instead.", metavar="FILE", excludes=("graphs", "store", "beam")),
    ] = None
    store: Annotated[
        Path | None,
        Opt("The graphs of a run with --forest instead.", metavar="DIR", excludes=("graphs",)),
    ] = None
    iteration: Annotated[
        int | None,
        Opt(
            "Iteration of --store [the newest with graphs].",
            minimum=1,
            metavar="N",
            requires=("store",),
        ),
    ] = None
    weights: Annotated[
        str | None,
        Opt("Weights, in any format [those of the input].", metavar="FILE|RUN", exists="weights"),
    ] = None
    sparse_weights: SparseWeights = None
    scores: Annotated[
        str | None,
        Opt(
            "With --nbest: utilities from outside, such as COMET of all pairs.",
            metavar="NAME=FILE",
            exists="scores",
            requires=("nbest",),
            excludes=_OF_LISTS,
        ),
    ] = None
    metric: Annotated[
        str | None,
        Opt(
            "With --nbest: maximize a metric, such as WER [the first --score-command].",
            metavar="NAME",
            complete=complete_metrics,
            requires=("nbest",),
            excludes=("scores", *_OF_LISTS),
        ),
    ] = None
    metric_settings: Annotated[
        str,
        Opt(
            "Metric settings, as reflen:shortest,case:false.",
            metavar="SETTINGS",
            requires=("metric",),
        ),
    ] = ""
    list_mbr: Annotated[
        bool,
        Opt(
            "Maximize expected BLEU+1 over a list (Kumar & Byrne 2004).",
            excludes=("lattice-mbr", "beam"),
        ),
    ] = False
    lattice_mbr: Annotated[bool, Opt("Maximize linear BLEU (Tromble et al. 2008).")] = False
    scale: Annotated[float, Opt("Scale of the model scores.", minimum=0.0, metavar="S")] = 1.0
    size: Annotated[int, Opt("Translations of a graph to choose from.", minimum=1, metavar="K")] = (
        200
    )
    precision: Annotated[
        float | None,
        Opt(
            "With --lattice-mbr, unigram precision [0.8, as -lmbr-p].",
            metavar="P",
            requires=("lattice-mbr",),
        ),
    ] = None
    ratio: Annotated[
        float | None,
        Opt(
            "With --lattice-mbr, ratio of precisions [0.6, -lmbr-r].",
            metavar="R",
            requires=("lattice-mbr",),
        ),
    ] = None
    beam: Annotated[
        float | None, Opt("Prune edges of graphs by this beam [exact].", minimum=0.0, metavar="B")
    ] = None
    output: Output = None
    threads: Threads = THREADS
    quiet: Quiet = False
    settings: Annotated[ListSettings, list_settings(_FILES_OF_SCORES)] = NO_SETTINGS


@dataclass(frozen=True)
class RerankCommand:
    """Print the best hypothesis of each n-best list, one per line.

    A sentence without a list has an empty line. Lists may have any format that --format names; if
    it names every value (name=value), as those of Joshua and cdec, the dense features are those
    that --weights names. Sentences whose ids are texts come in the order of the list. Find weights
    with mosesplug optimize.

    Example: mosesplug rerank --nbest list.gz --weights weights --add-feature LM=lm.scores > best
    """

    nbest: Annotated[Path, Opt("The n-best lists.", metavar="FILE")]
    weights: Annotated[
        str,
        Opt(
            "Weights: a file of any format, a run, or 'NAME=W NAME=W'.",
            metavar="FILE|RUN",
            exists="weights",
        ),
    ]
    sparse_weights: SparseWeights = None
    mbr: Annotated[bool, Opt("Maximize expected BLEU+1 (Kumar & Byrne 2004).")] = False
    scale: Annotated[float, Opt("With --mbr, scale of the scores.", minimum=0.0, metavar="S")] = 1.0
    length_exponent: Annotated[
        str | None,
        Opt(
            "Divide scores by length**X.",
            metavar="[NAME,...:]X",
            default_text="recorded with WEIGHTS",
        ),
    ] = None
    length_by: Annotated[
        str, Opt("Length of --length-exponent: words or a feature.", metavar="NAME")
    ] = "words"
    output_nbest: Annotated[
        Path | None,
        Opt("Write the lists too, sorted by their new scores.", metavar="FILE", is_output=True),
    ] = None
    with_ids: Annotated[bool, Opt("Begin each line with its sentence id.", name="ids")] = False
    output: Output = None
    settings: Annotated[ListSettings, list_settings(_OWN_SCORES)] = NO_SETTINGS


_Graphs = Annotated[
    list[Path],
    Opt(
        "Directories or files of search graphs, or a run with --forest.",
        is_positional=True,
        metavar="GRAPHS|RUN",
    ),
]


@dataclass(frozen=True)
class ForestNbestCommand:
    """Write n-best lists of search graphs, in Moses' format.

    GRAPHS are directories (0.gz, 1.gz, ...) or files; several graphs of one sentence are merged.
    With --diverse, each translation pays LAMBDA for every pair of equal n-grams with each earlier
    one (Gimpel et al. 2013), and the list has the order of the choice. With --samples, derivations
    are drawn in proportion to exp(scale * score); --no-distinct lists every draw.

    Examples: mosesplug forest nbest hypergraph --weights run3.dense -k 100 -o best100.gz;
    mosesplug forest nbest hypergraph --diverse 0.1 -k 20;
    mosesplug forest nbest hypergraph --samples 1000 --seed 7 --scale 2
    """

    graphs: _Graphs
    weights: GraphWeights = None
    sparse_weights: GraphSparse = None
    k: Annotated[int, Opt("Length of a list.", minimum=1, metavar="N")] = 100
    distinct: Annotated[bool, Opt("List every translation once, by its best derivation.")] = True
    diverse: Annotated[
        float | None,
        Opt(
            "List diverse translations: penalty of n-grams.",
            metavar="LAMBDA",
            above=0.0,
            excludes=("samples",),
        ),
    ] = None
    ngram: Annotated[
        int | None,
        Opt(
            "With --diverse, length of the n-grams [2].",
            minimum=1,
            metavar="N",
            requires=("diverse",),
        ),
    ] = None
    pool: Annotated[
        int | None,
        Opt(
            "With --diverse, choose from the N best [all].",
            minimum=1,
            metavar="N",
            requires=("diverse",),
        ),
    ] = None
    samples: Annotated[
        int | None, Opt("List N random derivations instead.", minimum=1, metavar="N")
    ] = None
    seed: Annotated[
        int | None,
        Opt("With --samples, the seed [1].", minimum=0, metavar="N", requires=("samples",)),
    ] = None
    scale: Annotated[
        float | None,
        Opt(
            "With --samples, scale of the scores [1].",
            metavar="X",
            above=0.0,
            requires=("samples",),
        ),
    ] = None
    output: Output = None
    quiet: Quiet = False


@dataclass(frozen=True)
class ForestOracleCommand:
    """Print the oracle translations of search graphs, one per line.

    By default a greedy search maximizes corpus BLEU; --sentence and --linear are faster, and
    --linear is exact. Corpus BLEU is printed on stderr, and with weights that of the 1-best.

    Examples: mosesplug forest oracle hypergraph --refs dev.en -o oracle.en;
    mosesplug forest oracle hypergraph --refs dev.en --linear
    """

    graphs: _Graphs
    refs: References = None
    ids: SentenceIdsOfLines = None
    weights: GraphWeights = None
    sparse_weights: GraphSparse = None
    sentence: Annotated[
        bool, Opt("Maximize the BLEU+1 of each sentence.", excludes=("linear",))
    ] = False
    linear: Annotated[bool, Opt("Maximize linear BLEU (Tromble et al. 2008).")] = False
    beam: Annotated[
        int | None,
        Opt("Partial derivations of a node [10; all with --linear].", minimum=1, metavar="N"),
    ] = None
    seed: Annotated[int, Opt("Seed of the order of sentences.", minimum=0, metavar="N")] = 1
    output: Output = None
    quiet: Quiet = False


@dataclass(frozen=True)
class ForestInfoCommand:
    """Print sizes and best scores of search graphs.

    Example: mosesplug forest info hypergraph --weights run3.dense
    """

    graphs: _Graphs
    weights: GraphWeights = None
    sparse_weights: GraphSparse = None
    json: Json = False


@dataclass(frozen=True)
class ForestErrorsCommand:
    """Tell search errors from model errors by derivations of the references.

    A sentence has a search error if a derivation of a reference scores higher than the 1-best, and
    a model error if it scores lower. Such derivations are those of forced decoding, if RUN was
    tuned with --forced-decoding, else those in search graphs: GRAPHS and those of --wider, a search
    of the same text with a larger beam and the same weights.

    Examples: mosesplug forest errors tuning --refs dev.en;
    mosesplug forest errors hypergraph --wider beam1000/hypergraph --refs dev.en
    """

    graphs: _Graphs
    refs: References = None
    ids: SentenceIdsOfLines = None
    wider: Annotated[
        list[Path] | None,
        Opt("Search graphs of a wider search; repeatable.", metavar="GRAPHS|RUN"),
    ] = None
    iteration: Annotated[
        int | None, Opt("Iteration of RUN [the last].", minimum=1, metavar="N")
    ] = None
    weights: GraphWeights = None
    sparse_weights: GraphSparse = None
    top: Annotated[
        int | None, Opt("Rank references in the N best of a graph [100].", minimum=1, metavar="N")
    ] = None
    sentences: Annotated[bool, Opt("List the sentences, too; --json always does.")] = False
    json: Json = False
