"""Sums of sparse weights in phrase tables: what a decoder adds up, and what lists get."""

from __future__ import annotations

import math
import pickle
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers.exactness import _fold as fold_sums
from mosesplug.decoders.servers.folded_tables import CannotFoldError, FoldedTables
from mosesplug.decoders.servers.sentence_tables import SentenceTables, remove_tables
from mosesplug.errors import DecoderError
from tests.decoders.batches import make_process, make_server

TABLE = (
    "das haus ||| the house ||| 0.1 0.2 ||| 0-0 1-1 ||| 3 4\n"
    "das haus ||| a house ||| 0.3 0.4 ||| 0-1 1-1\n"
    "das ||| this one ||| 0.5 0.6\n"
    "klein ||| small ||| 0.7 0.8 ||| 0-0\n"
)
INI = """\
[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM num-features=2 path=table # text
WordTranslationFeature name=WT simple=1 source-context=0
TargetWordInsertionFeature name=TWI factor=0
SourceWordDeletionFeature name=SWD factor=0
KENLM name=LM0 path=lm
[weight]
UnknownWordPenalty0= 0.5
TM= 0.2 0.3
LM0= 1
"""
SENTENCE = b"das haus klein neu"
WEIGHTS = {"WT_das~the": 1.25, "WT_haus~house": -3.1e-5, "TWI_a": 0.3, "TWI_one": -77.0}
WEIGHTS |= {"SWD_das": 0.01, "WT_das~house": 5.0, "WT_neu~neu": 0.75, "TWI_this": 2.0}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "table").write_text(TABLE)
    path = tmp_path / "moses.ini"
    path.write_text(INI)
    return path


def fold(config: Path, *flags: str, sentence: bytes = SENTENCE) -> FoldedTables:
    tables = SentenceTables.of(config, flags)
    assert tables is not None
    return FoldedTables.fold(tables, flags, config.parent, [sentence])


def add_up(
    tables: FoldedTables, weights: dict[str, float], directory: Path, sentence: bytes = SENTENCE
) -> dict[str, float]:
    """Return the sums of entries as the decoder computes them: of digits, and of the last score."""
    constants: dict[str, float] = defaultdict(float)
    for line in tables.format_constant_weights().decode().splitlines():
        name, value = line.split()
        constants[name] = float(value)
    tables.write(sentence, directory / "tables", directory, weights)
    sums = {}
    for line in (directory / "tables" / "TM" / "grammar.0.gz").read_text().splitlines():
        source, target, scores, alignment = (field.strip() for field in line.split("|||")[:4])
        factors = [word.split("|") for word in target.split()]
        digits = sum(
            constants[f"FoldedSum{factor}_OTHER~{factors[int(point.split('-')[1])][factor]}"]
            for point in alignment.split()
            for factor in (1, 2, 3)
        )
        score = tables.folding.scale * math.log(float(scores.split()[2]))
        sums[f"{source} ||| {' '.join(words[0] for words in factors)}"] = digits + score
    return sums


EXPECTED = {
    "das haus ||| the house": 1.25 - 3.1e-5,
    "das haus ||| a house": 5.0 - 3.1e-5 + 0.3,
    "das ||| this one": 2.0 - 77.0 + 0.01,
    "klein ||| small": 0.0,
    "haus ||| haus": -50.0,
    "neu ||| neu": 0.75 - 50.0,
}
"""By hand; the unknown words have a penalty of 0.5 times 100."""


def test_the_decoder_adds_up_the_weights_of_each_phrase_pair(config: Path, tmp_path: Path) -> None:
    tables = fold(config)
    sums = add_up(tables, WEIGHTS, tmp_path)
    assert sums == pytest.approx(EXPECTED, abs=2e-7)
    again = pickle.loads(pickle.dumps(tables))
    assert add_up(again, WEIGHTS, tmp_path) == sums
    assert add_up(tables, {}, tmp_path)["das ||| this one"] == 0.0


def test_dropped_unknown_words(config: Path, tmp_path: Path) -> None:
    tables = fold(config, "-drop-unknown")
    sums = add_up(tables, {"SWD_neu": 4.0}, tmp_path)
    assert sums["neu ||| "] == pytest.approx(4.0 - 50.0, abs=1e-6)
    text, features = tables.complete(SENTENCE)(b"this one |0-0| small |2-2|", b"LM0= -1")
    assert text == b"this one small"
    assert features == (
        b"LM0= -1 TWI_this= 1 TWI_one= 1 SWD_das= 1 WT_klein~small= 1 SWD_haus= 1 SWD_neu= 1"
    )


