"""Convert weights to any format.

What a format cannot hold is rejected, written to a second file, or reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from formats.graphs.hypergraph import hypergraph_names
from formats.moses.ini import MosesIni, with_weights
from formats.moses.ini_features import feature_weights, sparse_weights
from formats.weights.any_format import name_as_in_graphs
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
from formats.weights.flat import format_pairs, format_tsv
from formats.weights.json_file import format_flat_json, format_json_weights
from formats.weights.list_changes import (
    EXPONENT,
    ListChanges,
    format_list_changes,
    list_change_records,
)
from formats.weights.named import length_companion
from formats.weights.weight_format import Format
from formats.weights.yaml_file import format_yaml
from mosesplug.errors import DataError, Message, UsageError
from mosesplug.features import spelled_groups
from mosesplug.learning.made_features import spell_made_features, spell_templates
from mosesplug.results.weights.algebra import check_usable
from mosesplug.results.weights.sources import ResolvedWeights

_NAMELESS: tuple[Format, ...] = ("kbmira", "init.opt", "weights.txt")
_WITH_SPARSE: tuple[Format, ...] = (
    *("sparse", "graph", "kbmira", "json"),
    *("json-flat", "equals", "yaml", "tsv"),
)
_WITHOUT_FIXED: tuple[Format, ...] = (
    *("dense", "overwrite", "json", "json-flat", "yaml", "equals", "tsv"),
    *_NAMELESS,
)
RECORDING: tuple[Format, ...] = ("json", "yaml", "dense")
"""Formats that record how lists were changed: by keys, or ``dense`` in comments.

``json-flat`` has a key for an exponent of all features. Scripts that read the others expect neither
keys nor comments.
"""


@dataclass(frozen=True)
class ConvertedWeights:
    """Weights in a format.

    Attributes:
        sparse: the content of a second file of sparse weights; None if none is needed.
        notes: what the format does not hold, in words.
    """

    text: bytes
    sparse: bytes | None = None
    notes: tuple[str, ...] = ()


def convert_weights(
    weights: ResolvedWeights,
    to: Format,
    *,
    config: MosesIni | None = None,
    sparse_output: Path | None = None,
    output: Path | None = None,
) -> ConvertedWeights:
    """Return weights in a format, with enough digits to read them back exactly.

    Args:
        weights: the weights.
        config: the configuration whose weights are replaced, for ``moses.ini``.
        sparse_output: the file of the sparse weights that the format cannot hold.
        output: the file, for notes; None: stdout.

    Raises:
        UsageError: something that the format requires is missing.
        DataError: the configuration has other features, or all weights are 0.
        FormatError: the format requires an unknown weight of a component that is not tuned.
    """
    check_usable(weights)
    if to not in _NAMELESS and not weights.is_named:
        raise UsageError(
            f"{weights.source} has numbers without names, but {to} requires names: give "
            "{--names-from} FILE, a runN.dense or a features.list"
        )
    if to == "moses.ini":
        if config is None:
            raise UsageError("moses.ini is made from another moses.ini: give {--config} FILE")
        converted = _replace_in_config(weights, config, sparse_output)
        return replace(converted, notes=tuple(explain_unrecorded(weights.changes, to, output)))
    if to == "sparse" and weights.weights.dense:
        raise UsageError(
            f"{weights.source} has {len(weights.weights.dense)} dense weights, which a file of "
            "sparse weights cannot hold: write another format, with {--sparse-output} FILE"
        )
    sparse = None
    if weights.weights.sparse and to not in _WITH_SPARSE:
        if sparse_output is None:
            raise UsageError(
                f"{weights.source} has {len(weights.weights.sparse)} sparse weights, which {to} "
                "cannot hold: give {--sparse-output} FILE for them"
            )
        sparse = format_sparse(weights.weights.sparse)
    if not weights.weights.dense and to not in _WITH_SPARSE:
        raise UsageError(f"{weights.source} has no dense weights for {to}: give {{--to}} sparse")
    if to in ("yaml", "json-flat") and EXPONENT in weights.by_name:
        raise UsageError(
            f"{weights.source} has a feature {EXPONENT}, which {to} takes for the length exponent: "
            "write json"
        )
    return ConvertedWeights(
        _format(weights, to),
        sparse,
        (*_list_notes(weights, to), *explain_unrecorded(weights.changes, to, output)),
    )


def spell_list_changes(changes: ListChanges) -> list[str]:
    """Return the options that change lists, as fields of messages."""
    options = spell_made_features(changes) + spell_templates(changes)
    if changes.length_exponent:
        spelled = changes.length_exponent.replace(" ", " {--length-by} ")
        options.append(f"{{--length-exponent}} {spelled}")
    return options


def explain_unrecorded(changes: ListChanges, to: Format, output: Path | None = None) -> list[str]:
    """Return which changes of lists a format does not record, in words.

    Args:
        output: the file that is written, with the exponent in ``OUTPUT.length``; None: stdout.
    """
    if not changes:
        return []
    if to == "dense":
        options = " ".join(spell_list_changes(changes))
        problem = (
            f"a dense file has these in comments, which other programs may not read: {options}"
        )
        return [Message(problem)]
    if to in RECORDING:
        return []
    notes: list[str] = []
    if features := " ".join(spell_made_features(changes) + spell_templates(changes)):
        notes.append(
            Message(f"{to} does not record features that were not in the lists: {features}")
        )
    if changes.length_exponent and (to != "json-flat" or _plain_exponent(changes) is None):
        remedy = f"rerank with {spell_list_changes(changes)[-1]}"
        if output is not None:
            remedy = f"keep {length_companion(output)} beside {output}"
        notes.append(Message(f"{to} does not record the length exponent: {remedy}"))
    return notes


def _plain_exponent(changes: ListChanges) -> float | None:
    """Return the exponent if the scores are divided by the number of words; else None."""
    records = list_change_records(changes)
    if "length_features" in records or "length_by" in records:
        return None
    return records.get(EXPONENT)


def _format(weights: ResolvedWeights, to: Format) -> bytes:
    """Return the weights that the format can hold."""
    dense, show, sparse = weights.weights.dense, weights.show, weights.weights.sparse
    groups = [(group.name, group.values) for group in show.groups]
    match to:
        case "dense":
            comments = format_list_changes(weights.changes)
            return comments + format_dense(_tuned_groups(show).items())
        case "show-weights":
            return format_show_weights(show)
        case "overwrite":
            line = weight_overwrite(show, decimals=None) + "\n"
            return line.encode("utf-8", "surrogateescape")
        case "init.opt":
            low, high = _start_ranges(weights)
            return format_init_opt(InitOpt(dense, low, high))
        case "weights.txt":
            return format_weights_txt(dense, digits=None)
        case "json":
            return format_json_weights(groups, sparse, weights.changes)
        case "json-flat":
            return format_flat_json(groups, sparse, _plain_exponent(weights.changes))
        case "yaml":
            return format_yaml(groups, sparse, weights.changes)
        case "kbmira":
            numbered = {f"F{place}": value for place, value in enumerate(dense)}
            return format_sparse({**numbered, **sparse})
        case "equals" | "tsv":
            tuned = _tuned_groups(show)
            names = hypergraph_names((name, len(values)) for name, values in tuned.items())
            named = {**dict(zip(names, dense, strict=True)), **sparse}
            return format_pairs(named) if to == "equals" else format_tsv(named)
        case _:
            named = name_as_in_graphs(show, weights.fixed_weights, weights.source)
            return format_sparse({**named, **sparse})


def _tuned_groups(show: ShowWeights) -> dict[str, tuple[float, ...]]:
    return {
        group.name: tuple(value for value in group.values if value is not None)
        for group in show.groups
        if group.is_tuneable
    }


def _start_ranges(weights: ResolvedWeights) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the bounds of random starts: the file's, or 0 to 1 as in a tuning run."""
    file, n = weights.file, len(weights.weights.dense)
    if file is not None and file.minima is not None and file.maxima is not None:
        return file.minima, file.maxima
    return (0.0,) * n, (1.0,) * n


