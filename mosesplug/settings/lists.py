"""The settings of reading n-best lists.

Each is declared once for all commands that read lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from formats.weights.list_changes import ListChanges
from mosesplug.errors import OptionName, UsageError
from mosesplug.options import Opt, find_value, list_options
from mosesplug.settings.checks import (
    check_dropped_names,
    check_fields,
    check_settings,
    make_settings,
)
from mosesplug.settings.features import (
    AddedFeature,
    DerivedFeature,
    parse_added_features,
    parse_derived_features,
)
from mosesplug.settings.scores.commands import ScoreCommands
from mosesplug.settings.scores.files import ScoreSource, parse_score_sources
from mosesplug.settings.template_file import TemplateFile


@dataclass(frozen=True)
class ListSettings:
    """How n-best lists are read, and what is changed before anything else sees them.

    Names, features and scores may be given as texts, and are kept as what these mean.

    Raises:
        UsageError: a value is out of range.
    """

    format: Annotated[
        str,
        Opt(
            "Format of the lists",
            "Data",
            parse=_check_format,
            aliases=("list-format",),
            metavar="NAME",
            excludes=("graphs", "from"),
            details="auto decides by the first lines. mosesplug reads the formats of many "
            "decoders and tools; the reference of file formats lists them.",
        ),
    ] = "auto"
    columns: Annotated[
        tuple[str, ...] | None,
        Opt(
            "Columns of tables: id, hyp and features",
            "Data",
            parse=partial(split_names, option="columns"),
            metavar="NAME,...",
            excludes=("graphs", "from"),
        ),
    ] = None
    names: Annotated[
        tuple[str, ...] | None,
        Opt(
            "Names of the values of unlabeled lists",
            "Data",
            parse=parse_column_names,
            metavar="NAME,...",
        ),
    ] = None
    dense: Annotated[
        tuple[str, ...] | None,
        Opt(
            "Dense features of lists that name every value",
            "Data",
            parse=parse_dense_names,
            metavar="NAME,...",
            default_text="by frequency",
            excludes=("graphs", "from"),
            details="Lists with name=value pairs, as of Joshua and cdec. Without it, all features "
            "are dense if there are up to 50; else those that at least half of the lines have.",
        ),
    ] = None
    ids: Annotated[
        bool | None,
        Opt(
            "Lines of references begin with sentence ids",
            "Data",
            default_text="decided by the lines",
            details="References with ids are matched by them. Without either, the ids of the "
            "lists and the first words decide, and what cannot be decided is an error. --no-ids "
            "takes the lines in their order, first words as words.",
        ),
    ] = None
    drop_feature: Annotated[
        tuple[str, ...],
        Opt(
            "Ignore a feature of the lists; repeatable",
            "Data",
            parse=check_dropped_names,
            metavar="NAME",
            excludes=("graphs", "from"),
            details="NAME* ignores all features whose names begin so.",
        ),
    ] = ()
    rename: Annotated[
        tuple[tuple[str, str], ...],
        Opt(
            "Rename a feature of the lists; repeatable",
            "Data",
            parse=parse_renames,
            metavar="OLD=NEW",
            excludes=("graphs", "from"),
            details="All other settings and the weights use the new name.",
        ),
    ] = ()
    word_scores: Annotated[
        Literal["drop", "sum"],
        Opt(
            "Scores of single words: drop, or sum them",
            "Data",
            metavar="HOW",
            excludes=("graphs", "from"),
            details="Lists of some decoders have as many scores as words, as Marian's with "
            "--word-scores. Their sum is a feature.",
        ),
    ] = "drop"

    templates: Annotated[
        TemplateFile | None,
        Opt(
            "Templates of sparse features to compute",
            "Data",
            kind="path",
            parse=TemplateFile.parse,
            exists="file",
            requires=("source",),
            excludes=("graphs", "from"),
            details="A TOML file that declares features of aligned words, phrase pairs, inserted "
            "and deleted words, n-grams and others, computed from the segmentation and alignment "
            "in the lists. The reference of templates describes it.",
        ),
    ] = None
    source: Annotated[
        Path | None,
        Opt(
            "Source sentences, for templates, costs and --score-command",
            "Data",
            exists="path",
            details="A line of text for each sentence, as the decoder got it. --templates and "
            "--option cost_unit=source need it, and a --score-command may; with --from, both use "
            "the input of the run.",
        ),
    ] = None
    add_feature: Annotated[
        tuple[AddedFeature, ...],
        Opt(
            "Add a feature from a file with one value per hypothesis; repeatable",
            "Data",
            parse=parse_added_features,
            keyword="add_features",
            metavar="NAME=FILE",
            exists="features",
            excludes=("graphs", "from"),
            details="A number for each hypothesis, or several, in the order of the lists: as "
            "text, compressed, or as a NumPy array (.npy); NAME=FILE,FILE if there are several "
            "files, which are read as one.",
        ),
    ] = ()
    derive: Annotated[
        tuple[DerivedFeature, ...],
        Opt(
            "Compute a feature: lm_norm=lm/words; repeatable",
            "Data",
            parse=parse_derived_features,
            metavar="NAME=EXPRESSION",
            excludes=("graphs", "from"),
            details="From dense features, those derived before, words and chars (of the "
            "hypothesis), numbers, + - * / ** and log, exp, sqrt, abs. bin(lm, 5) makes five "
            "indicators of quantiles, pair(bin(lm, 3), bin(tm, 3)) those of pairs. Quote names "
            "with other characters than letters, digits, points and underscores.",
        ),
    ] = ()
    transform: Annotated[
        str | None,
        Opt(
            "Command that changes hypotheses before scoring, or bpe",
            "Data",
            parse=_check_transform,
            metavar="COMMAND",
            excludes=("graphs", "from"),
            details="A shell command or script that reads hypotheses, one a line, and writes as "
            "many lines; or bpe to join subwords at @@. Features are those of the lists as they "
            "are.",
        ),
    ] = None
    scores: Annotated[
        tuple[ScoreSource, ...],
        Opt(
            "Optimize scores from a file with one value per hypothesis; repeatable",
            "Data",
            parse=parse_score_sources,
            metavar="NAME=FILE",
            exists="scores",
            excludes=("graphs",),
            details="One number for each hypothesis, in the order of the lists: as text, "
            "compressed, or as a NumPy array (.npy); NAME=FILE,FILE if there are several files. "
            "NAME is then a metric, and the first NAME the default of --metric; the corpus score "
            "is the mean over the chosen hypotheses. With two numbers for each hypothesis, it is "
            "the sum of the first divided by the sum of the second. NAME=FILE:BLEU, or another "
            "metric: the numbers are its statistics. NAME=FILE:error: less is better, and scores "
            "are 1 minus the value.",
        ),
    ] = ()
    score_commands: ScoreCommands = field(default_factory=ScoreCommands)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.drop_feature:
            if name in dict(self.rename):
                raise UsageError(
                    f"{{--drop-feature}} {name} and {{--rename}} {name} exclude each other"
                )

    @property
    def first_given(self) -> str | None:
        """The first setting of reading that is not its default; None without any."""
        default = ListSettings()
        for option in list_options(ListSettings):
            if len(option.path) > 1:  # of commands that score whatever is read
                continue
            if find_value(self, option.path) != find_value(default, option.path):
                return option.name
        return None

    @property
    def score_names(self) -> list[str]:
        """The names of metrics that other programs compute."""
        return [*(source.name for source in self.scores), *self.score_commands.names]

    @property
    def input_paths(self) -> list[Path]:
        """The files with values of features and scores, templates and source sentences."""
        paths = [] if self.templates is None else [self.templates.path]
        paths += [] if self.source is None else [self.source]
        paths += [path for feature in self.add_feature for path in feature.paths]
        return paths + [path for source in self.scores for path in source.paths]

    @property
    def changes(self) -> ListChanges:
        """The features that are not in the lists: those that are added, and derived ones."""
        return ListChanges(
            tuple(feature.name for feature in self.add_feature),
            {feature.name: feature.text for feature in self.derive},
            templates="" if self.templates is None else str(self.templates),
            templates_digest="" if self.templates is None else self.templates.templates.digest,
        )


def make_list_settings(values: Mapping[str, Any]) -> ListSettings:
    """Return the settings with the given values.

    Args:
        values: the values by name; those that are missing have their defaults.

    Raises:
        UsageError: a value cannot be used.
    """
    check_settings(list_options(ListSettings), values)
    return make_settings(ListSettings, values)


def hint_at_tables(settings: ListSettings) -> str:
    """Return what to add to a refusal of ``--format``, if it names a format of tables."""
    if settings.format not in ("json", "tsv", "csv"):
        return ""
    return f"; for tables in {settings.format}, give --table-format {settings.format}"


def parse_column_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of ``--names``; a group's columns share a name.

    The columns of a group are adjacent.

    Raises:
        UsageError: an empty name, or a group that is not adjacent.
    """
    columns = split_names(names, "names")
    if isinstance(names, str):
        from mosesplug.features import FeatureSpace

        groups = [group for group, _ in FeatureSpace.of_names(list(columns)).groups]
        if twice := [group for group in groups if groups.count(group) > 1]:
            raise UsageError(f"{{--names}}={names}: the columns of {twice[0]} are not adjacent")
    return columns


