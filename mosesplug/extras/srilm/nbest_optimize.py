"""``nbest-optimize``: weights of recognition scores.

It computes what SRILM's program does with ``-1best``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

from mosesplug.arrays import Floats
from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, parse_real, run
from mosesplug.errors import UsageError
from mosesplug.options import Opt

if TYPE_CHECKING:
    from mosesplug.extras.srilm.nbest_files import WordRules
    from mosesplug.extras.srilm.optimize import Utterances

_REFUSED = {
    "1best-first": "only -1best has a counterpart",
    "srinterp-format": "its files are not read",
    "srinterp-counts": "its files are not read",
    "bleu-counts": "use mosesplug optimize --metric BLEU",
    "error-bleu-ratio": "use mosesplug optimize --metric BLEU,WER",
    "insertion-weight": "all errors count alike; give -errors",
    "word-weights": "all words count alike; give -errors",
    "anti-refs": "it has no counterpart",
    "anti-ref-weight": "it has no counterpart",
    "combine-linear": "scores are combined log-linearly",
    "compute-oracle": "use mosesplug oracle",
    "print-oracle-hyps": "use mosesplug oracle",
    "print-top-n": "only the best hypothesis is written",
    "print-unique-hyps": "only the best hypothesis is written",
    "print-old-ranks": "only the best hypothesis is written",
}
"""Options without counterpart, and why or what to use."""

_SEARCH = (
    *("maxiters", "max-bad-iters", "max-amoeba-restarts", "max-time", "converge", "alpha"),
    *("epsilon", "epsilon-stepdown", "min-epsilon", "min-loss", "max-delta", "vocab"),
    *("hidden-vocab", "dictionary", "distances"),
)
"""Options of searches and alignments that MERT does without."""

_FLAGS = (
    *("1best-first", "srinterp-format", "combine-linear", "compute-oracle"),
    *("print-unique-hyps", "print-old-ranks"),
)


@dataclass(frozen=True)
class NbestOptimizeArguments(ProgramArguments):
    """The options of ``nbest-optimize``."""

    nbest_files: Annotated[
        str, Opt("file with the names of n-best lists (required)", metavar="FILE")
    ] = ""
    refs: Annotated[
        str | None, Opt("references: utterance and words on a line", metavar="FILE")
    ] = None
    criterion_1best: Annotated[
        bool, Opt("required: the criterion without it has no counterpart", name="1best")
    ] = False
    errors: Annotated[
        str | None, Opt("directory of error counts, instead of -refs", metavar="DIR")
    ] = None
    xval_files: Annotated[
        str | None, Opt("further n-best lists whose errors are reported", metavar="FILE")
    ] = None
    max_nbest: Annotated[int, Opt("hypotheses of a list to read; 0: all", minimum=0)] = 0
    tolower: Annotated[bool, Opt("count errors in lower case")] = False
    multiwords: Annotated[bool, Opt("split words at -multi-char")] = False
    multi_char: Annotated[str, Opt("the character that joins words", metavar="C")] = "_"
    noise: Annotated[
        str | None, Opt("a word that does not count, besides -pau-", metavar="WORD")
    ] = None
    noise_vocab: Annotated[str | None, Opt("file of words that do not count", metavar="FILE")] = (
        None
    )
    rescore_lmw: Annotated[
        float, Opt("initial LM weight, relative to the acoustic", metavar="W")
    ] = 8.0
    rescore_wtw: Annotated[float, Opt("initial weight of a word", metavar="W")] = 0.0
    posterior_scale: Annotated[
        float | None, Opt("divisor of initial weights (default: -rescore-lmw)", metavar="S")
    ] = None
    init_lambdas: Annotated[
        str | None, Opt("initial weights 'w1 w2 =w3'; = fixes a weight", metavar="WEIGHTS")
    ] = None
    init_amoeba_simplex: Annotated[
        str | None, Opt("step sizes 's1 s2'; 0 fixes a weight", metavar="STEPS")
    ] = None
    init_powell_range: Annotated[
        str | None, Opt("box of random starts 'min,max min,max'", metavar="RANGES")
    ] = None
    num_powell_runs: Annotated[
        int, Opt("random starting points, and the arguments one", minimum=0)
    ] = 20
    dynamic_random_series: Annotated[bool, Opt("another random seed in each run")] = False
    non_negative: Annotated[bool, Opt("keep all weights at 0 or above")] = False
    print_hyps: Annotated[str | None, Opt("write the best hypotheses", metavar="FILE")] = None
    skipopt: Annotated[bool, Opt("keep the initial weights")] = False
    write_rover_control: Annotated[
        str | None, Opt("write the weights for nbest-rover", metavar="FILE")
    ] = None
    debug: Annotated[str | None, Opt("accepted", metavar="LEVEL")] = None
    no_reorder: Annotated[bool, Opt("accepted; for alignments")] = False
    quickprop: Annotated[bool, Opt("accepted; for gradient descent")] = False


PROGRAM = Program(
    "nbest-optimize",
    "Optimize the weights of recognition scores for the word errors of the 1-best hypotheses.",
    NbestOptimizeArguments,
    style=Style.ONE_DASH_ANYWHERE,
    others="[SCOREDIR...]",
    more=(
        *(Opt("accepted; MERT does without", name=name, metavar="X") for name in _SEARCH),
        *(
            Opt(
                f"rejected: {why}",
                name=name,
                kind="flag" if name in _FLAGS else "text",
                metavar="X",
            )
            for name, why in _REFUSED.items()
        ),
    ),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``nbest-optimize`` and exit."""
    run(PROGRAM, _nbest_optimize, arguments)


