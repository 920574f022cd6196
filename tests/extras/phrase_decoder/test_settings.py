"""The command line and the sections of moses.ini, in Moses' way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini
from mosesplug.errors import UsageError
from mosesplug.extras.phrase_decoder.settings import Settings, parse_arguments, read_settings

INI = b"[mapping]\n0 T 0\n[distortion-limit]\n6 # words\n[threads]\n3\n[feature]\nDistortion\n"


def read(*arguments: str, ini: bytes = INI) -> Settings:
    return read_settings(
        parse_arguments(["-f", "moses.ini", *arguments]), parse_moses_ini(ini, "m.ini")
    )


def test_defaults_and_sections() -> None:
    found = read()
    assert (found.distortion_limit, found.threads) == (6, 3)
    assert (found.stack, found.beam_threshold, found.max_phrase_length) == (200, 1e-5, 20)
    assert (found.n_best_file, found.n_best_size, found.n_best_distinct) == (None, 0, False)
    assert (found.table_limit, found.hypergraph_directory, found.verbose) == (None, None, 0)
    assert not found.show_weights


def test_the_command_line_wins_with_one_dash_or_two_and_short_names() -> None:
    found = read("--threads", "2", "-dl", "-1", "-s", "50", "-b", "0.1", "-ttable-limit", "5")
    assert (found.threads, found.distortion_limit, found.stack) == (2, -1, 50)
    assert (found.beam_threshold, found.table_limit) == (0.1, 5)
    assert read("-th", "all").threads == os.cpu_count()


def test_the_first_of_repeated_options_wins() -> None:
    assert read("-threads", "2", "-threads", "4").threads == 2


def test_the_call_of_a_tuning_script() -> None:
    found = read(
        *("-threads", "2", "-v", "0", "-inputtype", "0", "-weight-overwrite", "LM0= 0.5 D0= -1"),
        *("-n-best-list", "run1.best100.out", "100", "distinct", "-input-file", "dev.de"),
    )
    assert found.weight_overwrite == "LM0= 0.5 D0= -1"
    assert (found.n_best_file, found.n_best_size, found.n_best_distinct) == (
        "run1.best100.out",
        100,
        True,
    )
    assert found.input_file == "dev.de"


@pytest.mark.parametrize(
    ("words", "directory", "suffix"),
    [
        (["true", "gz"], "hypergraph", "gz"),
        (["true gz"], "hypergraph", "gz"),
        (["true"], "hypergraph", "txt"),
        (["true", "gz", "graphs"], "graphs", "gz"),
        (["false", "gz", "graphs"], None, ""),
    ],
)
def test_where_search_graphs_go(words: list[str], directory: str | None, suffix: str) -> None:
    found = read("-output-search-graph-hypergraph", *words)
    assert (found.hypergraph_directory, found.hypergraph_suffix) == (directory, suffix)


def test_search_graphs_are_written_next_to_the_n_best_list() -> None:
    arguments = ("-output-search-graph-hypergraph", "true", "gz", "-n-best-list")
    assert read(*arguments, "out/list", "5").hypergraph_directory == str(Path("out"))
    assert read(*arguments, "-", "5").hypergraph_directory == "hypergraph"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-xml-input", "inclusive"], "does not support option -xml-input"),
        (["-search-algorithm", "1"], "search-algorithm 1"),
        (["-inputtype", "2"], "inputtype 2"),
        (["-mapping", "1 T 1"], "mapping 1 T 1"),
        (["-threads", "many"], "threads: a number expected, not 'many'"),
        (["-threads", "0"], "threads: at least 1 expected"),
        (["-threads"], "threads takes 1 value"),
        (["-stack", "1", "2"], "stack takes 1 value"),
        (["-stack", "-5"], "stack: at least 0 expected"),
        (["-beam-threshold", "2"], "beam-threshold: a number from 0 to 1"),
        (["-beam-threshold", "nan"], "beam-threshold: at least 0.0 expected"),
        (["-n-best-list", "file"], "n-best-list takes 2 to 3 value"),
        (["-n-best-list", "file", "x"], "n-best-list: a number expected"),
        (["-n-best-list", "file", "0"], "n-best-list: at least 1"),
        (["-n-best-list", "file", "10", "unique"], "'distinct' or nothing"),
        (["-output-search-graph-hypergraph", "maybe"], "true or false"),
        (["-output-search-graph-hypergraph", "true", "bz2"], "txt or gz"),
    ],
)
def test_unsupported_options_are_rejected(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*arguments)
    assert message in str(caught.value)


def test_a_value_without_an_option_is_rejected() -> None:
    with pytest.raises(UsageError, match="'input' is not an option"):
        parse_arguments(["input", "-f", "moses.ini"])


def test_an_unknown_section_is_rejected_with_its_line() -> None:
    with pytest.raises(FormatError, match=r"m.ini:9: .* not support the section \[xml-input\]"):
        read(ini=INI + b"[xml-input]\ninclusive\n")
