"""Read the lists of the first iteration from the run's store, or those of shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.online.source import is_same_start
from mosesplug.tuning_set import TuningSet

__all__ = ["FirstLists", "read_first_lists"]


@dataclass
class FirstLists:
    """The lists of the first iteration.

    Attributes:
        parts: distinct hypotheses of each sentence, one part per store.
        outputs: the decoder's translations by sentence id.
    """

    parts: list[TuningSet] = field(default_factory=list)
    outputs: dict[int, bytes] = field(default_factory=dict)


def read_first_lists(context: Context, start: Mapping[str, Any], n_texts: int) -> FirstLists:
    """Read the lists of the first iteration.

    Args:
        context: of the run.
        start: the first iteration's start record. Epochs of shards with another one were dropped.
        n_texts: how many translations are enough.
    """
    found, store = FirstLists(), context.files.store
    records = store.iterations()
    if records and records[0].n_lists:
        _add(found, context, store, 1, n_texts)
        return found
    wanted = {**start, "epoch": 1}
    for number in count(1):
        path = context.files.workspace.shard(number) / context.files.workspace.store.name
        if not path.is_dir():
            break
        with NBestStore.open(path) as shard:
            for record in shard.iterations():
                if is_same_start(record.record, wanted):
                    _add(found, context, shard, record.iteration, n_texts)
    return found


def _add(
    found: FirstLists, context: Context, store: NBestStore, iteration: int, n_texts: int
) -> None:
    """Add the lists of one store's iteration."""
    metric, references = context.data.configuration.metric, context.data.references
    lists = store.tuning_set(iteration, metric=metric, references=references)
    found.parts.append(lists)
    filled = np.flatnonzero(np.diff(lists.offsets))
    for sentence in filled[: n_texts - len(found.outputs)].tolist():
        found.outputs[sentence] = store.hypotheses(sentence, iteration)[0]