def test_the_features_of_a_hypothesis(config: Path, tmp_path: Path) -> None:
    tables = fold(config)
    tables.write(SENTENCE, tmp_path / "tables", tmp_path, {})
    text, features = tables.complete(SENTENCE)(
        b"small |2-2| neu |3-3| a house |0-1| ", b"LM0= -1 TM= -2 -3"
    )
    assert text == b"small neu a house"
    assert features == (
        b"LM0= -1 TM= -2 -3 WT_klein~small= 1 WT_neu~neu= 1 WT_das~house= 1 WT_haus~house= 1"
        b" TWI_a= 1"
    )
    with pytest.raises(DecoderError, match=r"used 'das haus \|\|\| no house', which its phrase"):
        tables.complete(SENTENCE)(b"no house |0-1|", b"")
    with pytest.raises(DecoderError, match="without its phrases"):
        tables.complete(SENTENCE)(b"small |2-2| neu", b"")


CONTEXTS = {
    "WT_das,haus~house": 0.5,
    "WT_haus,klein~house": 0.25,
    "WT_klein,haus~house": 2.0,
    "WT_<s>,das~the": 4.0,
    "PP_klein~das~haus~~the~house": 8.0,
    "PP_haus~neu~~neu": 16.0,
}
REPEATED = b"das haus klein neu haus"


def test_contexts_of_each_place(config: Path, tmp_path: Path) -> None:
    """By hand; the unknown ``haus`` at the end has an entry of its own."""
    functions = "source-context=1\nPhrasePairFeature name=PP unrestricted=1 source-context=1"
    config.write_text(INI.replace("source-context=0", functions))
    tables = fold(config, sentence=REPEATED)
    sums = add_up(tables, WEIGHTS | CONTEXTS, tmp_path, REPEATED)
    assert sums == pytest.approx(
        {
            "das|0 haus|1 ||| the house": 1.25 - 3.1e-5 + 0.5 + 0.25 + 4.0 + 8.0,
            # das~house has the context haus twice
            "das|0 haus|1 ||| a house": 5.0 - 3.1e-5 + 0.3 + 3 * 0.5 + 0.25,
            "das|0 ||| this one": 2.0 - 77.0 + 0.01,
            "klein|2 ||| small": 0.0,
            "neu|3 ||| neu": 0.75 + 2 * 16.0 - 50.0,
            "haus|1 ||| haus": -50.0,
            "haus|4 ||| haus": -50.0,
        }
    )
    assert tables.mark_text(b"das haus\tdas ") == b"das|0 haus|1 das|2"
    _, features = tables.complete(b"klein neu klein")(b"small |2-2| neu |1-1| small |0-0|", b"")
    values = dict(zip(*[iter(features.decode().replace("=", "").split())] * 2, strict=True))
    assert values == {
        **dict.fromkeys(("WT_klein~small", "PP_klein~~small"), "2"),
        **dict.fromkeys(("WT_neu~neu", "PP_neu~~neu", "WT_<s>,klein~small"), "1"),
        **dict.fromkeys(("WT_neu,klein~small", "WT_klein,neu~small"), "1"),
        **dict.fromkeys(("WT_klein,neu~neu", "WT_neu,klein~neu", "PP_neu~neu~~neu"), "1"),
        **dict.fromkeys(("WT_klein,klein~small", "PP_klein~neu~~neu", "PP_neu~klein~~small"), "2"),
        "PP_klein~klein~~small": "4",
    }
    tables.write_config(tmp_path / "server1.moses.ini", Path("server1.tables"))
    text = (tmp_path / "server1.moses.ini").read_text()
    assert re.search(r"PhraseDictionaryALSuffixArray .* input-factor=0,1\n", text)
    assert text.endswith("\n[input-factors]\n0\n1\n")
    with pytest.raises(CannotFoldError, match="called with input-factors"):
        fold(config, "-input-factors", "0")


