"""Reading lists of every format, and the same bytes by a bare parser, on one core.

A test prints nothing but its time; ``extra_info`` has MB/s and, for JSON lines, the time as a ratio
of that of the bare parser.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.list_format import ListOptions, SentenceIds
from formats.nbest.registry import open_blocks

SENTENCES, HYPOTHESES = 400, 100
NAMES = ("asr", "lm", "reverse", "quality", "length")
ROUNDS = {"rounds": 5, "iterations": 1, "warmup_rounds": 1}

Row = tuple[int, str, list[float]]


def _rows() -> list[Row]:
    """Hypotheses of 10 to 25 words with five scores of all the digits of a double."""
    rng = np.random.default_rng(1)
    words = ["".join(map(chr, rng.integers(97, 123, size))) for size in rng.integers(2, 10, 5000)]
    words[::50] = [f"{word}ä" for word in words[::50]]
    return [
        (
            sentence,
            " ".join(words[at] for at in rng.integers(0, len(words), rng.integers(10, 26))),
            rng.uniform(-50, 0, len(NAMES)).tolist(),
        )
        for sentence in range(SENTENCES)
        for _ in range(HYPOTHESES)
    ]


def _named(values: list[float]) -> str:
    return " ".join(f"{name}={value!r}" for name, value in zip(NAMES, values, strict=True))


def _json(row: Row) -> dict[str, Any]:
    return {"hyp": row[1], "scores": dict(zip(NAMES, row[2], strict=True))}


def _by_sentence(rows: list[Row]) -> str:
    return "".join(
        json.dumps({"id": rows[at][0], "hyps": [_json(row) for row in rows[at : at + HYPOTHESES]]})
        + "\n"
        for at in range(0, len(rows), HYPOTHESES)
    )


def _lines(spell: Callable[[Row], str]) -> Callable[[list[Row]], str]:
    return lambda rows: "".join(spell(row) + "\n" for row in rows)


def _fairseq(row: Row) -> str:
    words = " ".join(f"{row[2][0]:.4f}" for _ in row[1].split())
    head = f"{row[0]}\t{row[2][0]!r}\t{row[1]}"
    return f"H-{head}\nD-{head}\nP-{row[0]}\t{words}"


FORMATS: dict[str, Callable[[list[Row]], str]] = {
    "moses": _lines(
        lambda r: f"{r[0]} ||| {r[1]} ||| {_named(r[2]).replace('=', '= ')} ||| {r[2][0]}"
    ),
    "cdec": _lines(lambda r: f"{r[0]} ||| {r[1]} ||| {_named(r[2])} ||| {r[2][0]}"),
    "travatar": _lines(lambda r: f"{r[0]} ||| {r[1]} ||| {r[2][0]} ||| {_named(r[2])}"),
    "jsonl": _lines(lambda r: json.dumps({"id": f"utt-{r[0]}"} | _json(r), ensure_ascii=False)),
    "jsonl by sentence": _by_sentence,
    "tsv": lambda rows: "\t".join(("id", "hyp", *NAMES)) + "\n" + _lines(
        lambda r: "\t".join((f"utt-{r[0]}", r[1], *map(repr, r[2])))
    )(rows),
    "flat": _lines(lambda r: "\t".join((r[1], *map(repr, r[2])))),
    "nemo": _lines(lambda r: f"{r[1]}\t{r[2][0]!r}"),
    "fairseq": _lines(_fairseq),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return _rows()


def _cpu_seconds(call: Callable[[], object]) -> float:
    """The least of some calls."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return min(times)


def _measure(benchmark: Any, path: Path, name: str, dense: tuple[str, ...] | None) -> float:
    """Read a list; return the CPU seconds of a call."""
    spelled = f"{name}:{HYPOTHESES}" if name in ("flat", "nemo") else name
    options = ListOptions(dense=dense)

    def read() -> int:
        return sum(len(block) for block in open_blocks(path, spelled, options, SentenceIds()))

    assert benchmark.pedantic(read, **ROUNDS) == SENTENCES * HYPOTHESES
    seconds = _cpu_seconds(read)
    size = sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]))
    benchmark.extra_info["MB per CPU second"] = round(size / 1e6 / seconds, 1)
    return seconds


@pytest.mark.parametrize("name", FORMATS)
def test_read(benchmark: Any, rows: list[Row], tmp_path: Path, name: str) -> None:
    path = tmp_path / "list"
    path.write_text(FORMATS[name](rows))
    dense = NAMES if name in ("cdec", "travatar") else None
    seconds = _measure(benchmark, path, name.split()[0], dense)
    if name.startswith("jsonl"):
        from msgspec.json import Decoder

        text = path.read_bytes()
        bare = _cpu_seconds(lambda: Decoder().decode_lines(text))
        benchmark.extra_info["times the bare parser"] = round(seconds / bare, 2)


def test_read_kaldi(benchmark: Any, rows: list[Row], tmp_path: Path) -> None:
    keys = [f"utt-{row[0]}-{n % HYPOTHESES + 1}" for n, row in enumerate(rows)]
    texts = (f"{key} {row[1]}\n" for key, row in zip(keys, rows, strict=True))
    (tmp_path / "words_text").write_text("".join(texts))
    for column, name in enumerate(NAMES):
        values = (f"{key} {row[2][column]!r}\n" for key, row in zip(keys, rows, strict=True))
        (tmp_path / name).write_text("".join(values))
    _measure(benchmark, tmp_path, "kaldi", None)
