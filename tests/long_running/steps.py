"""Regimes that are sequences of commands, and any other command of ``mosesplug``.

Like every regime they are called with a list of words, may be killed anywhere, and are then called
again with the same words:

``ask-and-tell SYSTEM DIR SETTING...``
    asks for weights, decodes and tells the list until the run is finished, as a script does.
``maintain SYSTEM DIR``
    copies the store of a run into DIR, drops its last iteration, compacts it, and imports the lists
    of a file into a second one.
"""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from mosesplug.cli.main import main as mosesplug
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore

__all__ = ["run"]


def run(words: Sequence[str]) -> None:
    """Run a command; it raises ``SystemExit``."""
    sequences = {"ask-and-tell": _ask_and_tell, "maintain": _maintain}
    if words[0] not in sequences:
        mosesplug(list(words))
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        sequences[words[0]](*words[1:])
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    sys.exit(0)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _call(*words: object) -> str:
    """Run a command of ``mosesplug`` and return what it prints on stdout."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            mosesplug(list(map(str, words)))
        except SystemExit as ended:
            if ended.code:
                raise
        finally:
            signal.signal(signal.SIGTERM, _end)
    return printed.getvalue().strip()


def _ask_and_tell(system: str, work: str, *settings: str) -> None:
    files = Path(system)
    lists = Path(work).with_name(f"{Path(work).name}.nbest")
    begin = ("ask", work, files / "reference", files / "moses.ini", *settings)
    while weights := _call(*begin):
        command = [files / "command", weights, files / "input", lists, "10"]
        subprocess.run(command, check=True, capture_output=True)
        number = re.fullmatch(r"run(\d+)\..*", Path(weights).name)
        assert number is not None
        _call("tell", work, lists, "--iteration", number[1], "--quiet")
    lists.unlink(missing_ok=True)


def _maintain(system: str, work: str) -> None:
    source, store = Path(system) / "maintained", Path(work) / "nbests.lmdb"
    if not _has_iterations(store):
        _call("nbest", "copy", source, store)
    with NBestStore.open(store) as opened:
        last = len(opened.iterations())
    if last == 2:
        _call("nbest", "drop", store, last)
    _call("nbest", "compact", store)
    imported = Path(work) / "imported"
    if not _has_iterations(imported):
        lists = source / "run1.best10.out.gz"
        _call("nbest", "import", lists, imported, "--refs", Path(system) / "reference")


def _has_iterations(store: Path) -> bool:
    try:
        with NBestStore.open(store) as opened:
            return bool(opened.iterations())
    except StoreError:
        return False


if __name__ == "__main__":
    run(sys.argv[1:])
