"""Templates in lists that are learned from and ranked again."""

from __future__ import annotations

from pathlib import Path

import pytest

import mosesplug
from formats.nbest.list_format import SentenceIds
from mosesplug.errors import DataError, UsageError
from mosesplug.learning.lists.blocks import read_file_blocks
from mosesplug.results.weights.algebra import combine
from mosesplug.results.weights.sources import resolve_weights
from mosesplug.settings.lists import ListSettings

LISTS = """\
0 ||| the dog ||| LM= -1 ||| -1 ||| 0=0 1=1 ||| 0-0 1-1
0 ||| the hound ||| LM= -1 ||| -1 ||| 0=0 1=1 ||| 0-0 1-1
1 ||| a hound ||| LM= -2 ||| -2 ||| 0-1=0-1 ||| 0-0 1-1
1 ||| a dog ||| LM= -2 ||| -2 ||| 0-1=0-1 ||| 0-0 1-1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lists").write_text(LISTS)
    Path("source").write_text("der hund\nein hund\n")
    Path("reference").write_text("the dog\na dog\n")
    Path("templates.toml").write_text('[WT]\nfunction = "WordTranslationFeature"\n')
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_learn_and_rank() -> None:
    """Weights that are learned from templates choose by them, and name them."""
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    fit = mosesplug.optimize("lists", references="reference", algorithm="kbmira", seed=1, **reading)
    assert fit.weights["WT_hund~dog"] > 0 > fit.weights["WT_hund~hound"]
    fit.save("weights")
    assert Path("weights").read_text().startswith("# templates: templates.toml\n")
    assert mosesplug.rerank("lists", "weights", **reading).texts == ["the dog", "a dog"]
    with pytest.raises(UsageError, match=r"learned with templates: add templates templates.toml"):
        mosesplug.rerank("lists", "weights")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["weights", "weights.json", "weights.yaml"])
def test_changed_templates_are_refused(name: str) -> None:
    """Weights record what the templates were when the lists were read, not when they are saved."""
    Path("words").write_text("dog\nhund\n")
    vocabulary = '[WT]\nfunction = "WordTranslationFeature"\ntarget-path = "words"\n'
    Path("templates.toml").write_text(vocabulary)
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    fit = mosesplug.optimize("lists", references="reference", algorithm="kbmira", seed=1, **reading)
    Path("words").write_text("hound\nhund\n")
    fit.save(name)
    refused = pytest.raises(UsageError, match=rf"{name} was learned with other templates or voc")
    with refused:
        mosesplug.rerank("lists", name, **reading)
    with refused:
        mosesplug.mbr("lists", weights=name, **reading)
    # The same words in another order, a comment and another name of the file are the same.
    Path("words").write_text("hund\ndog\n")
    Path("moved.toml").write_text(f"# of the demo\n{vocabulary}")
    moved: mosesplug.ListKeywords = {**reading, "templates": "moved.toml"}
    assert mosesplug.rerank("lists", name, **moved).texts == ["the dog", "a dog"]
    Path("moved.toml").write_text(f"{vocabulary}simple = false\nsource-context = true\n")
    with refused:
        mosesplug.rerank("lists", name, **moved)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "template",
    [
        'function = "SourceWordDeletionFeature"\npath = "words"',
        'function = "WordTranslationFeature"\nsource-path = "words"',
        'function = "PhrasePairFeature"\nsource-context = true\npath = "words"',
    ],
)
def test_vocabularies_without_a_word_of_the_source(template: str) -> None:
    """They are refused where weights are learned; other text may lack all words."""
    Path("words").write_text("katze\nhund\n")
    Path("templates.toml").write_text(f"[X]\n{template}\n")
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    fit = mosesplug.optimize("lists", references="reference", algorithm="kbmira", seed=1, **reading)
    Path("source").write_text("der vogel\nein vogel\n")
    with pytest.raises(UsageError, match=r"templates.toml: \[X\]: source has no word of its voc"):
        mosesplug.optimize("lists", references="reference", algorithm="kbmira", seed=1, **reading)
    assert mosesplug.rerank("lists", fit.weights, **reading).texts


@pytest.mark.usefixtures("folder")
def test_weights_of_different_templates_have_no_mean() -> None:
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    for name in ("one", "other"):
        fit = mosesplug.optimize("lists", references="reference", algorithm="kbmira", **reading)
        fit.save(name)
        Path("templates.toml").write_text('[WT]\nfunction = "PhrasePairFeature"\n')
    every = [resolve_weights(name) for name in ("one", "other")]
    with pytest.raises(DataError, match="one and other were learned with different templates"):
        combine(every, [0.5, 0.5], "mean", normalized=True)
    assert combine([every[0]] * 2, [0.5, 0.5], "mean", normalized=True).changes == every[0].changes


@pytest.mark.usefixtures("folder")
def test_algorithm_of_dense_features() -> None:
    """Templates without weights are refused; those with weights help to tune dense features."""
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    with pytest.raises(UsageError, match=r"templates.toml would have no effect: mert .* kbmira"):
        mosesplug.optimize("lists", references="reference", **reading)
    initial: dict[str, float] = {"LM": 1.0, "WT_hund~dog": 2.0}
    fit = mosesplug.optimize("lists", references="reference", initial=initial, seed=1, **reading)
    assert fit.weights["WT_hund~dog"] > 0.0


@pytest.mark.usefixtures("folder")
def test_template_without_features() -> None:
    Path("words").write_text("hund\n")
    Path("templates.toml").write_text('[TB]\nfunction = "TargetBigramFeature"\npath = "words"\n')
    reading: mosesplug.ListKeywords = {"templates": "templates.toml", "source": "source"}
    fit = mosesplug.optimize("lists", references="reference", algorithm="kbmira", **reading)
    assert "templates.toml: [TB]: no hypothesis has a feature of this template" in fit.warnings[0]
    Path("templates.toml").write_text('[TB]\nfunction = "TargetBigramFeature"\n')
    fit = mosesplug.optimize(
        "lists", references="reference", algorithm="kbmira", drop_feature=["TB_*"], **reading
    )
    assert not any("template" in warning for warning in fit.warnings)


@pytest.mark.usefixtures("folder")
def test_ids_that_are_texts() -> None:
    ids = SentenceIds(("doc-1",))
    settings = ListSettings(templates=Path("templates.toml"), source=Path("source"))
    with pytest.raises(UsageError, match=r"ids such as doc-1. Number the sentences"):
        list(read_file_blocks("lists", settings, ids=ids))


@pytest.mark.usefixtures("folder")
def test_held_out_lists_need_their_source() -> None:
    with pytest.raises(UsageError, match="source of the held-out lists, too"):
        mosesplug.optimize(
            "lists",
            references="reference",
            algorithm="kbmira",
            templates="templates.toml",
            source="source",
            heldout_lists="lists",
            heldout_references="reference",
        )
