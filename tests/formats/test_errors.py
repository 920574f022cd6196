"""Messages about files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from formats.errors import FormatError, Message, OptionName, quote, spell_option


def test_a_message_has_place_problem_and_remedy() -> None:
    assert str(FormatError("bad", path=Path("a/b"), line=3, remedy="Mend it")) == (
        "a/b:3: bad. Mend it"
    )
    assert str(FormatError("bad", path="a")) == "a: bad"
    assert str(FormatError("bad", line=3)) == "line 3: bad"
    assert str(FormatError("bad")) == "bad"


def spell_loudly(option: OptionName) -> str:
    return f"{option.name.upper()}({option.value})"


def test_a_message_spells_options_anew() -> None:
    message = Message(f"{{path}}: use {OptionName('folds', '5')} or {{--select}}, not --x")
    assert message == "{path}: use --folds 5 or --select, not --x"
    assert Message(message) is message
    assert Message(message, spell_loudly) == "{path}: use FOLDS(5) or SELECT(), not --x"
    assert Message(Message(message, spell_loudly), spell_option) == message
    copy = pickle.loads(pickle.dumps(message))
    assert (copy, Message(copy, spell_loudly)) == (message, Message(message, spell_loudly))


def test_an_error_spells_options_anew() -> None:
    error = FormatError("see {--names}", path="{--a}", line=3, remedy="Give {--columns}")
    assert str(error) == "{--a}:3: see --names. Give --columns"
    assert Message(error.template) == r"{\x2d-a}:3: see --names. Give --columns"
    error.spell(spell_loudly)
    assert str(error) == "{--a}:3: see NAMES(). Give COLUMNS()"


def test_control_characters_in_file_names_are_escaped() -> None:
    assert str(FormatError("bad", path="a\nb\x1b[2J\u2028é", line=3)) == (
        r"a\nb\x1b[2J\u2028é:3: bad"
    )
    assert str(FormatError("\x1b]0;\x07 twice", remedy="Leave\none")) == (
        r"\x1b]0;\x07 twice. Leave\none"
    )


def test_a_name_as_long_as_a_file_does_not_fill_the_screen() -> None:
    assert len(str(FormatError("x" * 10**7, path="a", remedy="Cut it"))) < 1100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"LM0=", "'LM0='"),
        ("für".encode(), "'für'"),
        ("f\udcfcr", r"'f\xfcr'"),
        (b"\x00\xff\t", r"'\x00\xff\t'"),
        ("\ufeffLM\u00a0", r"'\ufeffLM\xa0'"),
        ("a {--folds 5} b", r"'a {\x2d-folds 5} b'"),
        (b"x" * 40, f"'{'x' * 40}'"),
        (b"x" * 10**6, f"'{'x' * 40}...'"),
    ],
)
def test_quoted_text_is_printable(text: bytes | str, expected: str) -> None:
    assert quote(text) == expected
