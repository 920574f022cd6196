"""``nbest-optimize``: weights of recognition scores.

It computes what SRILM's program does with ``-1best``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    Style,
    parse_integer,
    parse_real,
    run,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

PROGRAM = Program(
    "nbest-optimize",
    "Optimize the weights of recognition scores for the word errors of the 1-best hypotheses.",
    (
        ProgramOption("nbest-files", "file with the names of n-best lists (required)", "", "FILE"),
        ProgramOption("refs", "references: utterance and words on a line", "", "FILE"),
        ProgramOption("1best", "required: the criterion without it has no counterpart"),
        ProgramOption("errors", "directory of error counts, instead of -refs", "", "DIR"),
        ProgramOption("xval-files", "further n-best lists whose errors are reported", "", "FILE"),
        ProgramOption(
            "max-nbest", "hypotheses of a list to read; 0: all", "", "N", parse_integer, 0
        ),
        ProgramOption("tolower", "count errors in lower case"),
        ProgramOption("multiwords", "split words at -multi-char"),
        ProgramOption("multi-char", "the character that joins words", "", "C", str, "_"),
        ProgramOption("noise", "a word that does not count, besides -pau-", "", "WORD"),
        ProgramOption("noise-vocab", "file of words that do not count", "", "FILE"),
        ProgramOption(
            "rescore-lmw", "initial LM weight, relative to the acoustic", "", "W", parse_real, 8.0
        ),
        ProgramOption("rescore-wtw", "initial weight of a word", "", "W", parse_real, 0.0),
        ProgramOption(
            "posterior-scale",
            "divisor of initial weights (default: -rescore-lmw)",
            "",
            "S",
            parse_real,
        ),
        ProgramOption(
            "init-lambdas", "initial weights 'w1 w2 =w3'; = fixes a weight", "", "WEIGHTS"
        ),
        ProgramOption("init-amoeba-simplex", "step sizes 's1 s2'; 0 fixes a weight", "", "STEPS"),
        ProgramOption("init-powell-range", "box of random starts 'min,max min,max'", "", "RANGES"),
        ProgramOption(
            "num-powell-runs",
            "random starting points, and the given one",
            "",
            "N",
            parse_integer,
            20,
        ),
        ProgramOption("dynamic-random-series", "another random seed in each run"),
        ProgramOption("non-negative", "keep all weights at 0 or above"),
        ProgramOption("print-hyps", "write the best hypotheses", "", "FILE"),
        ProgramOption("skipopt", "keep the initial weights"),
        ProgramOption("write-rover-control", "write the weights for nbest-rover", "", "FILE"),
        ProgramOption("debug", "accepted", "", "LEVEL"),
        ProgramOption("no-reorder", "accepted; for alignments"),
        ProgramOption("quickprop", "accepted; for gradient descent"),
        *(ProgramOption(name, "accepted; MERT does without", "", "X") for name in _SEARCH),
        *(
            ProgramOption(name, f"rejected: {why}", "", "" if name in _FLAGS else "X")
            for name, why in _REFUSED.items()
        ),
    ),
    Style.ONE_DASH_ANYWHERE,
    others="[SCOREDIR...]",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``nbest-optimize`` and exit."""
    run(PROGRAM, _nbest_optimize, arguments)


def _nbest_optimize(given: Arguments) -> None:
    _check(given)

    import secrets

    import numpy as np

    from formats.text import write_atomic
    from mosesplug.extras.srilm.optimize import SearchSettings, optimize_weights

    initial, fixed, low, high = _start(given, 3 + len(given.others))
    train = _read(given, given["nbest-files"])
    held_out = _read(given, given["xval-files"]) if given["xval-files"] else None
    _log(f"{train.reference_words:.0f} reference words")
    _print_weights(initial)
    weights = initial
    if not given["skipopt"]:
        settings = SearchSettings(given["num-powell-runs"], low, high, given["non-negative"])
        seed = secrets.randbits(31) if given["dynamic-random-series"] else 0
        weights = optimize_weights(train, initial, np.array(fixed), settings, seed).weights
    for utterances, what, end in ((train, "", "best errors"), (held_out, "xval ", "xval errors")):
        if utterances is not None:
            _print_errors(f"original {what}errors", utterances, initial)
            _print_errors(end, utterances, weights)
    _print_weights(weights)
    if given["write-rover-control"]:
        write_atomic(given["write-rover-control"], _rover_control(given, train, weights))
    if given["print-hyps"]:
        write_atomic(given["print-hyps"], b"".join(train.best_lines(weights)))


