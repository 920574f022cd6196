"""Keywords of Python calls: types, settings, and names in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np

from formats.errors import FormatError
from formats.text import StrPath
from mosesplug.api.numbers import check_column
from mosesplug.errors import DataError, MosesplugError, OptionName, UsageError, suggest
from mosesplug.options import Opt, list_options, list_spellings
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.features import AddedFeature, is_feature_name
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.lists import ListSettings, make_list_settings
from mosesplug.settings.sharding import Sharding
from mosesplug.settings.toml import check_type


class ListKeywords(TypedDict, total=False):
    """Keywords that say how n-best lists are read.

    ``read_nbest``, ``rerank``, ``mbr``, ``optimize`` and ``cross_validate`` take them, one by one
    or together: ``**reading``.

    Attributes:
        names: one for each value of a list without labels; equal neighbors are values of one
            feature.
        dense: names of the dense features of a list that names every value (Joshua, cdec); None:
            all if there are up to 50, else those that at least half of the lines have.
        add_features: additional features by name: a value for each hypothesis, or several, in the
            order of the lists; or a file, or several, with a line for each.
        derive: features that are computed from dense ones, ``{"lm_norm": "lm/words"}``. They may
            use those derived before, ``words`` and ``chars`` of the hypothesis, numbers,
            ``+ - * / **``, ``log``, ``exp``, ``sqrt`` and ``abs``. ``bin(lm, 5)`` makes indicators
            of five bins, whose bounds are quantiles of the lists that are learned from, and
            ``pair(bin(lm, 3), bin(tm, 3))`` those of pairs.
        transform: a shell command that reads the hypotheses, one a line, and writes the texts in
            their place; ``"bpe"`` joins subwords. Derived features are those of the file's texts.
        format: the name of the format, as ``"jsonl"``; ``"auto"``: that of the first lines.
        columns: the meaning of each column of a table: ``"id"``, ``"hyp"``, or a feature.
        drop_feature: names of features to ignore; ``"WT_*"`` is all names that begin so.
        rename: new names of features by the old ones.
        word_scores: ``"drop"`` or ``"sum"`` scores of single words, whose number varies.
        templates: a file that declares sparse features to compute from the segmentation and
            alignment of the lists; requires ``source``, a file of the source sentences.

    Example:
        >>> import mosesplug
        >>> reading: mosesplug.ListKeywords = {"rename": {"LM0": "LM"}, "derive": {"half": "LM/2"}}
        >>> mosesplug.read_nbest("run1.best100.out.gz", **reading).names
        ('LM', 'WordPenalty0', 'half')
    """

    names: Sequence[str] | None
    dense: Sequence[str] | None
    add_features: Mapping[str, Any] | None
    derive: Mapping[str, str] | Sequence[str]
    transform: str | None
    format: str | None
    columns: Sequence[str] | None
    drop_feature: Sequence[str]
    rename: Mapping[str, str] | Sequence[str]
    word_scores: Literal["drop", "sum"] | None
    templates: StrPath | None
    source: StrPath | Sequence[str] | None


class LearningKeywords(ListKeywords, total=False):
    """Keywords of ``optimize`` and ``cross_validate``, which describe them."""

    features: Any
    sentence_ids: Any
    hypotheses: Sequence[str] | Sequence[bytes] | None
    scores: Any
    statistics: Any
    ids: bool | None
    store: StrPath | None
    iterations: str | None
    graphs: StrPath | Sequence[StrPath] | None
    hg_prune: int | None
    metric_settings: str | Mapping[str, object]
    report_metrics: Sequence[str]
    sparse_initial: StrPath | None
    options: Mapping[str, object] | None
    active: Sequence[str] | None
    sparse_min_count: int
    sparse_max: int
    ranges: Sequence[str] | Mapping[str, tuple[float, float]]
    bounds: Sequence[str] | Mapping[str, Any]
    domains: StrPath | Sequence[str] | None
    sentence_weights: StrPath | Iterable[float] | None
    length_exponent: float | str | None
    length_by: str | None
    runs: int | None
    select: str
    sharding: Mapping[str, object] | None


@dataclass(frozen=True)
class KeywordNames:
    """Spells options as keywords: ``select='median'``, ``overwrite=True``.

    Attributes:
        cls: the settings that the call has keywords for. Others are named by their words.
    """

    cls: type

    def __call__(self, option: OptionName) -> str:
        """Return an option as a call writes it."""
        options = {name: option for option in list_options(self.cls) for name in option.spellings}
        declared = options.get(option.name) or options.get(option.name.removeprefix("no-"))
        keyword = option.name.replace("-", "_") if declared is None else declared.keyword
        if declared is not None and declared.kind == "flag":
            return f"{keyword}={option.name in options}"
        is_literal = option.value.startswith('"') or option.value.replace(".", "").isdigit()
        value = option.value if is_literal else repr(option.value)
        return f"{keyword}={value}" if option.value else keyword

    @contextmanager
    def in_messages(self) -> Iterator[None]:
        """Name options as keywords in the errors of a block or of a function."""
        try:
            yield
        except (MosesplugError, FormatError) as error:
            error.spell(self)
            raise


RUN = KeywordNames(RunPlan)
"""The keywords of ``tune`` and ``Tuner``."""

LEARNING = KeywordNames(LearningSettings)
"""The keywords of ``optimize`` and of all calls that read lists."""


def check_names(
    keywords: Iterable[str], known: Collection[str], call: Callable[..., Any] | None = None
) -> None:
    """Check that keywords are known; suggest one of them, or an argument of the call."""
    for keyword in keywords:
        if keyword not in known:
            arguments = () if call is None else inspect.signature(call).parameters
            raise UsageError(f"unknown keyword {keyword}{suggest(keyword, [*known, *arguments])}")


def collect_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the keywords of ``tune`` by the names of settings.

    None is not given.

    Raises:
        UsageError: a keyword is not a setting, or its value has another type.
    """
    known = {
        keyword: option
        for option in list_options(RunPlan)
        for name in (option.name, *list_spellings(option.name))
        for keyword in (name.replace("-", "_"), option.keyword)
    }
    values: dict[str, Any] = {}
    check_names(keywords, known)
    for keyword, value in keywords.items():
        if value is not None:
            values[known[keyword].name] = _check_value(known[keyword], value, keyword)
    return values


