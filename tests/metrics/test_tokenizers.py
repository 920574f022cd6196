"""Metrics with sacrebleu's tokenizers, against sacrebleu."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics import Bleu, Metric, PreparedReferences, TerSacrebleu, metric, tokenizers
from mosesplug.metrics.registry import metric_of_signature
from mosesplug.metrics.tokenizers import TOKENIZERS, Tokenization, tokenize_lines

BUILT_IN = ("13a", "intl", "zh", "char")
"""Tokenizers that need no other package."""

WORDS = st.sampled_from(
    [
        *("the", "The", "cat", "cat.", "3,5", "1,000.00", "U.S.", "e-mail", "2-3", "don't", '"a"'),
        *("ÄRGER", "ärger", "İstanbul", "Σίσυφος", "&amp;", "&quot;", "<skipped>", "100%", "€5"),
        *("我们在这里", "中文,", "(日本語)。", "한국어", "★", "a\u0301"),
        *("\u3000", "\u2028", "\xa0", "\t", "\r"),
    ]
)
LINES = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=25),
    st.sampled_from(["", " ", "  a  b. ", "Hello, world!  "]),
)


def statistics(
    metric: Metric, prepared: PreparedReferences, lines: Sequence[bytes]
) -> NDArray[np.int32]:
    """Return the statistics of one hypothesis for each sentence."""
    ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    buffer = np.frombuffer(b"".join(lines), dtype=np.uint8)
    return metric.statistics(prepared, np.arange(len(lines)), buffer, starts, ends)


@st.composite
def texts(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Hypotheses, and one to three references of each."""
    size = draw(st.integers(1, 4))
    lines = st.lists(LINES, min_size=size, max_size=size)
    return draw(lines), draw(st.lists(lines, min_size=1, max_size=3))


def encoded(lines: Sequence[str]) -> list[bytes]:
    return [line.encode() for line in lines]


@given(texts=texts(), tokenizer=st.sampled_from(BUILT_IN), lowercase=st.booleans())
def test_bleu_statistics_equal_sacrebleu(
    texts: tuple[list[str], list[list[str]]], tokenizer: str, lowercase: bool
) -> None:
    hypotheses, references = texts
    ours = Bleu(lowercase=lowercase, tokenizer=tokenizer)
    prepared = ours.prepare([encoded(lines) for lines in references])
    rows = statistics(ours, prepared, encoded(hypotheses))
    theirs = sacrebleu.BLEU(tokenize=tokenizer, lowercase=lowercase, force=True)
    expected = theirs._extract_corpus_statistics(hypotheses, references)
    # sacrebleu: length, reference length, matches, totals.
    found = np.concatenate([rows[:, [1, 8]], rows[:, 0:8:2], rows[:, 1:8:2]], axis=1)
    assert found.tolist() == expected


@given(texts=texts(), asian=st.booleans(), lowercase=st.booleans())
def test_ter_statistics_equal_sacrebleu(
    texts: tuple[list[str], list[list[str]]], asian: bool, lowercase: bool
) -> None:
    hypotheses, references = texts
    ours = TerSacrebleu(lowercase, tokenizer="tercom-asian" if asian else "tercom")
    prepared = ours.prepare([encoded(lines) for lines in references])
    rows = statistics(ours, prepared, encoded(hypotheses)) / len(references)
    theirs = sacrebleu.TER(normalized=True, asian_support=asian, case_sensitive=not lowercase)
    expected = np.array(theirs._extract_corpus_statistics(hypotheses, references))
    np.testing.assert_allclose(rows, expected)


HYPOTHESES = [
    'The "cat" sat on the mat, at 3.5% of e-mail cost.',
    "In the U.S., it's 1,000 dollars (ÄRGER included).",
    'The "cat" sat on the mat, at 3.5% of e-mail cost.',
]
REFERENCES = [
    [
        'A "cat" sat on the mat at 3.5% of e-mail cost!',
        "In the U.S. it's 1,000 dollars (ärger included).",
        "The cat sat on a mat, at 3.5% of all e-mail cost.",
    ],
    [
        'The "Cat" is on the mat, at 4% of e-mail cost.',
        "It is $1,000 in the US (ärger included).",
        'The "cat" sat there on the mat, at 3.5% cost.',
    ],
]


@pytest.mark.parametrize("tokenizer", BUILT_IN)
@pytest.mark.parametrize("case", ["true", "false"])
@pytest.mark.parametrize("n_references", [1, 2])
def test_corpus_bleu_equals_sacrebleu(tokenizer: str, case: str, n_references: int) -> None:
    ours = metric("BLEU", f"tokenize:{tokenizer},case:{case}")
    references = REFERENCES[:n_references]
    prepared = ours.prepare([encoded(lines) for lines in references])
    totals = statistics(ours, prepared, encoded(HYPOTHESES)).sum(axis=0)
    lowercase = case == "false"
    theirs = sacrebleu.corpus_bleu(
        HYPOTHESES, references, tokenize=tokenizer, lowercase=lowercase, force=True
    )
    assert 0.1 < float(ours.score(totals)) < 1
    assert 100 * float(ours.score(totals)) == pytest.approx(theirs.score, rel=1e-12)


def test_signature_is_that_of_sacrebleu() -> None:
    ours = metric("BLEU", "tokenize:13a,case:false").prepare([[b"a"], [b"b"]]).signature
    theirs = sacrebleu.BLEU(tokenize="13a", lowercase=True, smooth_method="none")
    theirs.corpus_score(["a"], [["a"], ["b"]])
    fields = str(theirs.get_signature()).split("|")
    assert set(ours.split("|")) >= set(fields) - {"eff:no", f"version:{sacrebleu.__version__}"}
    assert ours.endswith(f"+sacrebleu-{sacrebleu.__version__}")


