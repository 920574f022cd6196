"""Weights spelled in any format; what a format cannot hold is refused, put beside, or said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from formats.moses.ini import MosesIni, with_weights
from formats.moses.ini_features import feature_weights, sparse_weights
from formats.weights.any_format import Format, spelled_in_graphs
from formats.weights.files import (
    InitOpt,
    ShowWeights,
    WeightGroup,
    format_dense,
    format_init_opt,
    format_show_weights,
    format_sparse,
    format_weights_txt,
    weight_overwrite,
)
from mosesplug.errors import DataError, UsageError
from mosesplug.features import spelled_groups
from mosesplug.inspection.weights.algebra import check_usable
from mosesplug.inspection.weights.points import Point

__all__ = ["Spelled", "spelled"]

_NAMELESS: tuple[Format, ...] = ("kbmira", "init.opt", "weights.txt")
_WITH_SPARSE: tuple[Format, ...] = ("sparse", "graph", "kbmira")


@dataclass(frozen=True)
class Spelled:
    """Weights in a format.

    Attributes:
        text: the file.
        sparse: the file of sparse weights beside it; None where there is none.
        notes: what the format does not say, in words.
    """

    text: bytes
    sparse: bytes | None = None
    notes: tuple[str, ...] = ()


def spelled(
    point: Point,
    to: Format,
    *,
    config: MosesIni | None = None,
    sparse_output: Path | None = None,
) -> Spelled:
    """A point in a format, each number with as many digits as it takes to be read back exactly.

    Args:
        point: the weights.
        to: the format.
        config: the configuration whose weights are replaced, for ``moses.ini``.
        sparse_output: where the sparse weights go that the format cannot hold.

    Raises:
        UsageError: something that the format needs is not given.
        DataError: the weights are not those of the configuration, or all are 0.
        FormatError: the weight of a component that is not tuned is not known, and is needed.
    """
    check_usable(point)
    if to not in _NAMELESS and not point.is_named:
        raise UsageError(
            f"{point.source} has numbers without names, and {to} has names: give them by"
            " --names-from FILE, a runN.dense or a features.list"
        )
    if to == "moses.ini":
        if config is None:
            raise UsageError("moses.ini is written from another one: give it by --config FILE")
        return _configured(point, config, sparse_output)
    if to == "sparse" and point.weights.dense:
        raise UsageError(
            f"{point.source} has {len(point.weights.dense)} dense weights, which a file of sparse "
            "weights cannot hold: write another format, with --sparse-output FILE"
        )
    sparse = None
    if point.weights.sparse and to not in _WITH_SPARSE:
        if sparse_output is None:
            raise UsageError(
                f"{point.source} has {len(point.weights.sparse)} sparse weights, which {to} cannot"
                " hold: give a file for them by --sparse-output FILE"
            )
        sparse = format_sparse(point.weights.sparse)
    if not point.weights.dense and to not in _WITH_SPARSE:
        raise UsageError(f"{point.source} has no dense weights for {to}: write --to sparse")
    return Spelled(_text(point, to), sparse, tuple(_notes(point, to)))


def _text(point: Point, to: Format) -> bytes:
    """The weights that the format has a place for."""
    dense, show = point.weights.dense, point.show
    match to:
        case "dense":
            return format_dense((name, values) for name, values in _tuned(show).items())
        case "show-weights":
            return format_show_weights(show)
        case "overwrite":
            line = weight_overwrite(show, decimals=None) + "\n"
            return line.encode("utf-8", "surrogateescape")
        case "init.opt":
            low, high = _box(point)
            return format_init_opt(InitOpt(dense, low, high))
        case "weights.txt":
            return format_weights_txt(dense, digits=None)
        case "kbmira":
            numbered = {f"F{place}": value for place, value in enumerate(dense)}
            return format_sparse({**numbered, **point.weights.sparse})
        case _:
            named = spelled_in_graphs(show, point.fixed, point.source)
            return format_sparse({**named, **point.weights.sparse})


def _tuned(show: ShowWeights) -> dict[str, tuple[float, ...]]:
    """The weights to tune of each dense feature that has any."""
    return {
        group.name: tuple(value for value in group.values if value is not None)
        for group in show.groups
        if group.is_tuneable
    }


def _box(point: Point) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The bounds of random starts: the file's, or 0 to 1 as in a tuning run."""
    file, n = point.file, len(point.weights.dense)
    if file is not None and file.minima is not None and file.maxima is not None:
        return file.minima, file.maxima
    return (0.0,) * n, (1.0,) * n


def _notes(point: Point, to: Format) -> list[str]:
    """What was in the file and is not in the other."""
    notes: list[str] = []
    groups = [(name, len(values)) for name, values in _tuned(point.show).items()]
    if to in _NAMELESS:
        notes.append(f"the order of the numbers is {spelled_groups(groups)}")
    if to == "init.opt" and (point.file is None or point.file.minima is None):
        notes.append("the ranges of random starts are 0 to 1")
    left = [*point.show.untuneable] if to in ("dense", "overwrite", *_NAMELESS) else []
    if to in ("dense", *_NAMELESS):
        left += [f"components of {g.name}" for g in point.show.groups if None in g.values]
    if left:
        notes.append(f"not tuned, and left out: {', '.join(left)}")
    if point.format == "moses.ini" and to != "graph":
        notes.append("features stand in the order of [feature], a decoder's may be another")
    return notes


def _configured(point: Point, ini: MosesIni, sparse_output: Path | None) -> Spelled:
    """A configuration with these weights, every other byte as it was."""
    show = _filled(point, ini)
    known, given = sparse_weights(ini), point.weights.sparse
    if dict(known) == dict(given):
        return Spelled(with_weights(ini, show, digits=None))
    if not given:
        raise UsageError(
            f"{ini.path} has {len(known)} sparse weights, and {point.source} none: give them too, "
            f"as {point.source}+SPARSE"
        )
    if sparse_output is None:
        raise UsageError(
            f"{point.source} has {len(given)} sparse weights, which moses.ini names a file for: "
            "give it by --sparse-output FILE"
        )
    text = with_weights(ini, show, sparse_file=str(sparse_output.absolute()), digits=None)
    return Spelled(text, format_sparse(given))


def _filled(point: Point, ini: MosesIni) -> ShowWeights:
    """The features of a configuration with the weights of a point.

    Raises:
        DataError: one has features that the other lacks.
    """
    values: Mapping[str, tuple[float, ...]] = _tuned(point.show)
    groups = []
    for feature in feature_weights(ini):
        n_tuned = sum(feature.tuned)
        found = values.get(feature.name, ())
        if len(found) != n_tuned:
            raise DataError(
                f"{point.source} has {len(found) or 'no'} weights of {feature.name}, and "
                f"{ini.path} has {n_tuned} to tune: give the configuration of the same system"
            )
        rest = iter(found)
        groups.append(
            WeightGroup(feature.name, tuple(next(rest) if t else None for t in feature.tuned))
        )
    names = {group.name for group in groups}
    if strange := [name for name in values if name not in names]:
        raise DataError(
            f"{ini.path} has no feature {strange[0]}, which {point.source} has a weight of: give "
            "the configuration of the same system"
        )
    kept = tuple(group.name for group in groups if not group.is_tuneable)
    return ShowWeights(tuple(group for group in groups if group.is_tuneable), kept)
