"""Declarations of templates, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import FormatError
from mosesplug.errors import UsageError
from mosesplug.templates.declaration import read_ini_function, read_templates
from mosesplug.templates.functions import (
    PhrasePairFeature,
    TargetNgramFeature,
    WordTranslationFeature,
)

WORD_TRANSLATION = '[WT]\nfunction = "WordTranslationFeature"\n'


def declare(folder: Path, text: str) -> Path:
    path = folder / "templates.toml"
    path.write_text(text)
    return path


def test_all_keys(tmp_path: Path) -> None:
    """Paths are relative to the file; the most frequent words are those of each."""
    (tmp_path / "train.de").write_text("das das haus\nalt haus da\n")
    path = declare(
        tmp_path,
        WORD_TRANSLATION + "simple = false\nsource-context = true\nwindow = 1\n"
        'source-path = "train.de"\nmost-frequent = 3\n'
        '[TN]\nfunction = "TargetNgramFeature"\nn = 2\nfile = "train.de"\n',
    )
    templates = read_templates(path)
    assert templates.templates == (
        WordTranslationFeature(
            "WT",
            simple=False,
            source_context=True,
            window=1,
            source_words=frozenset(("das", "haus", "alt")),
        ),
        TargetNgramFeature("TN", n=2, words=frozenset(("das", "haus", "alt", "da"))),
    )
    assert templates.needs == {"alignment"}
    assert templates.local == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no template is declared"),
        ("x = ", "not valid TOML"),
        ("x = 1", "x is not a table"),
        ("[W_T]\n", "a letter, followed by letters, digits or hyphens. Rename"),
        ("[WT]\nsimple = true", "the key function is missing. Give one of Word"),
        ('[WT]\nfunction = "WordTranslation"', "unknown function.*Did you mean WordTranslationF"),
        (WORD_TRANSLATION + "sources = true", r"\[WT\]: unknown key sources; WordTranslat.*path"),
        (WORD_TRANSLATION + "simple = 1", "WT. simple: expected true or false, not 1"),
        (WORD_TRANSLATION + "source-path = true", "source-path: expected the name of a file"),
        (WORD_TRANSLATION + "window = -1", "window: expected an integer of at least 0, not -1"),
        (WORD_TRANSLATION + "window = 1", "window: requires source-context or target-context"),
        (WORD_TRANSLATION + "most-frequent = 9", "requires source-path or target-path"),
        (
            WORD_TRANSLATION + "simple = false",
            "no context, the template has no features. Set source-context or target-context",
        ),
        (
            '[PP]\nfunction = "PhrasePairFeature"\npath = "templates.toml"',
            "requires source-context",
        ),
        ('[SH]\nfunction = "ShapeFeature"\nwords = false', "set words or alignment to true"),
        ('[PL]\nfunction = "PhraseLengthFeature"\nmost-frequent = 9', "unknown key most-frequent"),
    ],
)
def test_usage_errors(tmp_path: Path, text: str, message: str) -> None:
    path = declare(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        read_templates(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_vocabularies(tmp_path: Path) -> None:
    path = declare(tmp_path, WORD_TRANSLATION + 'target-path = "top.en"')
    with pytest.raises(UsageError, match=r"\[WT\] target-path: .*top.en: No such file"):
        read_templates(path)
    (tmp_path / "top.en").write_text(" \n")
    with pytest.raises(FormatError, match=r"the file has no words, so .* OTHER") as caught:
        read_templates(path)
    assert caught.value.path == str(tmp_path / "top.en")


def test_ini_functions(tmp_path: Path) -> None:
    line = "PhrasePairFeature name=PP input-factor=0 output-factor=0 unrestricted=1 simple=1"
    assert read_ini_function(line, tmp_path) == PhrasePairFeature("PP")
    line = "WordTranslationFeature simple=0 source-context=1 target-context=0"
    template = WordTranslationFeature("WordTranslationFeature0", simple=False, source_context=True)
    assert read_ini_function(line, tmp_path) == template
    line += " domain-trigger=0 tuneable=Yes filterable=1 texttype=source ignore-punctuation=f"
    assert read_ini_function(line, tmp_path) == template
    # Without it, Moses needs the vocabulary; with it, Moses does not read the file.
    line = "PhrasePairFeature name=PP source-context=1 unrestricted=1 path=missing"
    assert read_ini_function(line, tmp_path) == PhrasePairFeature("PP", source_context=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "WordTranslationFeature name=WT input-factor=1",
            "input-factor: templates support factor 0 only",
        ),
        ("WordTranslationFeature name=WT domain-trigger=1", "support domain-trigger=false only"),
        ("PhraseLengthFeature tuneable=no", "tuneable=no: templates support tuneable=true only"),
        ("WordTranslationFeature name=WT simple=x", "expected true or false, not 'x'"),
        ("WordTranslationFeature name=WT window-size=1", "unknown key window-size"),
        ("PhraseBoundaryFeature name=PB", "unknown function PhraseBoundaryFeature"),
    ],
)
def test_ini_functions_without_template(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_ini_function(line, tmp_path)
