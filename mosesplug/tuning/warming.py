"""Compile the kernels of a run while its decoder decodes for the first time.

A thread tunes on a few invented sentences with the metric, the features and the algorithm of the
run. The machine code that this compiles, or loads from the cache, is then ready when the lists or
search graphs come. Results do not depend on it.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mosesplug.metrics.plain import kernels_only
from mosesplug.optimizers.registry import built_in_algorithms
from mosesplug.scratch import ScratchDirectory
from mosesplug.tuning.context import Context
from mosesplug.tuning.invented_run import RunLoop, tune_invented_sentences

_PATIENCE = 0.5
"""Seconds of decoding before the thread starts. Shorter decodings leave no time to save."""

_ATTEMPTS = 5
"""Attempts to stop the compiler thread, which may catch the first ones."""

_prepared: set[tuple[object, ...]] = set()
"""Algorithm, metric, kind of features and of run, for each run that was compiled."""


class _StoppedError(SystemExit):
    """The thread is to stop. The compiler would catch an ``Exception``."""


@contextmanager
def compile_while_decoding(context: Context, run: RunLoop) -> Iterator[None]:
    """Compile kernels in a thread while the block decodes.

    The thread runs two iterations on invented sentences by ``run``.

    When the block ends, the thread stops at its next step, and nothing waits for it.

    At an interrupt, the thread is stopped wherever it is: the end of the process does not wait
    until kernels are compiled.

    It does nothing for decoders and extensions that run in this process.
    """
    what = (
        context.optimizer.name,
        context.references.signature,
        bool(context.show.sparse),
        context.configuration.decoding.graphs,
        context.configuration.online is not None,
    )
    if what in _prepared or not _is_ours(context):
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_compile, args=(context, run, stop), name="mosesplug-compiler")
    thread.start()
    _prepared.add(what)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        stop.set()
        _stop_now(thread)
        raise
    finally:
        stop.set()


def _stop_now(thread: threading.Thread) -> None:
    """Raise ``_StoppedError`` in a thread, again if it is caught there."""
    for _ in range(_ATTEMPTS):
        if thread.ident is None or not thread.is_alive():
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(_StoppedError)
        )
        thread.join(1.0)


def _is_ours(context: Context) -> bool:
    """Return whether a program decodes and nothing of another package is called."""
    if not context.decoder.is_program:
        return False
    is_metric_ours = type(context.configuration.metric).__module__.startswith("mosesplug.")
    return is_metric_ours and context.optimizer.name in built_in_algorithms()


def _compile(context: Context, run: RunLoop, stop: threading.Event) -> None:
    """Tune on invented sentences; never fail."""

    def check() -> None:
        if stop.is_set():
            raise _StoppedError

    try:
        if stop.wait(_PATIENCE):
            return
        with (
            ScratchDirectory() as directory,
            np.errstate(all="ignore"),
            kernels_only(),
        ):
            tune_invented_sentences(
                context,
                context.config,
                context.optimizer,
                Path(directory),
                run,
                check,
            )
    except _StoppedError:
        pass
    except Exception as error:  # the run itself reports what is wrong
        logging.getLogger(__name__).debug("kernels were not compiled ahead: %s", error)