def _check(given: Arguments) -> None:
    """Raise UsageError for invalid options."""
    for name, why in _REFUSED.items():
        if given[name]:
            raise UsageError(f"-{name}: {why}")
    if not given["nbest-files"]:
        raise UsageError("give the file with the names of the n-best lists: -nbest-files FILE")
    if not (given["1best"] or given["skipopt"]):
        raise UsageError(
            "without -1best, word posteriors of confusion networks are optimized, which has no "
            "counterpart: give -1best"
        )
    if not (given["refs"] or given["errors"]):
        raise UsageError("give references or error counts: -refs FILE, or -errors DIR")
    if len(given["multi-char"]) != 1:
        raise UsageError(f"-multi-char {given['multi-char']!r}: give one character")
    for name in ("max-nbest", "num-powell-runs"):
        if given[name] < 0:
            raise UsageError(f"-{name} must be at least 0, not {given[name]}")


def _start(
    given: Arguments, size: int
) -> tuple[NDArray[np.float64], list[bool], NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return the initial weights, a mask of fixed ones, and the random starts' box."""
    import numpy as np

    scale = given["posterior-scale"] or given["rescore-lmw"] or 1.0
    weights = [1.0, given["rescore-lmw"], given["rescore-wtw"], *[0.0] * (size - 3)]
    fixed = [False] * size
    for place, word in enumerate(_words(given, "init-lambdas", size)):
        fixed[place] = word.startswith("=")
        weights[place] = _number("init-lambdas", word.removeprefix("="))
    free = [place for place in range(size) if not fixed[place]]
    # A further step is that of the posterior scale, which does not matter here.
    for place, word in zip(free, _words(given, "init-amoeba-simplex", len(free) + 1), strict=False):
        fixed[place] = _number("init-amoeba-simplex", word) == 0.0
    start = np.array(weights) / scale
    ranges = _words(given, "init-powell-range", len(free))
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


def _words(given: Arguments, name: str, most: int) -> list[str]:
    words = str(given[name] or "").split()
    if len(words) > most:
        raise UsageError(f"-{name} has {len(words)} values for {most} scores")
    return words


def _number(name: str, text: str) -> float:
    try:
        return parse_real(text)
    except ValueError as error:
        raise UsageError(f"-{name} {error}") from None


def _read(given: Arguments, file_list: str) -> Utterances:
    """Read the n-best lists that a file names."""
    from mosesplug.extras.srilm.nbest_files import read_references
    from mosesplug.extras.srilm.optimize import read_utterances

    references = read_references(given["refs"]) if given["refs"] else None
    return read_utterances(
        file_list, given.others, references, given["errors"], _rules(given), given["max-nbest"]
    )


def _rules(given: Arguments) -> WordRules:
    from formats.text import read_lines
    from mosesplug.extras.srilm.nbest_files import PAUSE, WordRules

    noise = {PAUSE}
    if given["noise"]:
        noise.add(given["noise"].encode("utf-8", "surrogateescape"))
    if given["noise-vocab"]:
        noise |= {word for line in read_lines(given["noise-vocab"]) for word in line.split()}
    separator = given["multi-char"].encode() if given["multiwords"] else b""
    return WordRules(given["tolower"], separator, frozenset(noise))


def _normalizer(weights: NDArray[np.float64]) -> float:
    """Return the first weight that is not 0."""
    return next((weight for weight in weights.tolist() if weight), 1.0)


def _print_weights(weights: NDArray[np.float64]) -> None:
    """Print weights as SRILM does: as they are, and divided by the first one."""
    first = _normalizer(weights)
    print(f"   weights = {' '.join(f'{weight:g}' for weight in weights.tolist())}")
    print(f"   normed = {' '.join(f'{weight / first:g}' for weight in weights.tolist())}")
    print(f"   scale = {1.0 / first:g}", flush=True)


def _print_errors(what: str, utterances: Utterances, weights: NDArray[np.float64]) -> None:
    errors = utterances.errors(weights)
    print(f"{what} = {errors:g} ({errors / (utterances.reference_words or 1.0):g}/word)")


def _rover_control(given: Arguments, utterances: Utterances, weights: NDArray[np.float64]) -> bytes:
    """Return nbest-rover's control file; its posterior scale simulates the 1-best."""
    normed = (weights / _normalizer(weights)).tolist()
    lines = [
        f"{directory}\t{weight:g} +\n"
        for directory, weight in zip(given.others, normed[3:], strict=True)
    ]
    lines.append(
        f"{utterances.directory}\t{normed[1]:g} {normed[2]:g} 1.0 {given['max-nbest']} 0.1\n"
    )
    return "".join(lines).encode("utf-8", "surrogateescape")


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
