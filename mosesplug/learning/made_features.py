"""Check that lists have the features that their weights were learned with."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from formats.weights.any_format import WeightFile
from mosesplug.errors import UsageError
from mosesplug.settings.features import parse_derived_features
from mosesplug.settings.lists import ListSettings

__all__ = ["check_derived_features", "check_made_features"]


def check_derived_features(weights: WeightFile, settings: ListSettings) -> None:
    """Check that settings derive features as those that a file of weights was learned with.

    Raises:
        UsageError: an expression differs.
    """
    recorded = {each.name: each for each in parse_derived_features(weights.made.derived)}
    for each in parse_derived_features(settings.derive):
        other = recorded.get(each.name)
        if other is not None and other.expression != each.expression:
            raise UsageError(
                f"--derive {each.name}={each.text}: {weights.path} was learned with "
                f"{other.name}={other.text}: give the same expression"
            )


def check_made_features(weights: WeightFile, known: Collection[str], lists: str) -> None:
    """Check that lists have the features that a file of weights records as added or derived.

    Args:
        weights: the file.
        known: names of the dense features of the lists, after all steps.
        lists: what messages call them.

    Raises:
        UsageError: the lists lack a feature.
    """
    options = [f"--add-feature {name}=FILE" for name in weights.made.added if name not in known]
    options += [
        f"--derive {shlex.quote(f'{name}={text}')}"
        for name, text in weights.made.derived.items()
        if name not in known
    ]
    if options:
        raise UsageError(
            f"{weights.path} was learned with features that {lists} lacks: add {' '.join(options)}"
        )
