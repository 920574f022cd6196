"""Compute hypotheses' statistics with the options of Moses' programs.

They set references, factors and filters. A filter rewrites every sentence of references and
hypotheses; then factors of its tokens are selected. Each part of an interpolated metric may have
its own filter and factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.references import read_reference
from formats.text import read_lines
from mosesplug.decoders.processes.run import run_command
from mosesplug.errors import DecoderError, UsageError
from mosesplug.metrics import Metric, PreparedReferences, metric, parse_factors, select_factors
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.scratch import ScratchDirectory


def filter_lines(command: str, lines: Sequence[bytes]) -> list[bytes]:
    """Pass lines through a command and return its output lines.

    Equal lines are sent once, so the command must process each line independently. The command
    reads all lines from one file, so it may read ahead and need not flush its output.

    Args:
        command: a ``bash`` command, run in the current directory.
        lines: lines without ``\\n``.

    Raises:
        DecoderError: the command could not be started, failed, or did not write one line for
            each input line.
    """
    distinct = list(dict.fromkeys(lines))
    with ScratchDirectory() as directory:
        sent, got = Path(directory) / "in", Path(directory) / "out"
        sent.write_bytes(b"".join(line + b"\n" for line in distinct))
        run_command(
            ("bash", "-c", command),
            directory=Path.cwd(),
            stdin=sent,
            stdout=got,
            stderr=Path(directory) / "messages",
            what="filter",
        )
        written = read_lines(got)
    if len(written) != len(distinct):
        raise DecoderError(
            f"the filter {command!r} wrote {len(written)} lines for {len(distinct)}: it must write "
            "one line for each input line"
        )
    changed = dict(zip(distinct, written, strict=True))
    return [changed[line] for line in lines]


@dataclass(frozen=True)
class _Preprocessing:
    """The filter and factors that sentences pass through before scoring."""

    factors: tuple[int, ...] = ()
    filter: str = ""

    def __bool__(self) -> bool:
        return bool(self.factors or self.filter)

    def apply(self, lines: Sequence[bytes]) -> list[bytes]:
        if self.filter:
            lines = filter_lines(self.filter, lines)
        return [select_factors(line, self.factors) for line in lines]


@dataclass(frozen=True)
class _Part:
    """A metric with its compiled references."""

    metric: Metric
    prepared: PreparedReferences
    preprocessing: _Preprocessing

    def statistics(self, hypotheses: HypothesisRanges, threads: int) -> NDArray[np.int32]:
        """Return the statistics; see ``Metric.statistics``."""
        if self.preprocessing:
            lines = self.preprocessing.apply(hypotheses.lines())
            hypotheses = HypothesisRanges.of_lines(lines, hypotheses.sentence_ids)
        return self.metric.statistics(self.prepared, *hypotheses, threads=threads)


@dataclass(frozen=True)
class Scorer:
    """A metric with compiled references.

    Attributes:
        metric: the metric, possibly interpolated.
        parts: the parts of an interpolated metric, or the metric alone.
    """

    metric: Metric
    parts: tuple[_Part, ...]

    @classmethod
    def load(
        cls,
        name: str,
        settings: str,
        references: Sequence[str | PathLike[str]],
        *,
        factors: str = "",
        filter_command: str = "",
    ) -> Scorer:
        """Read and compile references for a metric.

        Args:
            name: value of ``--sctype``.
            settings: value of ``--scconfig``.
            factors: value of ``--factors``; one per part of an interpolated metric,
                comma-separated.
            filter_command: value of ``--filter``, likewise.

        Raises:
            UsageError: an unknown metric or setting, or invalid factors.
            FormatError: a file cannot be read.
            DataError: the references differ in length, or have too few factors.
            DecoderError: the filter failed.
        """
        whole = metric(name, settings)
        texts = [read_reference(path) for path in references]
        if not (factors or filter_command):
            return cls(whole, (_Part(whole, whole.prepare(texts), _Preprocessing()),))
        metrics = whole.metrics if isinstance(whole, InterpolatedMetric) else (whole,)
        parts: list[_Part] = []
        for part, preprocessing in zip(
            metrics, _preprocessings(factors, filter_command, len(metrics)), strict=True
        ):
            prepared = part.prepare([preprocessing.apply(lines) for lines in texts])
            parts.append(_Part(part, prepared, preprocessing))
        return cls(whole, tuple(parts))

    @property
    def n_sentences(self) -> int:
        """Number of lines of each reference."""
        return self.parts[0].prepared.n_sentences

    def statistics(self, hypotheses: HypothesisRanges, *, threads: int = 1) -> NDArray[np.int32]:
        """Return the statistics; see ``Metric.statistics``.

        Raises:
            DataError: a sentence has no reference, or a token has too few factors.
            DecoderError: the filter failed.
        """
        return np.concatenate([p.statistics(hypotheses, threads) for p in self.parts], axis=1)


def _preprocessings(factors: str, filter_command: str, n: int) -> Iterator[_Preprocessing]:
    for selected, command in zip(
        _shares(factors, n, "factors"), _shares(filter_command, n, "filter"), strict=True
    ):
        yield _Preprocessing(parse_factors(selected), command)


def _shares(text: str, n: int, option: str) -> list[str]:
    """Split an option value into one part per metric; a single metric takes all."""
    if n == 1 or not text:
        return [text] * n
    shares = text.split(",")
    if len(shares) != n:
        raise UsageError(
            f"--{option} {text} has {len(shares)} parts, but the metric has {n}: give one for each,"
            " comma-separated"
        )
    return shares
