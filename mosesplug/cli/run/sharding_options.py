"""The options of ``mosesplug optimize`` that say who learns on which sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, algorithms

if TYPE_CHECKING:
    from mosesplug.settings.sharding import Sharding

__all__ = ["sharding_of"]


def sharding_of(
    tuner: Algorithm,
    *,
    shards: int | None,
    mixing: str | None,
    keep: int | None,
    asynchronous: bool,
    async_order: str | None,
    workers: str | None,
    scheduler: str | None,
    shard_directory: Path | None,
) -> Sharding | None:
    """What the options ask for; None where none of them is given.

    Raises:
        UsageError: the algorithm cannot be sharded, or options exclude each other.
    """
    given: dict[str, Any] = {
        "shards": shards,
        "mixing": mixing,
        "keep": keep,
        "asynchronous": asynchronous or None,
        "async_order": async_order,
        "workers": workers,
        "scheduler": scheduler,
        "directory": None if shard_directory is None else str(shard_directory.resolve()),
    }
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return None
    if tuner.learner is None:
        able = sorted(each.name for each in algorithms().values() if each.learner is not None)
        raise UsageError(
            f"{tuner.name} does not learn from mini-batches, so it has no shards and no workers; "
            f"these do: {', '.join(able)}"
        )
    if keep is not None and keep < 1:
        raise UsageError(f"--keep must be at least 1, not {keep}")
    if asynchronous and mixing is not None:
        raise UsageError("--async has one set of weights, so there is no --mixing")
    if async_order is not None and not asynchronous:
        raise UsageError("--async-order is of --async")
    if scheduler is not None and workers is not None:
        raise UsageError("--scheduler takes the workers of the cluster, so there are no --workers")
    if shard_directory is not None and scheduler is None and workers != "processes":
        raise UsageError("--shard-directory is for other processes: --workers processes")

    from mosesplug.settings.sharding import Sharding

    return Sharding(**given)