def parse_renames(
    renames: Mapping[str, str] | Iterable[str | tuple[str, str]],
) -> tuple[tuple[str, str], ...]:
    """Return old and new names of ``--rename``.

    Args:
        renames: ``OLD=NEW``, new names by the old ones, or pairs of them.

    Raises:
        UsageError: a text is not ``OLD=NEW``, or a name occurs twice.
    """
    names: dict[str, str] = {}
    for pair in renames.items() if isinstance(renames, Mapping) else renames:
        text = pair if isinstance(pair, str) else "=".join(map(str, pair))
        old, _, new = (name.strip() for name in text.partition("="))
        if not (old and new) or any(map(str.isspace, new)) or new.endswith(("=", ":")):
            raise UsageError(f"{{--rename}} {text!r}: give OLD=NEW, names without blanks")
        if old in names:
            raise UsageError(f"{{--rename}} {text}: {old} has the new name {names[old]} already")
        if new in names.values():
            raise UsageError(f"{{--rename}} {text}: another feature gets the name {new} already")
        names[old] = new
    return tuple(names.items())


def parse_dense_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of ``--dense``.

    Raises:
        UsageError: a name is empty or occurs twice.
    """
    dense = split_names(names, "dense")
    if isinstance(names, str) and len(set(dense)) < len(dense):
        raise UsageError(f"{{--dense}}={names}: a name occurs twice")
    return dense


def split_names(names: str | Sequence[str], option: str) -> tuple[str, ...]:
    """Return the names of a text with commas; a sequence has them already.

    Raises:
        UsageError: a name is empty.
    """
    if not isinstance(names, str):
        return tuple(map(str, names))
    split = tuple(name.strip() for name in names.split(","))
    if not all(split):
        raise UsageError(f"{OptionName(option)}={names}: a name is empty")
    return split


def _check_format(name: str) -> str:
    if name != "auto":
        # Here and not above: it brings NumPy, which --help does not need.
        from formats.nbest.registry import split_format_name

        try:
            split_format_name(name)
        except ValueError as error:
            raise UsageError(f"{{--format}}: {error}") from error
    return name


def _check_transform(command: str) -> str:
    # Here and not above: it brings the decoders, which --help does not need.
    from mosesplug.settings.programs import check_transform

    check_transform(command)
    return command


NO_SETTINGS = ListSettings()
"""Lists as they are, of the format of their first lines."""
