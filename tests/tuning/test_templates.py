"""Templates of a run: feature functions in its moses.ini."""

from __future__ import annotations

import gzip
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError
from formats.moses.ini import read_moses_ini
from formats.weights.files import read_sparse
from mosesplug.decoders.description import DecoderCommand, MosesDecoder
from mosesplug.errors import DataError, DecoderError, StoreMismatch, UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning import tune
from mosesplug.tuning.setup import check_run
from mosesplug.tuning.templates import add_templates, check_functions
from tests.tuning.bundled import write_bundled_decoder, write_demo_config, write_demo_sentences

Toy = Any

DECLARATION = """\
[WT]
function = "WordTranslationFeature"
source-path = "top"
target-path = "top"

[PL]
function = "PhraseLengthFeature"
"""


@pytest.fixture
def declaration(toy: Toy) -> Path:
    path: Path = toy.directory / "templates.toml"
    path.write_text(DECLARATION)
    (toy.directory / "top").write_text("hund a\n")
    return path


def configure(toy: Toy, declaration: Path, **more: Any) -> Configuration:
    """A run with templates."""
    made: Configuration = toy.configuration(
        decoding={"templates": declaration},
        optimization={"algorithm": "kbmira", "options": {}},
        **more,
    )
    return made


def test_moses_ini(toy: Toy, declaration: Path) -> None:
    """Vocabularies are copied, and models found from the new file."""
    (toy.directory / "table").write_text("")
    config = toy.directory / "moses.ini"
    config.write_text(f"{config.read_text()}\n[feature]\nA path=table\n")
    given = configure(toy, declaration)
    check_functions(given)
    assert not (toy.directory / "work" / "templates").exists()
    extended = add_templates(given)
    assert extended.decoding.templates is None
    folder = extended.config.parent
    assert folder.parent == toy.directory / "work" / "templates"
    assert (folder / "WT.source-path").read_bytes() == b"a\nhund\n"
    features = {feature.name: feature for feature in read_moses_ini(extended.config).features}
    assert features["WT"].arguments["target-path"] == str(folder / "WT.target-path")
    assert features["PL"].kind == "PhraseLengthFeature"
    assert features["A0"].path == str(toy.directory / "table")
    assert add_templates(extended) is extended


def test_algorithm_of_dense_features(toy: Toy, declaration: Path) -> None:
    given = toy.configuration(decoding={"templates": declaration})
    with pytest.raises(UsageError, match=r"templates.toml would have no effect: mert .* kbmira"):
        check_functions(given)
    check_functions(replace(given, sparse_weights=declaration.parent / "sparse"))
    active = replace(given.optimization, active=("PL_*",))
    check_functions(replace(given, optimization=active))


def test_name_of_a_feature(toy: Toy, declaration: Path) -> None:
    config = toy.directory / "moses.ini"
    config.write_text(f"{config.read_text()}\n[feature]\nA name=PL\n")
    with pytest.raises(UsageError, match=r"\[PL\]: .*moses.ini has a feature of this name"):
        tune(configure(toy, declaration))
    assert not (toy.directory / "work" / "templates").exists()


def test_a_link_is_not_followed(toy: Toy, declaration: Path) -> None:
    (toy.directory / "work").mkdir()
    (toy.directory / "elsewhere").mkdir()
    (toy.directory / "work" / "templates").symlink_to(toy.directory / "elsewhere")
    with pytest.raises(DataError, match=r"templates is a link or a file"):
        tune(configure(toy, declaration))
    assert not list((toy.directory / "elsewhere").iterdir())


@pytest.mark.usefixtures("decoder_in_process")
def test_a_refused_call_does_not_change_the_run(toy: Toy, declaration: Path) -> None:
    folder = toy.directory / "work" / "templates"
    given = configure(toy, declaration, maximum_iterations=1)
    tune(given)
    before = {path: path.read_bytes() for path in folder.glob("*/*")}
    (toy.directory / "top").write_text("hund c\n")
    with pytest.raises(StoreMismatch, match="different configuration"):
        tune(replace(given, existing="continue"))
    assert len(before) == 3
    assert before == {path: path.read_bytes() for path in before}
    (toy.directory / "top").write_text("hund a\n")
    tune(replace(given, existing="continue", maximum_iterations=2))


