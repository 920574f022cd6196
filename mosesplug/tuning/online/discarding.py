"""Remove the lists of an epoch that is done, if a run does not keep them.

An epoch needs its lists until its result is stored, to be resumed from them. What else would be
read from them later goes into the result: their figures, and of the first epoch the warning signs.
"""

from __future__ import annotations

from dataclasses import replace

from mosesplug.errors import Message
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.guarding import find_first_signs
from mosesplug.tuning.workdir.records import keeps_lists, read_list_figures, read_result


def discard_lists(context: Context) -> None:
    """Remove the lists of the newest epoch, if they are not to be kept.

    They stay until its result is stored.

    Those of shards are in stores of their own. A kill may come between the result and this, so a
    run starts with it, too.
    """
    store = context.store
    records = store.iterations()
    if not records or records[-1].result is None or keeps_lists(records[-1]):
        return
    newest = records[-1]
    result = read_result(newest)
    if newest.iteration == 1 and result.signs is None:
        signs = find_first_signs(context)
        templates = tuple((sign.name, Message(sign.message).template) for sign in signs)
        result = replace(result, signs=templates)
        store.record_result(1, result.as_record())
    if newest.n_lists:
        result = replace(result, elsewhere=read_list_figures(newest))
        store.record_result(newest.iteration, result.as_record())
        store.discard_lists(newest.iteration)
    for path in context.workspace.shard_stores:
        with NBestStore.open(path, writable=True) as shard:
            lists = shard.iterations()[-1:]
            # Those of an epoch that is not mixed yet stay.
            if lists and lists[0].n_lists and lists[0].record["epoch"] <= newest.iteration:
                shard.discard_lists(lists[0].iteration)
