"""One epoch of shards that decode, and the mixing of their weights.

Lists stay in the stores of the shards, in ``shard.1``, ``shard.2``, ... of the working directory,
which all workers must see. The run's own store has an iteration without lists for each epoch, with
its weights, scores and the state of each shard's learner; it is written when the epoch is mixed. A
run that is interrupted before that is resumed by the shards, each from its own stored batches;
those that were done repeat their reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.features import FeatureSpace
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.events import Note, PhaseStarted
from mosesplug.tuning.guarding import guard_decoded, guard_weights
from mosesplug.tuning.online.epoch import Epoch, make_result, report_epoch
from mosesplug.tuning.online.shard import DecodedCorpus, DecodedShard
from mosesplug.tuning.online.state import (
    averages_weights,
    encode_state,
)
from mosesplug.tuning.parallel.progress import ShardProgress
from mosesplug.tuning.parallel.shards import (
    run_sharded_epoch,
)
from mosesplug.tuning.resources import Clock, release_memory
from mosesplug.tuning.workdir.records import (
    IterationResult,
    ShardLists,
)

__all__ = ["ShardWorkers", "run_shards"]


@dataclass(frozen=True)
class ShardWorkers:
    """Workers that run shards.

    Attributes:
        sharding: how to mix, and where workers are.
        parts: int64 each, the sentences of each shard.
        executor: runs them.
        decoder: makes a shard's decoder.
        sent: notes of shards that the user has seen; it grows.
    """

    sharding: Sharding
    parts: Sequence[NDArray[np.int64]]
    executor: Executor
    decoder: DecoderRecipe
    sent: set[str] = field(default_factory=set)


def run_shards(
    epoch: Epoch, workers: ShardWorkers, last: IterationResult | None
) -> IterationResult:
    """Run an epoch of shards, mix it and store its iteration, which has no lists."""
    context, iteration, start = epoch.context, epoch.iteration, epoch.start
    configuration, store = context.data.configuration, context.files.store
    evaluations = epoch.evaluate(epoch.record.weights, 0) if iteration == 1 else []
    release_memory()  # leave memory to the decoders' models
    context.files.watch(PhaseStarted(iteration, "decode"))
    clock = Clock()
    shards = [
        DecodedShard(
            number,
            context.files.workspace.shard(number),
            epoch.setup(part.tolist(), epoch=iteration),
            workers.decoder,
            store.fingerprints,
        )
        for number, part in enumerate(workers.parts, start=1)
    ]
    corpus = DecodedCorpus(workers.executor, shards)
    files = [shard.directory / "progress" for shard in shards if workers.sharding.elsewhere]
    report, mix = run_sharded_epoch(
        workers.executor,
        context.optimizer,
        start.states,
        shards,
        epoch.plan,
        iteration,
        sharding=workers.sharding,
        corpus=corpus,
        old=start.vector,
        progress=ShardProgress(context.files.watch, configuration.metric, iteration, files),
    )
    for note in report.notes:
        if note not in workers.sent:  # each epoch has new decoders, which repeat their notes
            workers.sent.add(note)
            context.files.watch(Note(note))
    seconds = max(0.0, clock.seconds() - report.seconds)
    space = FeatureSpace(corpus.space.groups, (*corpus.space.sparse, *report.features))
    facts = {"rho": mix.rho} if np.isnan(mix.score) else {"rho": mix.rho, "mixed": mix.score}
    result = make_result(epoch, report, space, mix.weights, seconds, facts)
    average = None
    if averages_weights(configuration, context.optimizer):
        average = result.weights
        if last is not None and last.average is not None:
            average = result.weights.mix(last.average, 1.0 / iteration)
    guard_decoded(context, result.optimum, epoch.record.as_record())
    guard_weights(context, result.weights)
    evaluations += epoch.evaluate(average or result.weights, report.updates, *evaluations)
    report_epoch(epoch, result)
    store.add_iteration(
        iteration,
        (),
        metric=configuration.metric,
        references=context.data.references,
        n_sentences=len(epoch.texts),
        record=replace(epoch.record, seconds_decoding=report.seconds).as_record(),
    )
    return replace(
        result,
        heldout=tuple(evaluations),
        average=average,
        learner={
            "shards": [encode_state(state, space, start.learner) for state in report.states],
            "sparse": list(space.sparse),
        },
        shards=ShardLists(
            result.optimum, report.sentences, report.hypotheses, report.new_hypotheses
        ),
    )
