"""``mosesplug nbest verify``, ``compact``, ``copy`` and ``drop``: the store as a thing to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.inspecting import Json, Store
from mosesplug.errors import DataError

__all__ = ["compact", "copy", "drop", "verify"]


def verify(
    store: Store,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print faults and errors only.")] = False,
) -> None:
    """Read every record, and see that it is what it should be; ends with code 1 if one is not.

    Example: mosesplug nbest verify tuning
    """
    from mosesplug.cli.bar import bar
    from mosesplug.cli.output import print_json
    from mosesplug.inspection.run import opened

    found, read = [], 0
    with opened(store) as run, bar(quiet or json) as progress:
        total = len(run.records) * run.n_sentences
        for record in run.records:
            for sentence in range(run.n_sentences):
                faults = run.store.faults(record.iteration, sentence)
                found += [(record.iteration, sentence, fault) for fault in faults]
                read += 1
                progress(read, total, "lists")
        iterations = len(run.records)
        lists = sum(record.n_lists for record in run.records)
    if json:
        keys = ("iteration", "sentence", "fault")
        print_json([dict(zip(keys, fault, strict=True)) for fault in found])
    else:
        for iteration, sentence, fault in found:
            print(f"iteration {iteration}, sentence {sentence}: {fault}")
    if found:
        raise DataError(f"{len(found)} faults in {iterations} iterations of {store}")
    if not (quiet or json):
        print(f"{iterations} iterations, {lists} lists: no fault found")


def compact(store: Store) -> None:
    """Replace a store by a copy of itself without free pages.

    Nothing else may have it open meanwhile.

    Example: mosesplug nbest compact tuning
    """
    from mosesplug.inspection.run import store_path
    from mosesplug.store.maintenance import compact as compacted

    before, after = compacted(store_path(store))
    print(f"{before} bytes before, {after} after")


def copy(
    store: Store,
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The new store.")],
) -> None:
    """A compact copy of a store as it is now; a run may be going on.

    Example: mosesplug nbest copy tuning /backup/tuning.lmdb
    """
    from mosesplug.inspection.run import store_path
    from mosesplug.store.maintenance import copy as copied

    print(f"{copied(store_path(store), target)} bytes in {target}")


def drop(
    store: Store,
    iteration: Annotated[
        int, typer.Argument(min=1, metavar="ITERATION", help="The newest of the store.")
    ],
) -> None:
    """Remove the newest iteration from a store: later ones refer to the hypotheses of earlier ones.

    A run that is continued then decodes it again.

    Example: mosesplug nbest drop tuning 7
    """
    from mosesplug.inspection.run import store_path
    from mosesplug.store import NBestStore

    with NBestStore.open(store_path(store), writable=True) as opened:
        opened.drop_last(iteration)
    print(f"iteration {iteration} is removed")
