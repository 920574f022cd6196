"""Tune a system: decode, optimize, repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.text import StrPath
from mosesplug.api.keywords import RUN, collect_keywords
from mosesplug.api.progress import Progress, RunLog, open_progress
from mosesplug.events import DecodingProgress, Event, Note, OptimizerProgress
from mosesplug.settings.build import make_plan
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.defaults import fill_defaults
from mosesplug.settings.toml import overlay_settings, read_settings
from mosesplug.tuning.loop import tune as tune_once
from mosesplug.tuning.repeats.files import check_single
from mosesplug.tuning.repeats.result import SeveralResult
from mosesplug.tuning.repeats.runs import tune_several
from mosesplug.tuning.repeats.scores import FinishedRun
from mosesplug.tuning.workdir.summary import Result

if TYPE_CHECKING:
    from mosesplug.api.run import Run


def tune(
    input: StrPath | None = None,
    references: StrPath | None = None,
    decoder: StrPath | None = None,
    config: StrPath | None = None,
    *,
    working_dir: StrPath | None = None,
    settings: StrPath | None = None,
    watch: Callable[[Event], object] | None = None,
    progress: Progress = None,
    **more: Any,
) -> Run:
    """Tune a system's weights, as ``mosesplug tune`` does; nothing is printed.

    A run that is interrupted, also by Control-C, keeps its finished iterations: the same call with
    ``resume=True`` continues it, and ends with the same bytes.

    Args:
        input: the source sentences of the tuning set.
        references: a file, or the prefix of several.
        decoder: Moses, a program like it, or ``forest:DIR``. Without it, give ``decode_command``.
        config: the decoder's ``moses.ini`` with starting weights; with ``decode_command``, a file
            of weights in any format that has names.
        working_dir: directory of all files of the run. Default: ``tuning``.
        settings: a settings file, as each run leaves in ``settings.toml``; keywords win.
        watch: called with each event, an object of ``mosesplug.events`` (such as
            ``IterationFinished``), from any thread.
        progress: None, True for a bar, or a function that is called with (done, total,
            what).
        more: any other setting of ``mosesplug tune``, with underscores: ``algorithm="kbmira"``,
            ``nbest=200``, ``max_iterations=10``, ``seed=1``, ``runs=5``. ``options`` is the mapping
            of the algorithm's settings; ``resume`` stands for ``--continue``.

    Returns:
        The finished run; of several runs, the one whose weights are the result.

    Raises:
        UsageError: a setting cannot be used, or settings exclude each other.
        DataError: the directory holds another run, or input and references differ.
        DecoderError: the decoder failed; ``resume=True`` continues when it is repaired.
        StoreError: the store cannot be used, or belongs to another run.
        OptimizerError: no usable weights can come of these lists.
        FormatError: a file cannot be read.

    Example:
        >>> import mosesplug
        >>> command = "python3 decoder.py {weights} {input} {nbest}"
        >>> run = mosesplug.tune(
        ...     "dev.fr", "dev.en", config="start.weights", decode_command=command,
        ...     algorithm="kbmira", max_iterations=2, seed=1,
        ... )
        >>> len(run.iterations), run.is_finished
        (2, True)
    """
    from mosesplug.api.run import open_run  # the command line tunes without it

    keywords = {
        "input": input,
        "references": references,
        "decoder": decoder,
        "config": config,
        "working_dir": working_dir,
        **more,
    }
    with RUN.in_messages(), follow(watch, progress) as receive:
        values = collect_keywords(keywords)
        if settings is not None:
            values = overlay_settings(read_settings(Path(settings)), values)
        plan = make_plan(fill_defaults(values))
        count = plan.repeats.runs

        def began(run: int, seed: int) -> None:
            receive(Note(f"run {run} of {count}, seed {seed}"))

        run_plan(plan, receive, began)
    return open_run(plan.configuration.working_directory)


def run_plan(
    plan: RunPlan,
    watch: Callable[[Event], None],
    began: Callable[[int, int], None] = lambda run, seed: None,
    ended: Callable[[FinishedRun], None] = lambda run: None,
) -> Result | SeveralResult:
    """Tune once or several times.

    Args:
        plan: what to do.
        watch: receives all events.
        began: called with number and seed of each of several runs that begins or continues.
        ended: called with each finished run of several.

    Raises:
        UsageError: the working directory holds several runs, and one is asked for.
        MosesplugError, FormatError, OSError: as ``tune``.
    """
    configuration, count = plan.configuration, plan.repeats.runs

    if count is None:
        check_single(configuration.working_directory)
        return tune_once(configuration, watch)
    return tune_several(configuration, count, plan.select_run, watch, began, ended)


@contextmanager
def follow(
    watch: Callable[[Event], object] | None, progress: Progress
) -> Iterator[Callable[[Event], None]]:
    """Yield a function that passes events to a watcher, progress and the log.

    Args:
        watch: called with each event, or None.
        progress: see ``Progress``.
    """
    log = RunLog(RUN)
    with open_progress(progress) as report:

        def receive(event: Event) -> None:
            if watch is not None:
                watch(event)
            log(event)
            match event:
                case DecodingProgress(iteration, sentences, total):
                    report(sentences, total, f"sentences of iteration {iteration}")
                case OptimizerProgress(_, done, total, what):
                    report(done, total, what)

        yield receive
