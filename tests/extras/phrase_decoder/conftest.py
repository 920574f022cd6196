"""Small random systems, and a plain decoder that tries every derivation of a sentence."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mosesplug.extras.phrase_decoder.program import main

LN10 = math.log(10.0)
NAMES = ("LexicalReordering0", "Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0", "TM0")
Values = dict[str, list[float]]
Result = subprocess.CompletedProcess[bytes]
Decode = Callable[..., Result]


@dataclass(frozen=True)
class Derivation:
    """One way to translate a sentence, scored word by word from the files."""

    words: tuple[str, ...]
    values: Values
    score: float
    phrases: tuple[tuple[int, int, str], ...]


@dataclass
class PlainSystem:
    """The files of a system, and what a decoder without any cleverness makes of them."""

    directory: Path
    table: dict[str, list[tuple[str, list[float]]]]
    turns: dict[tuple[str, str], list[float]]
    grams: dict[tuple[str, ...], tuple[float, float]]
    weights: Values
    distortion_limit: int
    order: int = field(init=False)

    def __post_init__(self) -> None:
        self.order = max(map(len, self.grams))

    @property
    def ini(self) -> Path:
        return self.directory / "moses.ini"

    def write(self) -> None:
        """The phrase table, the reordering table, the language model and moses.ini."""
        self._write_tables()
        self._write_arpa()
        weights = [f"{name}= {' '.join(map(str, values))}" for name, values in self.weights.items()]
        lines = (
            "[mapping]\n0 T 0\n\n[distortion-limit]",
            f"{self.distortion_limit}\n\n[feature]\nUnknownWordPenalty\nWordPenalty\nPhrasePenalty",
            "PhraseDictionaryMemory name=TM0 num-features=2 path=table input-factor=0",
            "LexicalReordering name=LexicalReordering0 num-features=6 path=turns "
            "type=wbe-msd-bidirectional-fe-allff",
            f"Distortion\nKENLM name=LM0 path=lm.arpa order={self.order}\n\n[weight]",
            "UnknownWordPenalty0= 1",
            *weights,
        )
        self.ini.write_text("\n".join(lines) + "\n")

    def _write_tables(self) -> None:
        rows = [
            f"{source} ||| {target} ||| {' '.join(map(repr, scores))} ||| 0-0 ||| 1 1 1\n"
            for source, entries in self.table.items()
            for target, scores in entries
        ]
        (self.directory / "table").write_text("".join(rows))
        turns = [
            f"{source} ||| {target} ||| {' '.join(map(repr, scores))}\n"
            for (source, target), scores in self.turns.items()
        ]
        (self.directory / "turns").write_text("".join(turns))

    def _write_arpa(self) -> None:
        by_order = [
            [gram for gram in self.grams if len(gram) == n] for n in range(1, self.order + 1)
        ]
        lines = ["\\data\\", *(f"ngram {n}={len(g)}" for n, g in enumerate(by_order, start=1))]
        for n, grams in enumerate(by_order, start=1):
            lines += ["", f"\\{n}-grams:"]
            for gram in grams:
                log, backoff = self.grams[gram]
                tail = f"\t{backoff!r}" if backoff or n < self.order else ""
                lines.append(f"{log!r}\t{' '.join(gram)}{tail}")
        (self.directory / "lm.arpa").write_text("\n".join([*lines, "", "\\end\\", ""]))

    def language_model(self, context: tuple[str, ...], word: str) -> float:
        """Natural log probability, by the definition of backoff."""
        if (word,) not in self.grams:
            word = "<unk>"
        context = tuple(w if (w,) in self.grams else "<unk>" for w in context)
        context = context[max(0, len(context) - self.order + 1) :]
        if (*context, word) in self.grams:
            return self.grams[(*context, word)][0] * LN10
        if not context:
            return -100.0 * LN10
        backoff = self.grams.get(context, (0.0, 0.0))[1] * LN10
        return backoff + self.language_model(context[1:], word)

    def derivations(self, sentence: list[str]) -> Iterator[Derivation]:
        """Every derivation that the distortion limit allows."""
        yield from self._extend(sentence, 0, (-1, -1, ""), ())

    def _options(self, sentence: list[str], start: int, end: int) -> list[str]:
        known = [target for target, _ in self.table.get(" ".join(sentence[start : end + 1]), [])]
        return known or ([sentence[start]] if start == end else [])

    def _extend(
        self,
        sentence: list[str],
        covered: int,
        last: tuple[int, int, str],
        phrases: tuple[tuple[int, int, str], ...],
    ) -> Iterator[Derivation]:
        length = len(sentence)
        if covered == (1 << length) - 1:
            yield self.score(sentence, phrases)
            return
        gap = next(i for i in range(length) if not covered >> i & 1)
        for start, end in itertools.combinations_with_replacement(range(length), 2):
            mask = ((1 << (end - start + 1)) - 1) << start
            if covered & mask:
                continue
            limit = self.distortion_limit
            if limit >= 0 and abs(last[1] + 1 - start) > limit:
                continue
            if limit >= 0 and start != gap and abs(end + 1 - gap) > limit:
                continue
            for target in self._options(sentence, start, end):
                phrase = (start, end, target)
                yield from self._extend(sentence, covered | mask, phrase, (*phrases, phrase))

    def score(self, sentence: list[str], phrases: tuple[tuple[int, int, str], ...]) -> Derivation:
        """The features of a derivation by their definitions, and its model score."""
        values: Values = {name: [0.0] * len(self.weights[name]) for name in NAMES}
        unknown = 0.0
        words: list[str] = ["<s>"]
        before: tuple[int, int, str] | None = None
        for start, end, target in phrases:
            source = " ".join(sentence[start : end + 1])
            values["PhrasePenalty0"][0] += 1
            scores = dict(self.table.get(source, [])).get(target)
            if scores is None:
                unknown -= 100.0
            for i, score in enumerate(scores or []):
                values["TM0"][i] += max(math.log(score), -100.0) if score else -100.0
            last = before[1] if before else -1
            values["Distortion0"][0] -= abs(last + 1 - start)
            if start == last + 1:
                turn = 0
            elif before and end + 1 == before[0]:
                turn = 1
            else:
                turn = 2
            own = self.turns.get((source, target))
            if own:
                values["LexicalReordering0"][turn] += math.log(own[turn])
            if before:
                previous = (" ".join(sentence[before[0] : before[1] + 1]), before[2])
                if previous in self.turns:
                    values["LexicalReordering0"][3 + turn] += math.log(
                        self.turns[previous][3 + turn]
                    )
            for word in target.split():
                values["WordPenalty0"][0] -= 1
                values["LM0"][0] += self.language_model(tuple(words), word)
                words.append(word)
            before = (start, end, target)
        if phrases:
            values["LM0"][0] += self.language_model(tuple(words), "</s>")
        total = unknown + sum(
            weight * value
            for name in NAMES
            for weight, value in zip(self.weights[name], values[name], strict=True)
        )
        return Derivation(tuple(words[1:]), values, total, phrases)


def random_grams(
    rng: random.Random, words: list[str], order: int
) -> dict[tuple[str, ...], tuple[float, float]]:
    """N-grams with contexts in the model, some of them without backoff or continuation."""
    grams: dict[tuple[str, ...], tuple[float, float]] = {}
    level: list[tuple[str, ...]] = [("<unk>",), ("<s>",), ("</s>",), *((w,) for w in words)]
    for n in range(1, order + 1):
        for gram in level:
            backoff = 0.0 if n == order else rng.choice((0.0, round(-rng.random(), 3)))
            grams[gram] = (round(-3 * rng.random(), 3), backoff)
        level = [
            (*gram, word)
            for gram in level
            for word in [*words, "</s>"]
            if gram[-1] != "</s>" and rng.random() < 0.4
        ]
    return grams


@pytest.fixture
def random_system(tmp_path: Path) -> Callable[..., PlainSystem]:
    """Make a random system of source words a, b, c, ... and write its files."""

    def make(seed: int, *, order: int = 3, distortion_limit: int = -1) -> PlainSystem:
        rng = random.Random(seed)
        targets = ["u", "v", "w", "x"]
        sources = ["a", "b", "c", "a b", "b c", "c a", "a b c"]
        table: dict[str, list[tuple[str, list[float]]]] = {}
        for source in sources:
            phrases = {" ".join(rng.choices(targets, k=rng.choice((1, 1, 2, 3)))) for _ in range(2)}
            table[source] = [
                (phrase, [round(rng.random(), 4), rng.choice((0.0, 0.5, 1.0))])
                for phrase in sorted(phrases)
            ]
        turns = {
            (source, target): [round(0.05 + rng.random(), 3) for _ in range(6)]
            for source, entries in table.items()
            for target, _ in entries
            if rng.random() < 0.8
        }
        widths = {"LexicalReordering0": 6, "TM0": 2}
        weights = {
            name: [round(rng.uniform(-0.2, 0.8), 3) for _ in range(widths.get(name, 1))]
            for name in NAMES
        }
        directory = tmp_path / f"system{seed}"
        directory.mkdir()
        grams = random_grams(rng, targets, order)
        system = PlainSystem(directory, table, turns, grams, weights, distortion_limit)
        system.write()
        return system

    return make


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Decode:
    """Run the decoder in this process, in an empty directory."""

    def run(*arguments: str, text: bytes = b"") -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with (
            contextlib.chdir(tmp_path),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main(arguments)
        out.flush()
        err.flush()
        printed = (stream.buffer.getvalue() for stream in (out, err))  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), *printed)

    return run