def test_the_configuration(config: Path, tmp_path: Path) -> None:
    tables = fold(config)
    tables.write_config(tmp_path / "server1.moses.ini", Path("server1.tables"))
    lines = (tmp_path / "server1.moses.ini").read_text().splitlines()
    sums = [line for line in lines if line.startswith("WordTranslationFeature")]
    assert [re.findall(r"name=(\S+).* output-factor=(\d)", line) for line in sums] == [
        [(f"FoldedSum{factor}", str(factor))] for factor in (1, 2, 3)
    ]
    assert lines[2] == (
        "PhraseDictionaryALSuffixArray path=server1.tables/TM name=TM num-features=3"
        " output-factor=0,1,2,3 tuneable-components=1,1,0"
    )
    assert not any(re.match("TargetWord|SourceWord", line) for line in lines)
    for path in re.findall(r"(?:source|target)-path=(\S+)", sums[0]):
        assert (tmp_path / path).is_file()
    sent = tables.convert_weights(
        ModelWeights((WeightGroup("LM0", (1.0,)), WeightGroup("TM", (0.2, 0.3))), {"WT_a~b": 1.0})
    )
    assert sent.overwrite() == "LM0= 1 TM= 0.2 0.3 2"
    assert not sent.sparse
    remove_tables(tmp_path / "server1.tables")
    assert not (tmp_path / "server1.tables").exists()


def test_features_that_a_sentence_can_have(config: Path) -> None:
    """By hand: those of ``EXPECTED``, and of words without alignment."""
    listed = list(fold(config).list_features([SENTENCE], config.parent))
    words = "das~the haus~house das~house klein~small haus~haus neu~neu"
    assert sorted(listed) == sorted(
        [*(f"WT_{pair}" for pair in words.split()), "TWI_a", "TWI_this", "TWI_one", "SWD_das"]
    )


def test_names_that_begin_alike(config: Path) -> None:
    config.write_text(INI.replace("KENLM", "WordTranslationFeature name=W-2\nKENLM"))
    sparse = {"WT_a": 1.0, "W-2_a_b": 2.0, "W_a": 3.0, "WT2_a": 4.0, "WT": 5.0, "TWI__": 6.0}
    sent = fold(config).convert_weights(ModelWeights((), sparse))
    assert sent.sparse == {"W_a": 3.0, "WT2_a": 4.0, "WT": 5.0}


def test_a_sum_that_no_entry_can_hold(config: Path, tmp_path: Path) -> None:
    tables = fold(config)
    with pytest.raises(DecoderError, match="add up to more than its entry"):
        tables.write(SENTENCE, tmp_path / "tables", tmp_path, {"TWI_a": 1e4})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("KENLM", "PhraseBoundaryFeature"), r"LM0 \(PhraseBoundaryFeature\) depends on more"),
        (("source-context=0", "target-context=1"), r"WT .* depends on more than one phrase pair"),
        (("source-context=0", "domain-trigger=1"), "support domain-trigger=false only"),
        (("name=LM0", "name=LM0 sparse-words=w"), r"LM0 \(KENLM\) depends on more"),
        (("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n"), "UnknownWordPenalty0 is"),
        (("[weight]", "[mark-unknown]\n1\n[weight]"), "called with mark-unknown"),
        (("[weight]", "[mapping]\n0 T 0\n0 G 0\n[weight]"), "mapping is 0 T 0 0 G 0"),
        (("LM0= 1", "LM0= 1\nWT_das~the= 0.1"), r"\[weight\] has the sparse weight 'WT_das~the"),
        (("KENLM", "PhraseDictionaryMemory num-features=1 path=table\nKENLM"), "another phrase"),
        (("num-features=2", "num-features=2 output-factor=0,1"), "several factors"),
    ],
)
def test_models_that_cannot_be_folded(config: Path, change: tuple[str, str], reason: str) -> None:
    assert change[0] in INI
    config.write_text(INI.replace(*change))
    with pytest.raises(CannotFoldError, match=reason):
        fold(config)


def test_sentences_that_cannot_be_folded(config: Path) -> None:
    """The decoder keeps the factors of unknown words, and sums would be among them."""
    with pytest.raises(CannotFoldError, match=r"sentence 'neu\|ADJ' has several factors"):
        fold(config, sentence=b"neu|ADJ")


def test_weights_that_cannot_be_folded(
    config: Path, tmp_path: Path, stand_in: Callable[..., MosesDecoder]
) -> None:
    """A server restarts for them, and does not claim to fold the others."""
    decoder = stand_in()
    config.write_text(INI)  # after that of the stand-in
    tables = SentenceTables.of(config)
    weights = ModelWeights((), {"WT_das~the": 1.0, "TB_ein:mann": 1.0})
    fresh = make_process(decoder, tmp_path)
    with make_server(decoder, tmp_path) as server:
        assert fold_sums(server, fresh, tables, [(0, SENTENCE)], weights, (), ()) is None
        assert server.no_folding is not None
        assert server.no_folding.startswith("TB_ein:mann belongs to no function that depends on")
