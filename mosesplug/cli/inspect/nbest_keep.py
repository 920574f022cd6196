"""``mosesplug nbest verify``, ``compact``, ``copy`` and ``drop``: the store as a thing to keep."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.parameters import Json, Store
from mosesplug.errors import DataError

__all__ = ["compact", "copy", "drop", "verify"]


def verify(
    store: Store,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print faults and errors only.")] = False,
) -> None:
    """Read every record, and see that it is what it should be; ends with code 1 if one is not.

    Records are compared with the checksums that they were written with (version 0.1 wrote none),
    and taken apart: every hypothesis that a list refers to is looked up, and features, scores and
    statistics must be numbers.

    Example: mosesplug nbest verify tuning
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.inspection.soundness import Soundness, soundness
    from mosesplug.tuning.workdir.stores import find_store

    found = Soundness()
    with progress_bar(quiet or json) as progress:
        for found in soundness(find_store(store)):
            progress(found.done, found.total, "sentences")
    if json:
        print_json([asdict(fault) for fault in found.faults])
    else:
        for fault in found.faults:
            where = "" if fault.sentence is None else f", sentence {fault.sentence}"
            print(f"iteration {fault.iteration}{where}: {fault.fault}")
    if found.faults:
        raise DataError(f"{len(found.faults)} faults in {found.iterations} iterations of {store}")
    if not (quiet or json):
        print(f"{found.iterations} iterations, {found.lists} lists: no fault found")
        if found.without:
            print(
                f"{found.without} of {found.without + found.records} records have no checksum: an "
                "earlier version wrote them"
            )


def compact(store: Store) -> None:
    """Replace a store by a copy of itself without free pages.

    Nothing else may have it open meanwhile.

    Example: mosesplug nbest compact tuning
    """
    from mosesplug.store.maintenance import compact as compacted
    from mosesplug.tuning.workdir.stores import find_store

    before, after = compacted(find_store(store))
    print(f"{before} bytes before, {after} after")


def copy(
    store: Store,
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The new store.")],
) -> None:
    """A compact copy of a store as it is now; a run may be going on.

    Example: mosesplug nbest copy tuning /backup/tuning.lmdb
    """
    from mosesplug.store.maintenance import copy as copied
    from mosesplug.tuning.workdir.stores import find_store

    print(f"{copied(find_store(store), target)} bytes in {target}")


def drop(
    store: Store,
    iteration: Annotated[
        int, typer.Argument(min=1, metavar="ITERATION", help="The newest of the store.")
    ],
) -> None:
    """Remove the newest iteration from a store: later ones refer to the hypotheses of earlier ones.

    A run that is continued then decodes it again. So that it does, finished_step.txt beside the
    store names the iteration before, and summary.json, which no longer holds, is removed;
    moses.ini stays until the run that is continued writes it anew.

    Example: mosesplug nbest drop tuning 7
    """
    from mosesplug.inspection.dropping import drop as dropped
    from mosesplug.tuning.workdir.stores import find_store

    place = find_store(store)
    mended = dropped(place, iteration)
    print(f"iteration {iteration} is removed")
    for path in mended:
        print(f"{path} is {'set back' if path.exists() else 'removed'}")
    if (tuned := place.parent / "moses.ini").is_file() and mended:
        print(f"{tuned} still has the weights of the whole run: --continue writes it anew")