def _nbest_optimize(arguments: NbestOptimizeArguments) -> None:
    _check(arguments)

    import secrets

    import numpy as np

    from formats.text import write_atomic
    from mosesplug.extras.srilm.optimize import SearchSettings, optimize_weights

    initial, fixed, low, high = _start(arguments, 3 + len(arguments.others))
    train = _read(arguments, arguments.nbest_files)
    held_out = _read(arguments, arguments.xval_files) if arguments.xval_files else None
    _log(f"{train.reference_words:.0f} reference words")
    _print_weights(initial)
    weights = initial
    if not arguments.skipopt:
        settings = SearchSettings(arguments.num_powell_runs, low, high, arguments.non_negative)
        seed = secrets.randbits(31) if arguments.dynamic_random_series else 0
        weights = optimize_weights(train, initial, np.array(fixed), settings, seed).weights
    for utterances, what, end in ((train, "", "best errors"), (held_out, "xval ", "xval errors")):
        if utterances is not None:
            _print_errors(f"original {what}errors", utterances, initial)
            _print_errors(end, utterances, weights)
    _print_weights(weights)
    if arguments.write_rover_control:
        write_atomic(arguments.write_rover_control, _rover_control(arguments, train, weights))
    if arguments.print_hyps:
        write_atomic(arguments.print_hyps, b"".join(train.best_lines(weights)))


def _check(arguments: NbestOptimizeArguments) -> None:
    """Raise UsageError for invalid options."""
    names = {name for name, value in arguments.given if value}
    for name, why in _REFUSED.items():
        if name in names:
            raise UsageError(f"-{name}: {why}")
    if not arguments.nbest_files:
        raise UsageError("give the file with the names of the n-best lists: -nbest-files FILE")
    if not (arguments.criterion_1best or arguments.skipopt):
        raise UsageError(
            "without -1best, word posteriors of confusion networks are optimized, which has no "
            "counterpart: give -1best"
        )
    if not (arguments.refs or arguments.errors):
        raise UsageError("give references or error counts: -refs FILE, or -errors DIR")
    if len(arguments.multi_char) != 1:
        raise UsageError(f"-multi-char {arguments.multi_char!r}: give one character")


