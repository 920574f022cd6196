"""Commands that score hypotheses while the program runs, as settings name them.

The form is ``NAME=COMMAND[:error][:mean|:ratio|:METRIC]``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from formats.text import read_lines
from mosesplug.errors import OptionName, UsageError
from mosesplug.options import Opt, list_options
from mosesplug.settings.checks import check_fields, check_settings, make_settings
from mosesplug.settings.scores.files import split_marks, suggest_formula
from mosesplug.user_cache import open_score_directory

if TYPE_CHECKING:
    from mosesplug.metrics.outside import Formula, OutsideMetric


@dataclass(frozen=True)
class NamedScoreCommand:
    """A command that scores, and the name of its metric.

    Attributes:
        text: as the user has written it; stored runs record it.
        words: the command line.
        formula: None: ``mean`` or ``ratio``, whichever the command announces.
        directory: the command is started in this directory, the current one of the caller.
    """

    name: str
    text: str
    words: tuple[str, ...]
    is_error_rate: bool = False
    formula: Formula | None = None
    directory: Path = field(default_factory=Path.cwd, compare=False)

    def __str__(self) -> str:
        return self.text


def parse_score_commands(
    texts: Sequence[str | NamedScoreCommand],
) -> tuple[NamedScoreCommand, ...]:
    """Return the commands that texts name; commands are returned as they are.

    Raises:
        UsageError: a text has another form, or a name occurs twice.
    """
    commands = tuple(
        text if isinstance(text, NamedScoreCommand) else _parse(text) for text in texts
    )
    names = [command.name for command in commands]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{OptionName('score-command')} names {name} twice")
    return commands


def _parse(text: str) -> NamedScoreCommand:
    name, equals, command = text.partition("=")
    command, marks = split_marks(command)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{OptionName('score-command')} {name}: {error} in {command!r}") from None
    if not (name and equals and words):
        raise UsageError(
            f"{OptionName('score-command', text)}: write NAME=COMMAND, as "
            "'COMET=python3 comet.py', or NAME=COMMAND:error for an error rate"
        )
    return NamedScoreCommand(name, text, tuple(words), marks.is_error_rate, marks.formula)


@dataclass(frozen=True)
class ScoreCommands:
    """Commands that score hypotheses, and how they are called.

    Raises:
        UsageError: a value cannot be used.
    """

    commands: Annotated[
        tuple[NamedScoreCommand, ...],
        Opt(
            "Metric that a running command computes; repeatable",
            "Learning",
            name="score-command",
            keyword="score_commands",
            parse=parse_score_commands,
            metavar="NAME=COMMAND",
            details="The command is started once and keeps running: it reads lines with source, "
            "hypothesis and references, and writes a number for each. NAME is then a metric, and "
            "the first NAME that is not only reported is the default of --metric. "
            "NAME=COMMAND:error: less is better. With NAME=COMMAND:ratio it writes two numbers, "
            "and the corpus score is the sum of the first divided by the sum of the second. With "
            "NAME=COMMAND:BLEU, or another metric, it writes the statistics of that metric. Each "
            "text is scored once: scores are kept.",
        ),
    ] = ()
    format: Annotated[
        Literal["json", "tsv", "lines"],
        Opt(
            "What --score-command reads: json, tsv or lines",
            "Learning",
            name="score-format",
            requires=("score-command",),
            details="json: an object a line with id, source, hypothesis, references and remaining, "
            "the number of lines that follow in the batch. tsv: columns with sentence number, "
            "source, hypothesis and references. lines: the hypothesis.",
        ),
    ] = "json"
    batch: Annotated[
        int,
        Opt(
            "Most hypotheses that --score-command gets at once",
            "Learning",
            name="score-batch",
            minimum=1,
            requires=("score-command",),
            details="As many as fill the memory of its model. The next batch is sent when the "
            "numbers of the last are there; they are kept then.",
        ),
    ] = 256
    timeout: Annotated[
        float,
        Opt(
            "Kill a --score-command that writes nothing this long",
            "Learning",
            name="score-timeout",
            metavar="SECONDS",
            above=0.0,
            requires=("score-command",),
            details="Loading the model counts. Messages on stderr are signs of life, too.",
        ),
    ] = 600.0
    cache: Annotated[
        Path | None,
        Opt(
            "Directory that keeps scores of --score-command",
            "Learning",
            name="score-cache",
            metavar="DIR",
            requires=("score-command",),
            is_output=True,
            default_text="scores in the working directory, or the user's cache",
            details="Runs and commands can share it: scores are found by the metric's name, the "
            "version that the command announces, and the texts.",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(command.name for command in self.commands)

    def check_use(self, options: str | tuple[str, str], specifications: Iterable[str]) -> None:
        """Check that metrics use what all commands compute, before these are started.

        Args:
            options: that name the metrics.
            specifications: the metrics, as ``COMET:0.7+BLEU:0.3`` or ``CHRF beta:2``.

        Raises:
            UsageError: they leave out that of a command, which would run for nothing; or one is not
                a weighted sum.
        """
        from mosesplug.metrics.registry import names_of_text

        used = {name for specification in specifications for name in names_of_text(specification)}
        for name in self.names:
            if name not in used:
                option, *others = (options,) if isinstance(options, str) else options
                example = f" BLEU:0.5+{name}:0.5" if option == "metric" else f" {name}"
                or_others = "".join(f", or in {{--{other} {name}}}" for other in others)
                raise UsageError(
                    f"{{--score-command}} {name} would not be used: name it in {{--{option}}}, "
                    f"too, as in {{--{option}{example}}}{or_others}"
                )

    def make_metrics(
        self, source: Path | Sequence[bytes] | None, cache: Path | None = None
    ) -> tuple[OutsideMetric, ...]:
        """Start the commands, and return their metrics.

        Args:
            source: the source sentences, or their file; None if they are unknown.
            cache: the directory of scores if the settings name none; None: the user's cache.

        Raises:
            UsageError: a name is invalid, or there is no directory to keep scores in.
            DataError: a command does not start, or announces nothing that can be used.
            OSError: the source cannot be read.
        """
        if not self.commands:
            return ()
        # Not above: --help does not need them.
        from mosesplug.decoders.command_scorer import CommandScorer
        from mosesplug.decoders.score_program import ScoreProgramCall
        from mosesplug.metrics.outside import OutsideMetric

        if isinstance(source, Path):
            source = read_lines(source)
        directory = self.cache or cache or open_score_directory()
        if directory is None:
            raise UsageError(
                "scores are kept in the user's cache, which MOSESPLUG_CACHE_DIR turns off: give "
                "{--score-cache} DIR"
            )
        metrics = []
        for command in self.commands:
            call = ScoreProgramCall(
                command.name,
                command.words,
                command.directory,
                self.format,
                self.batch,
                self.timeout,
                command.formula,
                directory.absolute(),
                suggest_formula(command.words[-1]),
            )
            # Its errors come before the command is started.
            OutsideMetric(command.name)
            scorer = CommandScorer(call)
            metrics.append(
                OutsideMetric(
                    command.name,
                    scorer.formula,
                    command.is_error_rate,
                    tuple(range(scorer.formula.width)),
                    version=scorer.version,
                    scorer=scorer,
                    source=None if source is None else tuple(source),
                )
            )
        return tuple(metrics)


def make_score_commands(values: Mapping[str, Any]) -> ScoreCommands:
    """Return the settings with these values, the others with their defaults.

    Raises:
        UsageError: a value cannot be used.
    """
    check_settings(list_options(ScoreCommands), values)
    return make_settings(ScoreCommands, values)
