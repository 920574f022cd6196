"""Where tuning starts: the decoder's announced weights, and names checked against its features."""

from __future__ import annotations

from pathlib import Path

from formats.moses_ini import read_moses_ini
from formats.weights import ShowWeights, read_sparse
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning.configuration import Optimising
from mosesplug.tuning.weights import Weights, ranges

__all__ = ["check_names", "columns", "starting_weights"]


def columns(show: ShowWeights) -> FeatureSpace:
    """The dense columns of the n-best lists that the decoder announces."""
    return FeatureSpace.of_names(show.names)


def starting_weights(show: ShowWeights, config: Path, directory: Path) -> Weights:
    """The announced dense weights, and the sparse ones of the configuration's ``weight-file``.

    Args:
        show: the decoder's features.
        config: the ``moses.ini``.
        directory: the decoder's current directory, from which relative names count.

    Raises:
        FormatError: the file cannot be read.
        UsageError: all weights are 0, which ranks nothing.
    """
    sparse: dict[str, float] = {}
    for value in read_moses_ini(config).section("weight-file"):
        sparse |= read_sparse(directory / value.text)
    if not any(show.values):
        raise UsageError(f"all weights in {config} are 0: give starting weights in [weight]")
    return Weights(show.values, sparse)


def check_names(optimising: Optimising, show: ShowWeights) -> None:
    """See that every feature that is named exists, before hours of decoding.

    Sparse features are only known once the decoder wrote some; their names begin with that of
    the feature function that makes them.

    Raises:
        UsageError: a name in ``active`` or ``ranges`` is none.
    """
    space = columns(show)
    ranges(optimising.ranges, space.group_names)
    known = (*space.names, *space.group_names)
    for name in optimising.active or ():
        if name not in known and not any(name.startswith(f"{maker}_") for maker in show.sparse):
            raise UsageError(
                f"there is no feature {name} to activate; there are {', '.join(space.names)}"
            )
    if optimising.active is not None and not optimising.active:
        raise UsageError("no feature is active: name at least one, or leave the option out")
