"""Check names of features to tune: before decoding, and where features are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from formats.weights.files import ShowWeights
from mosesplug.decoders.servers.folded_tables import CannotFoldError, FoldedTables
from mosesplug.decoders.servers.sentence_tables import SentenceTables
from mosesplug.errors import OptionName, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.selection import FeatureSelection, NamePatterns


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
    if not show.sparse and not selection.select_names(space).any():
        which = "all features" if selection.active is None else "all that {--active} names"
        raise UsageError(f"{{--drop-feature}} drops {which}: leave at least one to tune")


def check_patterns(
    selection: FeatureSelection,
    show: ShowWeights,
    config: Path,
    flags: Sequence[str],
    directory: Path,
    sentences: Sequence[bytes],
) -> None:
    """Check patterns of sparse features against the phrases that the decoder can use.

    They are known of one text phrase table and of feature functions that depend on one phrase pair
    and the source sentence. Otherwise, ``require_matches`` checks the patterns after decoding.

    Args:
        selection: has passed ``check_selection``.
        config: the ``moses.ini`` of the decoder.
        flags: the flags of the decoder.
        directory: the decoder's current directory.
        sentences: the source sentences.

    Raises:
        UsageError: no hypothesis can have a feature that a pattern matches.
    """
    unmatched = {
        name: option
        for option, name in selection.find_unmatched(FeatureSpace.of_names(show.names))
        if "*" in name
    }
    tables = SentenceTables.of(config, flags) if unmatched else None
    if tables is None:
        return
    try:
        folded = FoldedTables.fold(tables, flags, directory, sentences)
    except CannotFoldError:
        return
    features = folded.list_features(sentences, directory)
    for name in _find_impossible(unmatched, features):
        known = [*show.names, *folded.folder.names]
        raise UsageError(f"{OptionName(unmatched[name])}: {explain_unknown_feature(name, known)}")


def _find_impossible(names: Iterable[str], features: Iterable[str]) -> list[str]:
    """Return the patterns that match none of the features; stop when all match one."""
    patterns = {name: NamePatterns((name,)) for name in names}
    for feature in features:
        matched = [name for name, pattern in patterns.items() if pattern.matches(feature)]
        for name in matched:
            del patterns[name]
        if not patterns:
            break
    return list(patterns)


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
