"""Metrics that a command computes, as objects."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from formats.text import StrPath
from mosesplug.api.keywords import RUN
from mosesplug.api.lists.arrays import encode_texts
from mosesplug.metrics import Metric
from mosesplug.settings.scores.commands import ScoreCommands, make_score_commands


@RUN.in_messages()
def command_metric(
    name: str,
    command: str,
    *,
    source: StrPath | Sequence[str] | None = None,
    format: Literal["json", "tsv", "lines"] = ScoreCommands.format,
    batch: int = ScoreCommands.batch,
    timeout: float = ScoreCommands.timeout,
    cache: StrPath | None = None,
) -> Metric:
    """Return a metric that a command computes, such as COMET.

    The command is started, and keeps running as long as the metric is used. What it reads and
    writes is that of ``--score-command``. Each text is scored once.

    Args:
        name: the name of the metric.
        command: the command line, without a shell; ``:error`` at its end if less is better,
            ``:ratio`` if it writes two numbers for each hypothesis, ``:BLEU`` or another metric if
            it writes its statistics.
        source: the source sentences, or their file; None if they are unknown.
        format: what the command reads.
        batch: most hypotheses that it gets at once.
        timeout: seconds in which it must write something.
        cache: the directory that keeps scores; None: the user's cache.

    Returns:
        A metric for ``metrics`` of ``score`` and ``compare``, ``metric`` of ``optimize``, and
        ``utility`` of ``mbr``.

    Raises:
        UsageError: the name or another argument cannot be used.
        DataError: the command does not start, or announces no version.

    Example:
        >>> import mosesplug, sys
        >>> from pathlib import Path
        >>> lines = Path("length.py").write_text(
        ...     "import sys\\n"
        ...     "print('version 1', flush=True)\\n"
        ...     "for line in sys.stdin:\\n"
        ...     "    print(len(line.split()), flush=True)\\n"
        ... )
        >>> words = mosesplug.command_metric(
        ...     "WORDS", f"{sys.executable} length.py", format="lines", cache="scores"
        ... )
        >>> (score,) = mosesplug.score(["the house", "yes it is"], metrics=[words], samples=0)
        >>> score.score, score.sentences
        (2.5, (2.0, 3.0))
    """
    values: dict[str, Any] = {
        "score-command": [f"{name}={command}"],
        "score-format": format,
        "score-batch": batch,
        "score-timeout": timeout,
    }
    if cache is not None:
        values["score-cache"] = Path(cache)
    if isinstance(source, str | PathLike):
        lines: Path | Sequence[bytes] | None = Path(source)
    else:
        lines = None if source is None else encode_texts(source, "source")
    (metric,) = make_score_commands(values).make_metrics(lines)
    return metric
