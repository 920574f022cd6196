"""Parse the decoder's command line and ``moses.ini`` as Moses does.

Every option can be given on the command line as ``-name value ...`` (or ``--name``) or in the
configuration as a section ``[name]``; the command line takes precedence. Unsupported options are
errors; they are never ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from formats.errors import FormatError
from formats.moses.decoder_flags import flag_name, group_flags
from formats.moses.ini import MosesIni
from formats.moses.ini_features import FALSE_WORDS, TRUE_WORDS
from mosesplug.errors import UsageError

Number = TypeVar("Number", int, float)

INI_ONLY = ("feature", "weight")
LAST_PORT = 65535


@dataclass(frozen=True)
class DecoderOption:
    """An option: the least and the most number of its values, and its help."""

    least: int
    most: int
    help: str


OPTIONS: Mapping[str, DecoderOption] = {
    "config": DecoderOption(1, 1, "moses.ini of the system"),
    "input-file": DecoderOption(1, 1, "text to translate, one sentence per line (default: stdin)"),
    "show-weights": DecoderOption(0, 1, "print the features and their weights, then exit"),
    "n-best-list": DecoderOption(
        2, 3, "FILE N [distinct]: write N-best lists to FILE, - for stdout"
    ),
    "include-segmentation-in-n-best": DecoderOption(0, 1, "add the phrases of each hypothesis"),
    "print-alignment-info-in-n-best": DecoderOption(0, 1, "add its word alignment"),
    "weight-overwrite": DecoderOption(
        1, 1, "'Name= v v Name= v': weights that replace those in moses.ini"
    ),
    "weight-file": DecoderOption(1, 1, "file of sparse weights, a name and a value a line"),
    "output-search-graph-hypergraph": DecoderOption(
        1, 3, "true [txt|gz [DIR]]: write a search graph per sentence to DIR"
    ),
    "server": DecoderOption(0, 1, "answer local XML-RPC requests instead of reading input"),
    "server-port": DecoderOption(1, 1, "port of the server (default: 8080)"),
    "serial": DecoderOption(0, 1, "accepted; the server always answers one request at a time"),
    "threads": DecoderOption(1, 1, "number of processes, or all (default: 1)"),
    "stack": DecoderOption(1, 1, "hypotheses kept per stack, 0 = all (default: 200)"),
    "beam-threshold": DecoderOption(
        1, 1, "minimum probability relative to the best (default: 1e-5)"
    ),
    "distortion-limit": DecoderOption(1, 1, "longest jump, 0 = none, -1 = any (default: -1)"),
    "max-phrase-length": DecoderOption(1, 1, "longest source phrase (default: 20)"),
    "ttable-limit": DecoderOption(1, 1, "translations per source phrase (default: 20)"),
    "n-best-factor": DecoderOption(1, 1, "accepted; distinct lists are exact here at any value"),
    "search-algorithm": DecoderOption(1, 1, "only 0 (stack decoding)"),
    "inputtype": DecoderOption(1, 1, "only 0 (text)"),
    "input-factors": DecoderOption(1, 1, "only 0 (words)"),
    "output-factors": DecoderOption(1, 1, "only 0 (words)"),
    "mapping": DecoderOption(1, 1, "only '0 T 0' (one phrase table)"),
    "verbose": DecoderOption(1, 1, "0 = silent (default), 1 = report progress on stderr"),
}
ONLY_VALUES = {
    "search-algorithm": ("0",),
    "inputtype": ("0",),
    "input-factors": ("0",),
    "output-factors": ("0",),
    "mapping": ("0 T 0", "T 0"),
}


@dataclass(frozen=True)
class Settings:
    """All settings except the model; see ``OPTIONS`` for meanings and defaults."""

    config: str
    input_file: str | None
    show_weights: bool
    n_best_file: str | None
    n_best_size: int
    n_best_distinct: bool
    n_best_segmentation: bool
    n_best_alignment: bool
    weight_overwrite: str
    weight_file: str | None
    hypergraph_directory: str | None
    hypergraph_suffix: str
    server: bool
    server_port: int
    threads: int
    stack: int
    beam_threshold: float
    distortion_limit: int
    max_phrase_length: int
    table_limit: int | None
    verbose: int


def parse_arguments(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Return the values by the long name of each option; the first occurrence counts.

    ``formats.moses.decoder_flags`` says how Moses separates options and values.

    Raises:
        UsageError: an option is unsupported, or a value belongs to no option.
    """
    given: dict[str, list[str]] = {}
    for flag, values in group_flags(arguments):
        if not flag:
            raise UsageError(
                f"'{values[0]}' is not an option; input comes from -input-file or stdin"
            )
        name = flag_name(flag)
        if name not in OPTIONS:
            raise UsageError(
                f"the bundled decoder does not support option {flag}; see --help, or use Moses"
            )
        given.setdefault(name, values)
    return given


