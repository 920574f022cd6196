"""Where tuning starts: the decoder's announced weights, and names checked against its features."""

from __future__ import annotations

from pathlib import Path

from formats.moses.ini import read_moses_ini
from formats.text import regular_file
from formats.weights.files import ShowWeights, read_sparse
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.settings.configuration import Configuration, Optimising
from mosesplug.tuning.weights import Weights, ranges

__all__ = ["check_names", "columns", "starting_weights"]

_RESULT = "moses.ini"
"""What a finished run leaves in its working directory."""


def columns(show: ShowWeights) -> FeatureSpace:
    """The dense columns of the n-best lists that the decoder announces."""
    return FeatureSpace.of_names(show.names)


def starting_weights(show: ShowWeights, configuration: Configuration) -> Weights:
    """The announced dense weights or those of a former run, and the sparse ones.

    Sparse weights are those of the ``weight-file`` in the configuration, or in the former run's
    result, and on top of them those of the file that is given.

    Args:
        show: the decoder's features.
        configuration: names the files. Relative names in a ``moses.ini`` count from the decoder's
            current directory.

    Raises:
        FormatError: a file cannot be read.
        UsageError: all weights are 0, which ranks nothing; or the former run is not finished, or
            had other features.
    """
    config, dense = configuration.config, show.values
    if configuration.start_from is not None:
        config = configuration.start_from / _RESULT
        dense = _former_weights(show, config)
    sparse: dict[str, float] = {}
    for value in read_moses_ini(config).section("weight-file"):
        sparse |= read_sparse(regular_file(configuration.working_directory / value.text))
    if configuration.sparse_weights is not None:
        sparse |= read_sparse(configuration.sparse_weights)
    if not any(dense):
        raise UsageError(f"all weights in {config} are 0: give starting weights in [weight]")
    return Weights(dense, sparse)


def _former_weights(show: ShowWeights, config: Path) -> tuple[float, ...]:
    """The dense weights in the result of a former run."""
    if not config.is_file():
        raise UsageError(f"there is no finished run to start from: {config} is missing")
    weights = read_moses_ini(config).weights
    found: list[float] = []
    for group in show.groups:
        values = weights.get(group.name, ())
        if group.is_tuneable and len(values) != len(group.values):
            raise UsageError(
                f"{config} has {len(values)} weights of {group.name}, the decoder has"
                f" {len(group.values)}: a run can only start from one with the same features"
            )
        pairs = zip(group.values, values, strict=False)
        found += [value for announced, value in pairs if announced is not None]
    return tuple(found)


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
