"""Compile the kernels of a run while its first lists are decoded.

A thread stores and tunes a few invented lists with the metric, the features and the algorithm of
the run. The machine code that this compiles, or loads from the cache, is then ready when the lists
come. Results do not depend on it.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from formats.nbest.files import read_nbest_blocks
from mosesplug.metrics.plain import kernels_only
from mosesplug.optimizers import Problem
from mosesplug.optimizers.registry import built_in_algorithms
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.decoding.command import CommandDecoder
from mosesplug.tuning.decoding.program import ProgramDecoder

__all__ = ["compile_while_decoding"]

_PATIENCE = 0.5
"""Seconds of decoding before the thread starts. Shorter decodings leave no time to save."""

_ATTEMPTS = 5
"""Attempts to stop the compiler thread, which may catch the first ones."""

_TEXTS = ("a b c d e f g", "a b c x e f g h", "b c d e f a", "g f e d c b a")
_SENTENCES = 6
_MAP_BYTES = 1 << 24

_prepared: set[tuple[str, str, bool]] = set()
"""Algorithm and metric of what this process has compiled."""


class _StoppedError(SystemExit):
    """The thread is to stop. The compiler would catch an ``Exception``."""


@contextmanager
def compile_while_decoding(context: Context) -> Iterator[None]:
    """Compile kernels in a thread while the block decodes.

    When the block ends, the thread stops at its next step, and nothing waits for it.

    At an interrupt, the thread is stopped wherever it is: the end of the process does not wait
    until kernels are compiled.

    It does nothing for decoders and extensions that run in this process.
    """
    what = (
        context.optimizer.name,
        context.data.references.signature,
        bool(context.data.show.sparse),
    )
    if what in _prepared or not _is_ours(context):
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_compile, args=(context, stop), name="mosesplug-compiler")
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
    if not isinstance(context.decoder, ProgramDecoder | CommandDecoder):
        return False
    is_metric_ours = type(context.data.configuration.metric).__module__.startswith("mosesplug.")
    return is_metric_ours and context.optimizer.name in built_in_algorithms()


def _compile(context: Context, stop: threading.Event) -> None:
    """Tune invented lists; never fail."""
    try:
        if stop.wait(_PATIENCE):
            return
        with (
            TemporaryDirectory(prefix="mosesplug-") as directory,
            np.errstate(all="ignore"),
            kernels_only(),
        ):
            _tune_invented_lists(context, Path(directory), stop)
    except _StoppedError:
        pass
    except Exception as error:  # the run itself reports what is wrong
        logging.getLogger(__name__).debug("kernels were not compiled ahead: %s", error)


def _tune_invented_lists(context: Context, directory: Path, stop: threading.Event) -> None:
    data = context.data
    metric, threads = data.configuration.metric, data.configuration.optimization.threads
    generator = np.random.default_rng(0)
    references = metric.prepare(
        [[_TEXTS[0].encode()] * _SENTENCES] * max(1, data.references.n_references)
    )

    def check(*_: object) -> None:
        if stop.is_set():
            raise _StoppedError

    with NBestStore.open(directory / "store", writable=True, map_size=_MAP_BYTES) as store:
        for iteration in (1, 2):
            path = directory / f"{iteration}"
            path.write_text(_invent_lists(context, generator, iteration))
            check()
            store.add_iteration(
                iteration,
                read_nbest_blocks(path),
                metric=metric,
                references=references,
                n_sentences=_SENTENCES,
                record={},
                threads=threads,
            )
        check()
        lists = store.tuning_set(metric=metric, references=references, threads=threads)
    if context.learns_from_graphs:
        return
    problem = Problem(lists, metric, threads=threads, grows=True)
    context.optimizer.optimize(
        problem, generator.uniform(0.1, 1.0, len(lists.space)), generator, check
    )


def _invent_lists(context: Context, generator: np.random.Generator, iteration: int) -> str:
    """Return n-best lists with the features of the run and random values."""
    lines = []
    for sentence in range(_SENTENCES):
        for text in _TEXTS[iteration - 1 :]:
            fields = [
                f"{name}= {' '.join(f'{value:.3f}' for value in generator.normal(size=width))}"
                for name, width in context.data.space.groups
            ]
            fields += [f"{name}_x= {generator.normal():.3f}" for name in context.data.show.sparse]
            lines.append(f"{sentence} ||| {text} ||| {' '.join(fields)} ||| -1\n")
    return "".join(lines)