def test_without_a_tokenizer_text_is_unchanged() -> None:
    plain = Tokenization("none", lowercase=True)
    assert plain.fold
    assert plain.signature() == "case:lc-ascii|tok:none"
    lines = [[b"\xff A  b\t.", b""]]
    assert plain.references(lines) is lines
    assert tokenize_lines("none", lines[0], lowercase=True) == lines[0]


def test_invalid_utf8_is_replaced() -> None:
    assert tokenize_lines("13a", [b"a\xffb."], lowercase=False) == ["a\ufffdb .".encode()]


def test_each_distinct_hypothesis_is_tokenized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def count(tokenizer: str, lines: Sequence[bytes], lowercase: bool) -> list[bytes]:
        seen.extend(lines)
        return tokenize_lines(tokenizer, lines, lowercase)

    ours = metric("BLEU", "tokenize:13a")
    prepared = ours.prepare([[b"a."] * 4])
    monkeypatch.setattr(tokenizers, "tokenize_lines", count)
    rows = statistics(ours, prepared, [b"a.", b"b.", b"a.", b"a."])
    assert seen == [b"a.", b"b."]
    assert rows[:, 0].tolist() == [2, 1, 2, 2]


def test_a_tokenized_metric_cannot_search_graphs() -> None:
    assert metric("BLEU").can_search_graphs
    assert not metric("BLEU", "tokenize:13a").can_search_graphs


@pytest.mark.parametrize("make", [Bleu, TerSacrebleu])
def test_unknown_tokenizer(make: type[Bleu | TerSacrebleu]) -> None:
    with pytest.raises(UsageError, match="unknown tokenizer '14a': use one of none, 13a"):
        make(tokenizer="14a")


@pytest.fixture
def fresh() -> Iterator[None]:
    """Clear the cache of tokenizers before and after the test."""
    tokenizers._load.cache_clear()
    yield
    tokenizers._load.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("flores200", r"flores200 needs sentencepiece, not .*: pip install 'mosesplug\[flores\]'"),
        ("ja-mecab", r"ja-mecab needs MeCab and ipadic, .*: pip install 'mosesplug\[ja\]'"),
        ("ko-mecab", r"ko-mecab needs mecab_ko and .*: pip install 'mosesplug\[ko\]'"),
    ],
)
def test_missing_package(tokenizer: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=message):
        metric("BLEU", f"tokenize:{tokenizer}").prepare([[b"a"]])


class FakeProcessor:
    """Stands in for ``sentencepiece.SentencePieceProcessor``: a piece for each two characters."""

    def Load(self, path: str) -> None:
        if Path(path).read_text() != "model":
            raise RuntimeError("could not parse ModelProto")

    def EncodeAsPieces(self, line: str) -> list[str]:
        return [line[i : i + 2] for i in range(0, len(line), 2)]


@pytest.fixture
def models(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of models for a stand-in of sentencepiece; downloads fail the test."""
    utils = importlib.import_module("sacrebleu.utils")
    spm = importlib.import_module("sacrebleu.tokenizers.tokenizer_spm")
    package = ModuleType("sentencepiece")
    monkeypatch.setattr(package, "SentencePieceProcessor", FakeProcessor, raising=False)
    monkeypatch.setitem(sys.modules, "sentencepiece", package)
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: True)
    for module in (utils, spm):
        monkeypatch.setattr(module, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(spm, "download_file", lambda *_: pytest.fail("downloads a model"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def test_missing_model(models: Path) -> None:
    message = (
        rf"flores200 needs the model {models}/\S+, which does not exist. Download it: "
        r"python -c .*BLEU\(tokenize='flores200'\)"
    )
    with pytest.raises(UsageError, match=message):
        metric("BLEU", "tokenize:flores200").prepare([[b"a"]])


def test_damaged_model(models: Path) -> None:
    (models / "flores200sacrebleuspm").write_text("not a model")
    with pytest.raises(UsageError, match="flores200 cannot be loaded: could not parse ModelProto"):
        metric("BLEU", "tokenize:flores200").prepare([[b"a"]])


def test_sentence_piece_model(models: Path) -> None:
    (models / "flores200sacrebleuspm").write_text("model")
    ours = metric("BLEU", "tokenize:flores200")
    prepared = ours.prepare([[b"abcdefgh"]])
    assert "|tok:flores200|" in prepared.signature
    assert statistics(ours, prepared, [b"abcdxxgh"])[0].tolist() == [3, 4, 1, 3, 0, 2, 0, 1, 4]


def test_metric_of_a_signature_with_the_version_of_mecab() -> None:
    signature = "BLEU|nrefs:1|case:mixed|tok:ja-mecab-0.996-IPA|reflen:closest|smooth:none"
    assert metric_of_signature(signature) == Bleu(tokenizer="ja-mecab")


def test_sacrebleu_is_imported_only_to_tokenize() -> None:
    program = (
        "import sys; from mosesplug.metrics import metric; m = metric('BLEU', {!r}); "
        "m.prepare([[b'a']]); sys.exit('sacrebleu' in sys.modules)"
    )
    for settings_, imported in (("", 0), ("tokenize:13a", 1)):
        found = subprocess.run([sys.executable, "-c", program.format(settings_)], check=False)
        assert found.returncode == imported


def test_sacrebleu_knows_every_tokenizer() -> None:
    assert set(TOKENIZERS) - {"tercom", "tercom-asian"} <= {*sacrebleu.BLEU.TOKENIZERS}