def read_settings(given: Mapping[str, Sequence[str]], ini: MosesIni) -> Settings:
    """Combine the command line and the configuration.

    Raises:
        FormatError: the same in the configuration, or an unknown section.
    """
    values = {name: list(words) for name, words in given.items()}
    for section, line in ini.sections.items():
        if section in INI_ONLY:
            continue
        if section not in OPTIONS:
            raise FormatError(
                f"the bundled decoder does not support the section [{section}]",
                path=ini.path,
                line=line,
                remedy="Remove it, or use Moses",
            )
        values.setdefault(section, [value.text for value in ini.section(section)])
    reader = _Reader(values)
    for name, allowed in ONLY_VALUES.items():
        if reader.text(name, allowed[0]) not in allowed:
            raise UsageError(
                f"{name} {values[name][0]}: the bundled decoder supports only {allowed[0]}"
            )
    reader.number("n-best-factor", 20, 0)
    n_best = reader.words("n-best-list")
    if len(n_best) == 3 and n_best[2] != "distinct":
        raise UsageError(
            f"n-best-list: expected 'distinct' or nothing after the size, not '{n_best[2]}'"
        )
    reader.switch("serial")
    directory, suffix = _hypergraph_target(reader.words("output-search-graph-hypergraph"), n_best)
    return Settings(
        config=ini.path,
        input_file=reader.text("input-file", None),
        show_weights=reader.switch("show-weights"),
        n_best_file=n_best[0] if n_best else None,
        n_best_size=_convert("n-best-list", n_best[1], int, 1) if n_best else 0,
        n_best_distinct=len(n_best) == 3,
        n_best_segmentation=reader.switch("include-segmentation-in-n-best"),
        n_best_alignment=reader.switch("print-alignment-info-in-n-best"),
        weight_overwrite=reader.text("weight-overwrite", None) or "",
        weight_file=reader.text("weight-file", None),
        hypergraph_directory=directory,
        hypergraph_suffix=suffix,
        server=reader.switch("server"),
        server_port=reader.port(),
        threads=reader.threads(),
        stack=reader.number("stack", 200, 0),
        beam_threshold=reader.fraction("beam-threshold", 1e-5),
        distortion_limit=reader.number("distortion-limit", -1, -1),
        max_phrase_length=reader.number("max-phrase-length", 20, 1),
        table_limit=reader.number("ttable-limit", 0, 0) if "ttable-limit" in values else None,
        verbose=reader.number("verbose", 0, 0),
    )


def _hypergraph_target(words: list[str], n_best: list[str]) -> tuple[str | None, str]:
    """Return directory (None: no search graphs) and file suffix, by Moses' rules."""
    if not words or words[0].lower() in FALSE_WORDS:
        return None, ""
    if words[0].lower() not in TRUE_WORDS:
        raise UsageError(
            f"output-search-graph-hypergraph: expected true or false, not '{words[0]}'"
        )
    suffix = words[1] if len(words) > 1 else "txt"
    if suffix not in ("txt", "gz"):
        raise UsageError(f"output-search-graph-hypergraph: expected txt or gz, not '{suffix}'")
    if len(words) > 2:
        return words[2], suffix
    if n_best and n_best[0] not in ("-", "/dev/stdout"):
        return str(Path(n_best[0]).parent), suffix
    return "hypergraph", suffix


@dataclass(frozen=True)
class _Reader:
    """Converts and checks the values of options."""

    values: Mapping[str, list[str]]

    def words(self, name: str) -> list[str]:
        if name not in self.values:
            return []
        option = OPTIONS[name]
        words = self.values[name]
        if option.most > 1:
            words = [part for word in words for part in word.split()]
        if not option.least <= len(words) <= option.most:
            wanted = str(option.least)
            if option.most > option.least:
                wanted += f" to {option.most}"
            raise UsageError(f"{name} takes {wanted} value(s), not {len(words)}: {option.help}")
        return words

    def switch(self, name: str) -> bool:
        return name in self.values and not set(self.words(name)) & FALSE_WORDS

    def text(self, name: str, default: str | None) -> str | None:
        words = self.words(name)
        return words[0] if words else default

    def number(self, name: str, default: int, least: int) -> int:
        words = self.words(name)
        return _convert(name, words[0], int, least) if words else default

    def fraction(self, name: str, default: float) -> float:
        words = self.words(name)
        value = _convert(name, words[0], float, 0.0) if words else default
        if not value <= 1.0:
            raise UsageError(f"{name}: a number from 0 to 1 expected, not '{words[0]}'")
        return value

    def port(self) -> int:
        number = self.number("server-port", 8080, 1)
        if number > LAST_PORT:
            raise UsageError(f"server-port: at most {LAST_PORT} expected, not {number}")
        return number

    def threads(self) -> int:
        words = self.words("threads")
        if words == ["all"]:
            return os.cpu_count() or 1
        return _convert("threads", words[0], int, 1) if words else 1


def _convert(name: str, word: str, convert: Callable[[str], Number], least: Number) -> Number:
    try:
        value = convert(word)
    except ValueError:
        raise UsageError(f"{name}: a number expected, not '{word}'") from None
    if not value >= least:
        raise UsageError(f"{name}: at least {least} expected, not {word}")
    return value
