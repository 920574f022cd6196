"""Read a decoder's flags, and convert them to sections of its configuration.

For example, ``-threads 2`` is ``[threads]`` with the value 2.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from formats.errors import FormatError, quote

SHORT_FLAGS: Mapping[str, str] = {
    "aws": "alternate-weight-setting",
    "b": "beam-threshold",
    "cbd": "cube-pruning-diversity",
    "cbds": "cube-pruning-deterministic-search",
    "cbls": "cube-pruning-lazy-scoring",
    "cbp": "cube-pruning-pop-limit",
    "con": "consensus-decoding",
    "da": "phrase-drop-allowed",
    "dd": "disable-discarding",
    "dl": "distortion-limit",
    "dpb": "decoding-graph-backoff",
    "du": "drop-unknown",
    "edc": "early-distortion-cost",
    "edt": "early-discarding-threshold",
    "f": "config",
    "fd": "factor-delimiter",
    "i": "input-file",
    "lmbr": "lminimum-bayes-risk",
    "mbr": "minimum-bayes-risk",
    "mp": "monotone-at-punctuation",
    "mu": "mark-unknown",
    "r": "recover-input-path",
    "s": "stack",
    "sd": "stack-diversity",
    "t": "report-segmentation",
    "th": "threads",
    "tot": "translation-option-threshold",
    "tt": "report-segmentation-enriched",
    "v": "verbose",
    "wf": "weight-file",
    "xb": "xml-brackets",
    "xi": "xml-input",
}
WEIGHT_FLAGS = ("weight", "weight-overwrite")
_FLAG = re.compile(r"--?([^\d].*)")


def flag_name(flag: str) -> str:
    """Return the long name of a flag such as ``-th`` or ``--threads``, without dashes."""
    name = _FLAG.sub(r"\1", flag)
    return SHORT_FLAGS.get(name, name)


def group_flags(words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag, as it is spelled, with its values.

    As in Moses, the values of a flag end at the next word that starts with ``-`` and is not a
    number. Values that precede the first flag come first, with an empty flag.
    """
    flag, values = "", list[str]()
    for word in words:
        if _FLAG.fullmatch(word) is None:
            values.append(word)
            continue
        if flag or values:
            yield flag, values
        flag, values = word, []
    if flag or values:
        yield flag, values


def decoder_flags(text: str) -> dict[str, tuple[str, ...]]:
    """Return the sections of ``moses.ini`` that are equivalent to the given flags.

    Short flags get their long names. A switch without a value becomes ``true``, as in the decoder.
    ``config`` is omitted.

    Raises:
        FormatError: a value precedes the first flag, a quote is not closed, or a flag sets weights,
            which would override the tuned ones.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise FormatError(f"decoder flags {quote(text)}: {error}") from error
    sections: dict[str, list[str]] = {}
    for flag, values in group_flags(words):
        if not flag:
            raise FormatError(
                f"decoder flags {quote(text)}: {quote(values[0])} comes before any flag",
                remedy="The form is: -flag value value -flag",
            )
        sections.setdefault(flag_name(flag), []).extend(values)
    sections.pop("config", None)
    for name in WEIGHT_FLAGS:
        if name in sections:
            raise FormatError(
                f"decoder flags {quote(text)}: -{name} would override the tuned weights",
                remedy="Put the starting weights into the configuration",
            )
    return {name: tuple(values) or ("true",) for name, values in sections.items()}
