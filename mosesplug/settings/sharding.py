"""Settings of parallel learning: shards, workers, and the mixing of weights."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Annotated, Literal

from mosesplug.errors import UsageError
from mosesplug.options import Opt
from mosesplug.settings.checks import check_fields

WorkerKind = Literal["threads", "processes"]
Mixing = Literal["average", "weighted", "line-search", "select"]
AsyncOrder = Literal["arrival", "fixed"]


@dataclass(frozen=True)
class Sharding:
    """How many workers learn at once, where, and what becomes of their weights.

    Raises:
        UsageError: a value is out of range, or settings exclude each other.
    """

    shards: Annotated[
        int,
        Opt(
            "Parts of the sentences that learn at once",
            "Parallel",
            metavar="S",
            minimum=1,
            can_be_abbreviated=True,
            details="For online learners, mert, kbmira, softmax, risk, linear-bleu and xbleu. "
            "Each shard of an online learner or of kbmira learns from its part; after each epoch "
            "the weights are mixed. The others share the work of one search, with the same "
            "result. With --async, the number of mini-batches in progress at once; with --online "
            "each of them has a decoder of its own.",
        ),
    ] = 1
    mixing: Annotated[
        Mixing,
        Opt(
            "How the weights of shards are mixed",
            "Parallel",
            metavar="HOW",
            excludes=("async",),
            can_be_abbreviated=True,
            details="For online learners; kbmira takes the mean. average: the mean of the shards' "
            "weights. weighted: their mean by number of updates. line-search: the point of the "
            "best metric between the old weights and the mean. select: the mean, restricted to "
            "the heaviest features (--keep).",
        ),
    ] = "line-search"
    keep: Annotated[
        int,
        Opt(
            "Sparse features that --mixing select keeps",
            "Parallel",
            metavar="K",
            default_text="none",
            minimum=1,
            requires=("mixing=select",),
            can_be_abbreviated=True,
        ),
    ] = 0
    asynchronous: Annotated[
        bool,
        Opt(
            "All workers update one set of weights",
            "Parallel",
            name="async",
            keyword="asynchronous",
            can_be_abbreviated=True,
            details="No shards and no mixing: workers learn from (with --online, decode) "
            "mini-batches with stale weights, and their updates are applied to one set of weights.",
        ),
    ] = False
    async_order: Annotated[
        AsyncOrder,
        Opt(
            "Apply updates by arrival, or fixed order",
            "Parallel",
            metavar="ORDER",
            requires=("async",),
            can_be_abbreviated=True,
            details="fixed applies updates in the order of the mini-batches. Such a run can be "
            "repeated exactly.",
        ),
    ] = "arrival"
    workers: Annotated[
        WorkerKind,
        Opt(
            "Run shards as threads or processes",
            "Parallel",
            metavar="KIND",
            excludes=("scheduler",),
            can_be_abbreviated=True,
            details="On stored lists, at most --threads shards run at the same time.",
        ),
    ] = "threads"
    scheduler: Annotated[
        str | None,
        Opt(
            "Dask cluster whose workers learn: tcp://HOST:PORT",
            "Parallel",
            metavar="ADDRESS",
            can_be_abbreviated=True,
            details="Needs the package distributed: pip install 'mosesplug[dask]'.",
        ),
    ] = None
    directory: Annotated[
        str | None,
        Opt(
            "Directory that all workers see, for lists",
            "Parallel",
            name="shard-directory",
            metavar="DIR",
            requires=("workers=processes or scheduler",),
            can_be_abbreviated=True,
            details="While other processes or machines learn, their lists lie there. Without it, "
            "temporary files are used.",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_fields(self, lenient=("keep",))
        if self.keep < 0 or (self.keep > 0) != (self.mixing == "select"):
            raise UsageError(
                "{--mixing select} requires {--keep}, the number of sparse features to keep; no"
                " other mixing uses it"
            )
        if self.scheduler is not None:
            check_address(self.scheduler)

    @property
    def elsewhere(self) -> bool:
        """Whether workers are other processes than this one."""
        return self.scheduler is not None or self.workers == "processes"


def check_address(address: str) -> None:
    """Check the address of a scheduler without connecting to it.

    Raises:
        UsageError: the package ``distributed`` is not installed, or this is not an address.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "a cluster of workers needs the package distributed: pip install 'mosesplug[dask]'"
        )
    if "://" not in address:
        raise UsageError(
            f"{address!r} is not the address of a scheduler. Write it as tcp://HOST:PORT."
        )
