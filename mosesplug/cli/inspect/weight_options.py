"""Options of ``mosesplug weights``; nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mosesplug.cli.shared.completion import complete_weight_formats
from mosesplug.cli.shared.parameters import (
    Hypothesis,
    IterationOption,
    Json,
    OtherHypothesis,
    Output,
    References,
    SentenceId,
    SentenceIdsOfLines,
    Source,
    Store,
    StoreWeights,
)
from mosesplug.options import Opt

_WEIGHTS = "A file, DENSE+SPARSE, a working directory, or DIRECTORY:N for iteration N."
_FORMATS = (
    "dense, json, json-flat, yaml, tsv, equals, lines, moses.ini, show-weights, overwrite, sparse, "
    "graph, kbmira, init.opt, weights.txt"
)

_Weights = Annotated[str, Opt(_WEIGHTS, is_positional=True, metavar="WEIGHTS")]
_Several = Annotated[list[str], Opt(_WEIGHTS, is_positional=True, metavar="WEIGHTS")]
_First = Annotated[str, Opt(_WEIGHTS, is_positional=True, metavar="A")]
_Second = Annotated[str, Opt("Other weights.", is_positional=True, metavar="B")]
_To = Annotated[
    str | None,
    Opt(
        f"{_FORMATS} [by the name of the output, or that of the first]",
        metavar="FORMAT",
        complete=complete_weight_formats,
    ),
]
_Config = Annotated[
    Path | None, Opt("The moses.ini to edit [that of the run or file].", metavar="FILE")
]
_SparseOutput = Annotated[
    Path | None,
    Opt("Sparse weights, if the format cannot hold them.", metavar="FILE", is_output=True),
]
_NamesFrom = Annotated[
    Path | None,
    Opt("Names of unnamed weights: a runN.dense or features.list.", metavar="FILE"),
]
_Normalize = Annotated[bool, Opt("Divide each by its L1 norm first.")]


@dataclass(frozen=True)
class WeightsShowCommand:
    """Show the weights of a file or of a run's iterations.

    A file of any format can be given. Share is the absolute weight divided by the L1 norm of the
    dense weights. A working directory shows the weights that each iteration was decoded with, with
    an L1 norm of 1, and the result; DIRECTORY:N shows those of iteration N only. Bars run from the
    least to the greatest value of each row.

    Sparse features of a run are listed twice: those with the largest weights, and those that are
    active (not 0) in the largest share of the distinct hypotheses.

    --importance sorts the features of a run by absolute weight times spread, the standard deviation
    of values within a list. It also shows the score of the merged lists that is lost without each
    one: with the other weights kept, and with the dense ones learned again by MERT.

    Example: mosesplug weights show tuning
    """

    weights: _Weights
    top: Annotated[int, Opt("Number of sparse features; 0 for all.", minimum=0, metavar="N")] = 20
    use: Annotated[bool, Opt("Of a run, count active sparse features, which reads all lists.")] = (
        True
    )
    importance: Annotated[bool, Opt("Of a run, show which features matter, and how much.")] = False
    json: Json = False


@dataclass(frozen=True)
class WeightsDiffCommand:
    """Compare two weight vectors, the largest difference first.

    Numbers are those of the files unless --normalize is given. Weights that differ by one factor
    rank alike and have a cosine of 1. Change is the difference divided by the absolute weight of A.
    The last table counts the weights that are not 0 in A, in B and in both (Green et al. 2013,
    Table 6). Numbers without names (weights.txt, init.opt) must be in the decoder's order.

    Example: mosesplug weights diff tuning:1 tuning
    """

    first: _First
    second: _Second
    normalize: Annotated[bool, Opt("Divide both by their L1 norm first.", is_negatable=True)] = (
        False
    )
    top: Annotated[int, Opt("Number of features; 0 for all.", minimum=0, metavar="N")] = 50
    json: Json = False


@dataclass(frozen=True)
class WeightsWhyCommand:
    """Show which features make a hypothesis win over another one of the same sentence.

    Features are sorted by their contribution to A's model score minus B's. Both tie if one weight
    alone becomes that of the column "tie at"; B is the 1-best of all hypotheses in the interval of
    the last column. Weights have an L1 norm of 1.

    Example: mosesplug weights why tuning 7 --refs dev.en
    """

    store: Store
    sentence: SentenceId
    first: Hypothesis = None
    second: OtherHypothesis = None
    iteration: IterationOption = "all"
    weights: StoreWeights = None
    source: Source = None
    refs: References = None
    ids: SentenceIdsOfLines = None
    json: Json = False


@dataclass(frozen=True)
class WeightsAverageCommand:
    """Average several weight vectors, for example of runs with different seeds.

    Each is divided by the L1 norm of its dense weights first, since those with a large norm would
    otherwise dominate. All must have the same dense features; a missing sparse weight counts as 0.

    Example: mosesplug weights average run1 run2 run3 --to moses.ini --config moses.ini -o mean.ini
    """

    weights: _Several
    normalize: _Normalize = True
    to: _To = None
    config: _Config = None
    names_from: _NamesFrom = None
    sparse_output: _SparseOutput = None
    output: Output = None


@dataclass(frozen=True)
class WeightsInterpolateCommand:
    """Interpolate between two weight vectors: (1 - X) A + X B.

    Both are divided by their L1 norms first, so that X = 0.5 is half of the way. If --at is
    repeated, {} in file names stands for X. mosesplug line shows the score along the line.

    Example: mosesplug weights interpolate tuning:1 tuning --at 0.25 --at 0.5 -o mixed.{}.dense
    """

    first: _First
    second: _Second
    at: Annotated[list[float], Opt("0 is A, 1 is B; may be outside, or repeated.", metavar="X")]
    normalize: _Normalize = True
    to: _To = None
    config: _Config = None
    names_from: _NamesFrom = None
    sparse_output: _SparseOutput = None
    output: Output = None


@dataclass(frozen=True)
class WeightsNormalizeCommand:
    """Divide weights by the L1 norm of the dense ones.

    No ranking changes, unless there are features that are not tuned: their weights stay.

    Example: mosesplug weights normalize moses.ini -o normalized.ini
    """

    weights: _Weights
    l2: Annotated[bool, Opt("Divide by the L2 norm.", excludes=("max",))] = False
    largest: Annotated[bool, Opt("Divide by the largest absolute weight.", name="max")] = False
    to: _To = None
    config: _Config = None
    names_from: _NamesFrom = None
    sparse_output: _SparseOutput = None
    output: Output = None


@dataclass(frozen=True)
class WeightsConvertCommand:
    """Write weights in another format, with identical numbers.

    Sparse weights that a format cannot hold require --sparse-output; missing names and features
    that are not tuned are reported on stderr. graph is the file "weights" beside search graphs,
    overwrite the value of the decoder's -weight-overwrite.

    Examples: mosesplug weights convert tuning -o tuned.json; mosesplug weights convert tuning:3
    --to moses.ini -o third.ini
    """

    weights: _Weights
    to: Annotated[
        str | None,
        Opt(
            f"{_FORMATS} [by the name of the output]",
            metavar="FORMAT",
            complete=complete_weight_formats,
        ),
    ] = None
    config: _Config = None
    names_from: _NamesFrom = None
    sparse_output: _SparseOutput = None
    output: Output = None