def _start(
    arguments: NbestOptimizeArguments, size: int
) -> tuple[Floats, list[bool], Floats | None, Floats | None]:
    """Return the initial weights, a mask of fixed ones, and the random starts' box."""
    import numpy as np

    scale = arguments.posterior_scale or arguments.rescore_lmw or 1.0
    weights = [1.0, arguments.rescore_lmw, arguments.rescore_wtw, *[0.0] * (size - 3)]
    fixed = [False] * size
    for place, word in enumerate(_words("init-lambdas", arguments.init_lambdas, size)):
        fixed[place] = word.startswith("=")
        weights[place] = _number("init-lambdas", word.removeprefix("="))
    free = [place for place in range(size) if not fixed[place]]
    # A further step is that of the posterior scale, which does not matter here.
    for place, word in zip(
        free,
        _words("init-amoeba-simplex", arguments.init_amoeba_simplex, len(free) + 1),
        strict=False,
    ):
        fixed[place] = _number("init-amoeba-simplex", word) == 0.0
    start = np.array(weights) / scale
    ranges = _words("init-powell-range", arguments.init_powell_range, len(free))
    if not ranges:
        return start, fixed, None, None
    if len(ranges) < len(free):
        raise UsageError(f"-init-powell-range has {len(ranges)} ranges: give {len(free)}")
    low, high = start.copy(), start.copy()
    for place, word in zip(free, ranges, strict=True):
        ends = [_number("init-powell-range", end) for end in word.split(",")]
        if len(ends) != 2 or ends[0] > ends[1]:
            raise UsageError(f"-init-powell-range: {word!r} is not of the form min,max")
        low[place], high[place] = ends[0] / scale, ends[1] / scale
        fixed[place] |= ends[0] == ends[1] == weights[place]
    return start, fixed, low, high


def _words(name: str, value: str | None, most: int) -> list[str]:
    words = (value or "").split()
    if len(words) > most:
        raise UsageError(f"-{name} has {len(words)} values for {most} scores")
    return words


def _number(name: str, text: str) -> float:
    try:
        return parse_real(text)
    except ValueError as error:
        raise UsageError(f"-{name} {error}") from None


def _read(arguments: NbestOptimizeArguments, file_list: str) -> Utterances:
    """Read the n-best lists that a file names."""
    from mosesplug.extras.srilm.nbest_files import read_references
    from mosesplug.extras.srilm.optimize import read_utterances

    references = read_references(arguments.refs) if arguments.refs else None
    return read_utterances(
        file_list,
        arguments.others,
        references,
        arguments.errors,
        _rules(arguments),
        arguments.max_nbest,
    )


def _rules(arguments: NbestOptimizeArguments) -> WordRules:
    from formats.text import read_lines
    from mosesplug.extras.srilm.nbest_files import PAUSE, WordRules

    noise = {PAUSE}
    if arguments.noise:
        noise.add(arguments.noise.encode("utf-8", "surrogateescape"))
    if arguments.noise_vocab:
        noise |= {word for line in read_lines(arguments.noise_vocab) for word in line.split()}
    separator = arguments.multi_char.encode() if arguments.multiwords else b""
    return WordRules(arguments.tolower, separator, frozenset(noise))


def _normalizer(weights: Floats) -> float:
    """Return the first weight that is not 0."""
    return next((weight for weight in weights.tolist() if weight), 1.0)


def _print_weights(weights: Floats) -> None:
    """Print weights as SRILM does: as they are, and divided by the first one."""
    first = _normalizer(weights)
    print(f"   weights = {' '.join(f'{weight:g}' for weight in weights.tolist())}")
    print(f"   normed = {' '.join(f'{weight / first:g}' for weight in weights.tolist())}")
    print(f"   scale = {1.0 / first:g}", flush=True)


def _print_errors(what: str, utterances: Utterances, weights: Floats) -> None:
    errors = utterances.errors(weights)
    print(f"{what} = {errors:g} ({errors / (utterances.reference_words or 1.0):g}/word)")


def _rover_control(
    arguments: NbestOptimizeArguments, utterances: Utterances, weights: Floats
) -> bytes:
    """Return nbest-rover's control file; its posterior scale simulates the 1-best."""
    normed = (weights / _normalizer(weights)).tolist()
    lines = [
        f"{directory}\t{weight:g} +\n"
        for directory, weight in zip(arguments.others, normed[3:], strict=True)
    ]
    lines.append(
        f"{utterances.directory}\t{normed[1]:g} {normed[2]:g} 1.0 {arguments.max_nbest} 0.1\n"
    )
    return "".join(lines).encode("utf-8", "surrogateescape")


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