@pytest.mark.usefixtures("decoder_in_process")
def test_a_rejected_run_leaves_no_copies(toy: Toy, declaration: Path) -> None:
    given = configure(toy, declaration)
    given = replace(given, optimization=replace(given.optimization, active=("LM7",)))
    with pytest.raises(UsageError, match="there is no feature LM7"):
        tune(given)
    assert not (toy.directory / "work").exists()


def test_other_decoders(toy: Toy, declaration: Path) -> None:
    decoder = DecoderCommand((sys.executable, "{weights}", "{input}", "{nbest}"))
    given = toy.configuration(decoding={"decoder": decoder, "templates": declaration})
    for check in (check_functions, check_run):
        with pytest.raises(UsageError, match=r"called as Moses is.*mosesplug rerank --templates"):
            check(given)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Feature name ShapeFeature is not registered.", "ShapeFeature"),
        ("WT: Unknown argument window=2", "window"),
        ("the bundled decoder supports Distortion and ShapeFeature", None),
    ],
)
def test_settings_that_moses_lacks(toy: Toy, message: str, name: str | None) -> None:
    declaration = toy.directory / "templates.toml"
    declaration.write_text('[PL]\nfunction = "PhraseLengthFeature"\n')
    decoder = toy.directory / "moses"
    decoder.write_text(f"#!/bin/sh\necho {message} >&2\nexit 1\n")
    decoder.chmod(0o755)
    given = configure(toy, declaration)
    with pytest.raises(DecoderError) as error:
        tune(add_program(given, decoder))
    hint = f"hint: only the bundled decoder computes {name}."
    assert (hint in str(error.value)) is (name is not None)
    assert ("hint" in str(error.value)) is (name is not None)


def test_missing_vocabulary(toy: Toy, declaration: Path) -> None:
    (toy.directory / "top").unlink()
    with pytest.raises(UsageError, match="No such file"):
        check_functions(configure(toy, declaration))


@pytest.mark.usefixtures("decoder_in_process")
def test_features_are_tuned(toy: Toy) -> None:
    """The bundled decoder computes them, gets their weights, and translates with the result."""
    write_demo_sentences(toy.directory, 4)
    declaration = toy.directory / "templates.toml"
    declaration.write_text('[WT]\nfunction = "WordTranslationFeature"\n')
    given = toy.configuration(
        input=toy.directory / "tarvian",
        references=toy.directory / "english",
        config=write_demo_config(toy.directory),
        decoding={"templates": declaration, "nbest": 5},
        optimization={"algorithm": "kbmira", "options": {}},
        maximum_iterations=2,
    )
    decoder = write_bundled_decoder(toy.directory / "bundled")
    given = add_program(given, decoder)
    result = tune(given)
    assert any(name.startswith("WT_") for name in result.weights.sparse)
    ini = read_moses_ini(toy.directory / "work" / "moses.ini")
    (sparse,) = ini.section("weight-file")
    assert read_sparse(Path(sparse.text)).keys() == {
        name for name, value in result.weights.sparse.items() if value
    }
    assert any(feature.name == "WT" for feature in ini.features)


TABLE = "ein hund ||| a dog ||| 0.1 ||| 0-0 1-1 ||| 1 1\nhund ||| dog ||| 0.1 ||| {} ||| 1 1\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.format("0-0"), None),
        (
            TABLE.format("") + "um |||  ||| 0.1\n",
            r"table.gz:2: the entry has no word alignment, so WT",
        ),
        (TABLE.format("0-0") + "um |||  ||| 0.1\n", None),
        (TABLE.format("0-1"), r"gz:2: the alignment point 0-1 is outside .* Correct or remove"),
        ("hund ||| dog ||| 0.1\n", r"table.gz:1: .*, so WT in .*templates.toml .*Write alignment"),
    ],
)
def test_alignments_of_the_phrase_table(
    toy: Toy, declaration: Path, table: str, message: str | None
) -> None:
    """Moses writes no features without alignments, and may crash for other points."""
    (toy.directory / "table.gz").write_bytes(gzip.compress(table.encode()))
    config = toy.directory / "moses.ini"
    line = "PhraseDictionaryMemory name=T path=table"
    config.write_text(f"{config.read_text()}\n[feature]\n{line}\n")
    given = configure(toy, declaration)
    if message is None:
        check_functions(given)
        return
    with pytest.raises(FormatError, match=message):
        tune(given)
    assert not (toy.directory / "work").exists()
    declaration.write_text('[PL]\nfunction = "PhraseLengthFeature"\n')
    check_functions(given)


