"""Check names of features to tune: before decoding, and where features are known."""

from __future__ import annotations

from formats.weights.files import ShowWeights
from mosesplug.errors import OptionName, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.selection import FeatureSelection


def check_selection(selection: FeatureSelection, show: ShowWeights) -> None:
    """Check names before hours of decoding.

    Sparse features are only known when they occur in a list; their names begin with the name of
    their feature function.

    Raises:
        UsageError: a name can be that of no feature, or no feature is active.
    """
    space = FeatureSpace.of_names(show.names)
    for option, name in selection.find_unmatched(space):
        if not any(_can_begin(name, f"{maker}_") for maker in show.sparse):
            known = [*space.group_names, *(f"{maker}_*" for maker in show.sparse)]
            raise UsageError(f"{OptionName(option)}: {explain_unknown_feature(name, known)}")
    if selection.active is not None and not selection.active:
        raise UsageError("no feature is active: name at least one, or leave the option out")
    if not show.sparse and not selection.select_names(space).any():
        raise UsageError("{--drop-feature} drops all features: leave at least one to tune")


def _can_begin(name: str, beginning: str) -> bool:
    """Return whether a name, or one that a pattern stands for, can begin so."""
    literal, star, _ = name.partition("*")
    return literal.startswith(beginning) or bool(star and beginning.startswith(literal))


def require_matches(selection: FeatureSelection, space: FeatureSpace) -> None:
    """Check that each pattern matches a feature of the lists.

    Raises:
        UsageError: one matches none.
    """
    for option, name in selection.find_unmatched(space):
        if "*" in name:
            known = [*space.group_names, *space.sparse]
            raise UsageError(
                f"{OptionName(option)}: {explain_unknown_feature(name, known)} (then add "
                "{--continue})"
            )
