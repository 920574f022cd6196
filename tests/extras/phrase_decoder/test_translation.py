"""The lines that the decoder writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats.moses.ini import MosesIni, read_moses_ini
from formats.nbest.files import read_nbest
from mosesplug.errors import DataError
from mosesplug.extras.phrase_decoder.model import load_model
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.settings import Settings, read_settings
from mosesplug.extras.phrase_decoder.translation import Translation, split_sentences, translate


def run(
    ini: MosesIni, *lines: bytes, size: int = 5, distinct: bool = True, overwrite: str = ""
) -> list[Translation]:
    wanted: Settings = read_settings({"config": [ini.path]}, ini)
    wanted = dataclasses.replace(
        wanted, n_best_file="list", n_best_size=size, n_best_distinct=distinct
    )
    sentences = split_sentences(lines)
    model = load_model(read_features(ini, overwrite), sentences)
    return [translate(model, wanted, number, words) for number, words in enumerate(sentences)]


def test_lists_read_back(random_system: Callable[..., Any], tmp_path: Path) -> None:
    ini = read_moses_ini(random_system(3).ini)
    results = run(ini, b"a b", b"c unknown\xff", b"")
    path = tmp_path / "list"
    path.write_bytes(b"".join(result.n_best for result in results))
    found = read_nbest(path)
    assert found.groups == (
        ("LexicalReordering0", 6),
        ("Distortion0", 1),
        ("LM0", 1),
        ("WordPenalty0", 1),
        ("PhrasePenalty0", 1),
        ("TM0", 2),
    )
    assert sorted(set(found.sentence_ids.tolist())) == [0, 1, 2]
    assert b"unknown\xff" in results[1].n_best
    assert results[2].best == b"\n"
    assert results[2].n_best.startswith(
        b"2 |||  ||| LexicalReordering0= 0 0 0 0 0 0 Distortion0= 0"
    )
    first = results[0].n_best.split(b" ||| ")[1].strip()
    assert results[0].best == first + b" \n"
    assert b"-0 " not in b"".join(result.n_best for result in results)


def test_a_list_without_distinct_repeats_words(random_system: Callable[..., Any]) -> None:
    ini = read_moses_ini(random_system(3).ini)
    # The two words alike can be translated in either order.
    (plain,) = run(ini, b"c c a", size=3000, distinct=False)
    (distinct,) = run(ini, b"c c a", size=3000)
    texts = [line.split(b" ||| ")[1] for line in plain.n_best.splitlines()]
    once = [line.split(b" ||| ")[1] for line in distinct.n_best.splitlines()]
    assert len(texts) > len(set(texts)) == len(once) == len(set(once))


def test_untuneable_components_are_not_in_the_list(random_system: Callable[..., Any]) -> None:
    system = random_system(3)
    text = system.ini.read_text()
    system.ini.write_text(text.replace("num-features=2", "num-features=2 tuneable-components=0,1"))
    (result,) = run(read_moses_ini(system.ini), b"a b")
    features = result.n_best.splitlines()[0].split(b" ||| ")[2]
    assert len(features.split(b"TM0= ")[1].split()) == 1


def test_weights_change_the_translation(random_system: Callable[..., Any]) -> None:
    ini = read_moses_ini(random_system(3).ini)
    short = run(ini, b"a b c", overwrite="WordPenalty0= 50")[0].best
    long = run(ini, b"a b c", overwrite="WordPenalty0= -50")[0].best
    assert len(short.split()) < len(long.split())


def test_a_separator_is_not_a_word() -> None:
    with pytest.raises(DataError, match="input line 2"):
        split_sentences([b"a", b"b ||| c"])
