"""The public checks find broken plug-ins; that sound ones pass, the conformance tests show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.entry import NBestEntry, Place
from formats.nbest.entry_blocks import collect_blocks
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.plugin import DecoderPlugin, Hypothesis
from mosesplug.metrics.text_metric import TextMetric
from mosesplug.optimizers.problem import Problem, Solution
from mosesplug.optimizers.registry import algorithm
from mosesplug.testing import check_algorithm, check_decoder, check_list_format, check_metric


@dataclass(frozen=True)
class Right(TextMetric):
    """Right words by place."""

    name: ClassVar[str] = "RIGHT"
    version: ClassVar[str] = "1"
    statistics_names: ClassVar[tuple[str, ...]] = ("right", "words")

    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        words, other = hypothesis.split(), references[0].split()
        pairs = zip(words, other, strict=False)
        return sum(one == two for one, two in pairs), max(len(words), len(other))

    def score_totals(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.maximum(totals[..., 1], 1)
        return np.where(totals[..., 1] > 0, totals[..., 0] / whole, 1.0)


class WithoutVersion(Right):
    version = ""


class LessIsBetter(Right):
    def score_totals(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 - super().score_totals(totals)


class Forgetful(Right):
    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        CALLS.append(1)
        return len(CALLS) % 3, 3


class WrongType(Right):
    def statistics(self, *arguments: Any, **keywords: Any) -> Any:
        return super().statistics(*arguments, **keywords).astype(np.int64)


class WritesInput(Right):
    def score(self, totals: Any) -> NDArray[np.float64]:
        found = super().score(totals)
        if totals.flags.writeable:
            totals += 1
        return found


CALLS: list[int] = []


def test_a_sound_metric_passes() -> None:
    check_metric(Right())


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (WithoutVersion, "metric RIGHT, check 'signatures': .*version:VERSION"),
        (LessIsBetter, "check 'perfect output': references score 0.0 against themselves"),
        (Forgetful, "check 'hypotheses alone'"),
        (WrongType, "check 'shapes and names': statistics must be int32, not int64"),
        (WritesInput, r"check 'inputs unchanged'(?s:.*)score\(\) changes its argument"),
    ],
)
def test_broken_metrics_fail(broken: Callable[[], Right], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_metric(broken())


FAST = algorithm("softmax")


def returns_start(problem: Problem, initial: Any, *others: Any) -> Solution:
    return Solution(initial, 0.5)


def ignores_seed(problem: Problem, initial: Any, rng: Any, *others: Any) -> Solution:
    found = FAST.optimize(problem, initial, np.random.default_rng(), *others)
    return replace(found, weights=found.weights + np.random.default_rng().random() * 1e-9)


@pytest.mark.parametrize(
    ("optimize", "message"),
    [
        (returns_start, "check 'planted weights': the score is 0.5"),
        (ignores_seed, "check 'seeds and threads': the same seed gives other weights"),
    ],
)
def test_broken_algorithms_fail(optimize: Callable[..., Solution], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_algorithm(replace(FAST, optimize=optimize))


def parse_strictly(line: bytes, place: Place) -> NBestEntry:
    number, _, value = line.partition(b"\t")
    try:
        return NBestEntry(int(number), b"text", (("F", (float(value),)),))
    except ValueError as error:
        raise place.error(f"not two numbers: {error}", "Write NUMBER<TAB>NUMBER") from error


def parse_carelessly(line: bytes, place: Place) -> NBestEntry:
    number, value = line.split(b"\t")
    return NBestEntry(int(number), b"text", (("F", (float(value),)),))


def make_format(parse: Callable[[bytes, Place], NBestEntry], name: str = "two") -> ListFormat:
    def read(path: Any, options: ListOptions, ids: SentenceIds) -> Iterator[Any]:
        from formats.text import open_text

        with open_text(path) as file:
            lines = [(n, line.strip()) for n, line in enumerate(file, start=1) if line.strip()]
        return collect_blocks(path, ((n, parse(line, Place(str(path), n))) for n, line in lines))

    return ListFormat(name, "number<TAB>number", lambda lines: b"\t" in lines[0], read)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    valid, invalid = tmp_path / "valid", tmp_path / "invalid"
    valid.write_bytes(b"0\t1.5\n0\t2.5\n3\t-1\n")
    invalid.write_bytes(b"0\tword\n")
    return valid, invalid


def test_a_sound_format_passes(files: tuple[Path, Path]) -> None:
    check_list_format(make_format(parse_strictly), files[:1], files[1:])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (make_format(parse_carelessly), "must raise FormatError, but raises ValueError"),
        (make_format(parse_strictly, "a:b"), "the name must not have a colon"),
        (
            replace(make_format(parse_strictly), recognizes=lambda lines: False),
            "valid is not recognized",
        ),
    ],
)
def test_broken_formats_fail(broken: ListFormat, message: str, files: tuple[Path, Path]) -> None:
    with pytest.raises(AssertionError, match=message):
        check_list_format(broken, files[:1], files[1:])


def test_a_valid_file_as_invalid_fails(files: tuple[Path, Path]) -> None:
    with pytest.raises(AssertionError, match="must raise FormatError, but raises nothing"):
        check_list_format(make_format(parse_strictly), files[:1], files[:1])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"1\t1\n0\t1\n", ":2: sentence ids go backwards"),
        (b"1\t1\n1\tnan\n", ":2: the feature value nan is not a finite"),
        (b"1\t1e39\n", ":1: the feature value 1e\\+39 is not a finite"),
    ],
)
def test_entries_that_make_no_blocks(lines: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(lines)
    with pytest.raises(FormatError, match=message):
        list(make_format(parse_strictly).read_blocks(path, ListOptions(), SentenceIds()))


def test_entries_with_other_features_make_no_block() -> None:
    entries = [(1, NBestEntry(0, b"", (("F", (1.0,)),))), (2, NBestEntry(0, b"", ()))]
    with pytest.raises(FormatError, match="list:2: the dense features are none, but F on the"):
        list(collect_blocks("list", entries))


def test_blocks_of_entries_are_whole_sentences() -> None:
    entries = [(n + 1, NBestEntry(n // 3, b"t%d" % n, (("F", (n,)),))) for n in range(10)]
    blocks = list(collect_blocks("list", entries, size=2))
    assert [block.sentence_ids.tolist() for block in blocks] == [[n] * 3 for n in range(3)] + [[3]]
    assert [block.text(0) for block in blocks] == [b"t0", b"t3", b"t6", b"t9"]
    assert [block.lines.tolist() for block in blocks][-1] == [10]


class Decoder:
    """Each sentence as it is and backwards."""

    def __init__(self, behavior: str) -> None:
        self.behavior, self.calls = behavior, 0

    def decode(
        self, sentences: Sequence[bytes], weights: ModelWeights, nbest: int
    ) -> Iterator[Sequence[Hypothesis]]:
        self.calls += 1
        (weight,) = weights.groups[0].values
        assert weight is not None
        for sentence in sentences[: -1 if self.behavior == "loses" else None]:
            words = sentence.decode().split()
            found = [
                Hypothesis(" ".join(words), {"A": 1.0}),
                Hypothesis(" ".join(words[::-1]), {"A": 2}),
            ]
            if self.behavior == "counts":
                found[0] = Hypothesis(" ".join(words), {"A": float(self.calls)})
            if self.behavior == "lacks":
                found[0] = Hypothesis("x", {"B": 1.0})
            if self.behavior == "crashes":
                raise RuntimeError("out of\nmemory")
            order = -1.0 if self.behavior == "unsorted" else 1.0
            if self.behavior == "ignores":
                found = [each._replace(score=0.0) for each in found]
            found.sort(key=lambda each: -order * weight * float(each.features.get("A", 0)))  # type: ignore[arg-type]
            yield found if self.behavior == "long" else found[:nbest]

    def close(self) -> None:
        """Nothing."""


def check(behavior: str) -> None:
    plugin = DecoderPlugin("stub", "A stub", Decoder)
    check_decoder(plugin, behavior, [b"a b", b"c d e"], {"A": 0.5})


def test_a_sound_decoder_passes() -> None:
    check("")
    check("long")  # only as many hypotheses as asked for are taken


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("loses", "plugin:stub:loses returned 1 n-best lists for 2 sentences"),
        ("lacks", "failed: ValueError: hypothesis 'x' has 0 values of A, and the weights have 1"),
        ("crashes", "failed: RuntimeError: out of memory"),
        ("unsorted", "the best hypothesis must be first"),
        ("counts", "check 'repeatable'"),
        ("ignores", "check 'scores'"),
    ],
)
def test_broken_decoders_fail(behavior: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(behavior)