def _list_notes(weights: ResolvedWeights, to: Format) -> list[str]:
    """Return what the converted file does not hold, in words."""
    notes: list[str] = []
    groups = [(name, len(values)) for name, values in _tuned_groups(weights.show).items()]
    if to in _NAMELESS:
        notes.append(f"the order of the numbers is {spelled_groups(groups)}")
    if to == "init.opt" and (weights.file is None or weights.file.minima is None):
        notes.append("the ranges of random starts are 0 to 1")
    left = [*weights.show.untuneable] if to in _WITHOUT_FIXED else []
    if to in ("dense", "equals", "tsv", *_NAMELESS):
        left += [f"components of {g.name}" for g in weights.show.groups if None in g.values]
    if left:
        notes.append(f"not tuned, and left out: {', '.join(left)}")
    if weights.format == "moses.ini" and to != "graph":
        notes.append("features are in the order of [feature], a decoder may have another order")
    return notes


def _replace_in_config(
    weights: ResolvedWeights, ini: MosesIni, sparse_output: Path | None
) -> ConvertedWeights:
    """Return a configuration with these weights and every other byte unchanged."""
    show = _fill_config(weights, ini)
    known, sparse = sparse_weights(ini), weights.weights.sparse
    if dict(known) == dict(sparse):
        return ConvertedWeights(with_weights(ini, show, digits=None))
    if not sparse:
        raise UsageError(
            f"{ini.path} has {len(known)} sparse weights, but {weights.source} has none: give them "
            f"too, as {weights.source}+SPARSE"
        )
    if sparse_output is None:
        raise UsageError(
            f"{weights.source} has {len(sparse)} sparse weights, which moses.ini reads from a "
            "file: give {--sparse-output} FILE"
        )
    text = with_weights(ini, show, sparse_file=str(sparse_output.absolute()), digits=None)
    return ConvertedWeights(text, format_sparse(sparse))


def _fill_config(weights: ResolvedWeights, ini: MosesIni) -> ShowWeights:
    """Return the features of a configuration with these weights."""
    values: Mapping[str, tuple[float, ...]] = _tuned_groups(weights.show)
    groups = []
    for feature in feature_weights(ini):
        n_tuned = sum(feature.is_tuned)
        numbers = values.get(feature.name, ())
        if len(numbers) != n_tuned:
            raise DataError(
                f"{weights.source} has {len(numbers) or 'no'} weights of {feature.name}, but "
                f"{ini.path} tunes {n_tuned}: give the configuration of the same system"
            )
        remaining = iter(numbers)
        groups.append(
            WeightGroup(
                feature.name, tuple(next(remaining) if t else None for t in feature.is_tuned)
            )
        )
    names = {group.name for group in groups}
    if strange := [name for name in values if name not in names]:
        raise DataError(
            f"{ini.path} has no feature {strange[0]}, which {weights.source} has a weight of: give "
            "the configuration of the same system"
        )
    kept = tuple(group.name for group in groups if not group.is_tuneable)
    return ShowWeights(tuple(group for group in groups if group.is_tuneable), kept)