def make_list_keywords(keywords: Mapping[str, Any]) -> ListSettings:
    """Return the settings of ``ListKeywords``; None is not given."""
    check_names(keywords, ListKeywords.__annotations__)
    options = {option.name: option for option in list_options(ListSettings)}
    values: dict[str, Any] = {"add-feature": make_added_features(keywords.get("add_features"))}
    for keyword, value in keywords.items():
        if keyword in ("names", "dense"):
            if isinstance(value, str):
                raise UsageError(f"{keyword} is a single text: give a sequence of names")
            if value is not None:
                values[keyword] = tuple(value)
        elif value is not None and keyword != "add_features":
            name = keyword.replace("_", "-")
            values[name] = _check_value(options[name], value, keyword)
    return make_list_settings(values)


def make_learning_keywords(values: dict[str, Any]) -> LearningSettings:
    """Return the settings of the keywords of ``optimize`` that are values or paths."""
    names = {option.path[0]: option.keyword for option in list_options(Sharding)}
    sharding = values.pop("sharding", None) or {}
    values |= {names.get(name, name): value for name, value in sharding.items()}
    if isinstance(values.get("metric_settings"), Mapping):
        pairs = values["metric_settings"].items()
        values["metric_settings"] = ",".join(f"{name}:{value}" for name, value in pairs)
    if isinstance(values.get("graphs"), str | PathLike):
        values["graphs"] = [values["graphs"]]
    if values.get("runs") is None and values.get("select") == "median":
        del values["select"]  # the default, which requires several runs
    options = {option.keyword: option for option in list_options(LearningSettings)}
    named = {}
    for keyword, value in values.items():
        if value is None or (isinstance(value, str | tuple) and not value):
            continue
        if keyword not in options:
            raise UsageError(f"unknown setting {keyword}{suggest(keyword, options)}")
        named[options[keyword].name] = _check_value(options[keyword], value, keyword)
    return make_learning_settings(named, has_data=False)


def make_added_features(
    features: Mapping[str, Any] | None, what: str = "add_features"
) -> tuple[AddedFeature, ...]:
    """Return added features.

    Args:
        features: the features by name: a value for each hypothesis, or several; or a file, or
            several files.
    """
    if features is None:
        return ()
    if not isinstance(features, Mapping):
        raise UsageError(
            f"{what} is a {type(features).__name__}: give a mapping of names to values"
        )
    return tuple(_make_feature(name, values, what) for name, values in features.items())


def _make_feature(name: Any, values: Any, what: str) -> AddedFeature:
    if not isinstance(name, str) or not is_feature_name(name):
        raise UsageError(f"{what}: {name!r} is not a name without blanks")
    place = f"{what}[{name!r}]"
    if isinstance(values, str | PathLike):
        return AddedFeature(name, (Path(values),))
    if not hasattr(values, "__len__"):
        raise UsageError(f"{place} must be a value for each hypothesis, or a file")
    if len(values) and _are_paths(values):
        return AddedFeature(name, tuple(map(Path, values)))
    if getattr(values, "ndim", 1) == 2:
        columns = [check_column(column, place, len(values)) for column in np.transpose(values)]
    else:
        columns = [check_column(values, place, len(values))]
    table = np.column_stack(columns)
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(table.astype(np.float32)).all(axis=1)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        value = table[row] if table.shape[1] > 1 else table[row, 0]
        raise DataError(f"{place}[{row}] is {value}: too large for a feature")
    return AddedFeature(name, values=table)


def check_lengths(features: Mapping[str, Any] | None, hypotheses: int) -> None:
    """Check that added features have a value for each hypothesis."""
    for name, values in (features or {}).items():
        is_array = hasattr(values, "__len__") and not isinstance(values, str | PathLike)
        if is_array and len(values) != hypotheses and not _are_paths(values):
            raise UsageError(
                f"the feature {name} has {len(values)} values for {hypotheses} hypotheses: give "
                "one for each"
            )


def _are_paths(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(v, str | PathLike) for v in values)


def _check_value(option: Opt, value: Any, keyword: str) -> Any:
    """Return the value of a keyword as options have it, parsed or not."""
    if option.parse is not None:
        if isinstance(value, str):
            return value if option.kind in ("text", "path") or option.is_joined else (value,)
        if hasattr(value, "__iter__") or isinstance(value, Real):
            return value
    return check_type(option, _plain(option, value), keyword)


def _plain(option: Opt, value: Any) -> Any:
    """Return a value as a settings file has it."""
    if isinstance(value, PathLike):
        return fspath(value)
    if option.kind == "texts" and not isinstance(value, str) and hasattr(value, "__iter__"):
        return [str(item) for item in value]
    if option.kind == "table" and isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
