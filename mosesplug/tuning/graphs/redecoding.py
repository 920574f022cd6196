"""A run that decodes now and then: in between, its lists come from the search graphs it has.

With ``--redecode-every N``, iterations 1, N+1, 2N+1, ... have the decoder make search graphs with
the weights of then; the others list the best translations in all graphs so far, with the weights
of now. Online, the graphs of an epoch are made before its first mini-batch, and all mini-batches
are decoded by graphs: Watanabe (2012, section 5.1) made his once for the whole run.

The graphs of an epoch are in the store before its first list. A run that was cut off before that
list makes them again; after it, they are there.
"""

from __future__ import annotations

from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Note
from mosesplug.tuning.graphs.storing import store_graphs
from mosesplug.tuning.online.state import online_start, same_start
from mosesplug.tuning.start import columns
from mosesplug.tuning.steps import before_decoding, decoded, write_after
from mosesplug.tuning.workdir.records import IterationStart, result_of

__all__ = ["make_graphs"]


def make_graphs(context: Context) -> None:
    """Before an online epoch: its search graphs, if they are due and not there.

    Raises:
        DecoderError: the decoder failed.
    """
    store = context.files.store
    records = store.iterations()
    iteration = len(records) + 1
    if context.data.configuration.decoding.graphs is None or not context.decodes(iteration):
        return
    if records and records[-1].result is None:
        return  # all of its lists are there
    last = result_of(records[-1]) if records else None
    weights = last.weights if last else online_start(context)
    if (opened := store.open_iteration()) is not None:
        start = IterationStart(weights, context.data.seed, context.settings, (), 0.0)
        if same_start(start.as_record(), opened.progress["start"]):
            return
        context.files.watch(
            Note(
                f"the epoch that was cut off, with lists of {len(opened.sentences)} sentences, was"
                " begun with other settings or weights: it is begun anew",
                warning=True,
            )
        )
        store.drop_open()
    if last:
        # A kill may have come between the result and its files.
        write_after(context, iteration - 1, last)
    before_decoding(context, iteration, weights, last.optimum if last else None)
    store_graphs(
        context.data.configuration,
        context.files.config,
        store,
        iteration,
        weights,
        decoded(context, iteration, weights, skip=False),
        groups=columns(context.data.show).groups,
        n_sentences=context.data.references.n_sentences,
        watch=context.files.watch,
    )