def test_functions_without_factors(toy: Toy) -> None:
    """Moses never sets a factor that the line does not name."""
    config = toy.directory / "moses.ini"
    plain = config.read_text()
    config.write_text(f"{plain}\n[feature]\nTargetBigramFeature name=TB path=*\n")
    n_lines = len(config.read_text().splitlines())
    message = f"moses.ini:{n_lines}: TargetBigramFeature has no factor: .* Add factor=0 to the line"
    with pytest.raises(FormatError, match=message):
        tune(toy.configuration())
    assert not (toy.directory / "work").exists()
    line = "WordTranslationFeature name=WT output-factor=1"
    config.write_text(f"{plain}\n[feature]\n{line}\n")
    with pytest.raises(FormatError, match=r"has no input-factor: .* Add input-factor=0"):
        check_functions(toy.configuration())
    config.write_text(f"{plain}\n[feature]\n{line} input-factor=0\n")
    check_functions(toy.configuration())


def test_a_vocabulary_of_another_text(toy: Toy, declaration: Path) -> None:
    (toy.directory / "top").write_text("zwei drei\n")
    message = r"templates.toml: \[WT\]: .*input has no word of .* such as drei. Give"
    with pytest.raises(UsageError, match=message):
        tune(configure(toy, declaration))
    assert not (toy.directory / "work").exists()


def test_a_vocabulary_without_words_of_the_phrase_table(toy: Toy, declaration: Path) -> None:
    """No hypothesis would have a feature; the words of other tables are unknown."""
    declaration.write_text('[TB]\nfunction = "TargetBigramFeature"\npath = "top"\n')
    config = toy.directory / "moses.ini"
    plain, other = config.read_text(), "PhraseDictionaryCompact name=C path=table\n"
    table = "[feature]\nPhraseDictionaryMemory name=T path=table\n"
    config.write_text(f"{plain}\n{table}")
    (toy.directory / "table").write_text("ein hund ||| the dog ||| 0.1\n")
    given = configure(toy, declaration)
    with pytest.raises(UsageError, match=r"\[TB\]: .*table has no word of .* such as a. Give"):
        tune(given)
    assert not (toy.directory / "work").exists()
    config.write_text(f"{plain}\n{table}{other}")
    check_functions(given)
    config.write_text(f"{plain}\n{table}")
    (toy.directory / "table").write_text("ein hund ||| a dog ||| 0.1\n")
    check_functions(given)


def test_a_template_without_features_in_the_phrase_table(toy: Toy, declaration: Path) -> None:
    """All target words are aligned, so that no hypothesis inserts one."""
    declaration.write_text('[TWI]\nfunction = "TargetWordInsertionFeature"\n')
    config = toy.directory / "moses.ini"
    plain = config.read_text()
    config.write_text(f"{plain}\n[feature]\nPhraseDictionaryMemory name=T path=table\n")
    aligned, unaligned = "hund ||| dog ||| 0.1 ||| 0-0\n", "hund ||| a dog ||| 0.1 ||| 0-1\n"
    (toy.directory / "table").write_text(aligned)
    given = configure(toy, declaration)
    with pytest.raises(UsageError, match=r"\[TWI\]: no phrase pair of .*table has .* Remove it"):
        tune(given)
    assert not (toy.directory / "work").exists()
    (toy.directory / "table").write_text(f"{aligned}{unaligned}")
    check_functions(given)
    (toy.directory / "table").write_text(aligned)
    config.write_text(f"{config.read_text()}\n[xml-input]\nexclusive\n")
    check_functions(given)


def add_program(configuration: Any, decoder: Path) -> Any:
    decoding = replace(configuration.decoding, decoder=MosesDecoder(decoder, ()))
    return replace(configuration, decoding=decoding)
