"""Check that lists have the features that their weights were learned with."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace

from formats.errors import FormatError
from formats.graphs.hypergraph import hypergraph_names
from formats.weights.any_format import WeightFile
from formats.weights.list_changes import ListChanges
from mosesplug.errors import UsageError
from mosesplug.settings.features import DerivedFeature, parse_derived_features
from mosesplug.settings.lists import ListSettings

_CONFIGURATIONS = ("moses.ini", "show-weights", "overwrite")
"""Formats that also name features which no n-best list has."""


def apply_recorded(weights: WeightFile, settings: ListSettings) -> ListSettings:
    """Return settings that compute features as a file of weights records.

    Definitions of derived features are those of the file, with the bounds of their bins. Those that
    settings do not name are added; lists that have such a feature keep theirs.

    Raises:
        UsageError: settings lack templates, or define a feature in another way.
    """
    templates = weights.changes.templates
    if templates and settings.templates is None:
        raise UsageError(
            f"{weights.path} was learned with templates: add {{--templates}} "
            f"{shlex.quote(templates)} {{--source}} FILE"
        )
    digest, file = weights.changes.templates_digest, settings.templates
    if digest and file is not None and file.templates.digest != digest:
        raise UsageError(
            f"{{--templates}} {file}: {weights.path} was learned with other templates or "
            f"vocabularies, those that {templates} had then. Give these, or learn the weights again"
        )
    recorded = _read_definitions(weights)
    asked = {feature.name: feature for feature in settings.derive}
    for name, feature in asked.items():
        other = recorded.get(name)
        if other is not None and not feature.agrees(other):
            raise UsageError(
                f"{{--derive}} {name}={feature.text}: {weights.path} was learned with "
                f"{name}={other.text}: give the same expression"
            )
    # Those that settings name must be new; others may be in the lists.
    derived = [
        replace(feature, is_recorded=name not in asked) for name, feature in recorded.items()
    ]
    derived += [feature for name, feature in asked.items() if name not in recorded]
    return replace(settings, derive=tuple(derived))


def take_recorded_bins(weights: WeightFile, settings: ListSettings) -> ListSettings:
    """Return settings with the bounds of bins that starting weights record."""
    recorded = _read_definitions(weights)
    derived = []
    for feature in settings.derive:
        other = recorded.get(feature.name)
        has_other_bounds = other is not None and not feature.has_bounds and feature.agrees(other)
        derived.append(other if other is not None and has_other_bounds else feature)
    return replace(settings, derive=tuple(derived))


def _read_definitions(weights: WeightFile) -> dict[str, DerivedFeature]:
    """Return the derived features that weights record, by name."""
    features = parse_derived_features(weights.changes.derived_features)
    return {feature.name: feature for feature in features}


def check_made_features(weights: WeightFile, known: Collection[str], lists: str) -> None:
    """Check that lists have the features that weights record as added or derived.

    Args:
        known: names of the dense features of the lists, after all steps.
    """
    if options := spell_made_features(weights.changes, known):
        raise UsageError(
            f"{weights.path} was learned with features that {lists} lacks: add {' '.join(options)}"
        )


def spell_made_features(changes: ListChanges, known: Collection[str] = ()) -> list[str]:
    """Return the options that add and derive features, as fields of a message."""
    added = (name for name in changes.added_features if name not in known)
    return [f"{{--add-feature}} {name}=FILE" for name in added] + [
        f"{{--derive}} {shlex.quote(f'{name}={text}')}"
        for name, text in changes.derived_features.items()
        if name not in known
    ]


def spell_templates(changes: ListChanges) -> list[str]:
    """Return the options that compute templates as weights record them, as fields."""
    return [f"{{--templates}} {shlex.quote(changes.templates)}"] if changes.templates else []


def check_unused_weights(
    weights: WeightFile, groups: Sequence[tuple[str, int]], sparse: Collection[str], lists: str
) -> None:
    """Check that lists have each dense feature with a weight other than 0.

    Configurations of decoders may have more. So may files of sparse weights, and files that do not
    tell dense from sparse features if the lists have sparse ones.

    Args:
        groups: names and widths of the dense features of the lists, after all steps.
    """
    if weights.format in _CONFIGURATIONS:
        return
    known = {name for name, _ in groups}.union(hypergraph_names(groups), sparse)
    missing = [
        name
        for name, values in weights.groups.items()
        if any(values) and known.isdisjoint([name, *hypergraph_names([(name, len(values))])])
    ]
    if weights.is_flat and not sparse:
        missing += [name for name, value in weights.sparse.items() if value and name not in known]
    if missing:
        names = ", ".join(name for name, _ in groups)
        listed = f"Its features are {names}" if names else "It has no dense features"
        raise FormatError(
            f"a weight of {missing[0]}, which is no feature of {lists}",
            path=weights.path,
            remedy=f"{listed}. Read it with the options that the weights were learned with: "
            "{--word-scores}, {--columns}, {--rename}, {--add-feature}",
        )
