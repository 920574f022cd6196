"""Control characters in texts that people see."""

from __future__ import annotations

import json
import unicodedata

from mosesplug.escapes import escape_controls, escape_json


def test_no_control_character_remains() -> None:
    everything = "".join(map(chr, range(0x110000)))
    shown = escape_controls(everything)
    kinds = {unicodedata.category(character) for character in shown}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    # Embeddings, overrides and isolates. Marks and joiners belong to some spellings.
    assert not {unicodedata.bidirectional(character) for character in shown} & {
        *("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    }
    assert {"\u200d", "\u200e", "\u00ad", "\ufeff"} <= set(shown)


def test_they_are_written_as_python_writes_them() -> None:
    text = "a\t\n\r\x1b\x7f\x9b\u2028\u202e"
    assert escape_controls(text) == r"a\t\n\r\x1b\x7f\x9b\u2028\u202e"
    assert escape_controls(text, keeps_lines=True) == "a\t\n" + r"\r\x1b\x7f\x9b\u2028\u202e"
    assert escape_controls(b"\x9b\xff".decode("utf-8", "surrogateescape")) == r"\x9b\xff"
    assert escape_controls("das Häuschen") == "das Häuschen"


def test_json_keeps_its_values() -> None:
    values = {"a\x7f\x9b": ["\x1b\t\n\u202e\u2066", "ü"]}
    text = json.dumps(values, ensure_ascii=False, indent=1)
    shown = escape_json(text)
    assert json.loads(shown) == values
    assert escape_controls(shown, keeps_lines=True) == shown
