"""Prepare decoding: filter the model, and ask the decoder for its features."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formats.errors import FormatError, quote
from formats.moses.ini import explain_unfit_value
from formats.text import write_atomic
from formats.weights.any_format import read_weights
from formats.weights.files import ShowWeights, format_show_weights, read_show_weights
from mosesplug.decoders import caches
from mosesplug.decoders.forced import CONSTRAINTS, prepare_forced
from mosesplug.decoders.kinds import ModelFilter, WeightsFormat
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.processes.run import MESSAGES, make_error, run_command
from mosesplug.decoders.protocol import DecodingTask
from mosesplug.decoders.run_files import RunFiles
from mosesplug.decoders.wrappers import Queue
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, Note, PhaseStarted, Watcher
from mosesplug.templates.moses import OWN_FUNCTIONS


def prepare_config(
    config: Path,
    files: RunFiles,
    watch: Watcher,
    *,
    filtering: ModelFilter | None,
    cache: tuple[str, ...] | None,
    queue: Queue | None,
) -> Path:
    """Return the ``moses.ini`` to decode with, after filtering or copying the model.

    Args:
        config: the configuration that the run started with.
        files: where the filtered model goes.
        filtering: filter the model first, or None.
        cache: words of the command that copies the model, or None.
        queue: runs the commands; None for this machine.

    Raises:
        DecoderError: the filter or the copying failed.
    """
    if filtering is not None:
        config = _filter_tables(config, filtering, files, watch, queue)
    if cache is not None:
        script, *arguments = cache
        answer = files.directory / "cache-model.out"
        _execute((script, str(config), *arguments), answer, "model cache", files, watch, queue)
        config = Path(answer.read_text().strip().splitlines()[-1])
    return config


def announce_features(decoder: MosesCommands, task: DecodingTask) -> ShowWeights:
    """Return the announced features and weights, cached in ``features.list``.

    Raises:
        DecoderError: the decoder failed, or announced nothing to tune; its answer cannot be read.
        UsageError: sparse weights cannot lie in this working directory.
    """
    command, files = decoder.show_weights(task.config), task.files
    made_from = {
        "command": shlex.join(command),
        "configuration": caches.describe_content(task.config),
        "decoder": caches.describe_size_and_time(decoder.program),
    }
    path = files.features_list
    if not caches.is_fresh(path, made_from):
        task.watch(PhaseStarted(0, "features"))
        caches.forget(path)
        answer = path.with_name("features.list.new")
        with explain_lost_models(task.config, files.directory), _explain_own_functions():
            _show_weights(decoder, command, answer, task)
        # Renamed when complete: half of an answer is never read.
        answer.replace(path)
        caches.remember(path, made_from)
    try:
        show = read_show_weights(path)
    except FormatError as error:
        raise make_error(
            f"the decoder's answer to -show-weights cannot be read: {error}", command, path
        ) from error
    if not show.names:
        raise DecoderError(
            f"the decoder announced no weights to tune\ncommand: {shlex.join(command)}\n"
            f"(its answer is in {path}; is the [weight] section of {task.config} in order?)"
        )
    if show.sparse and (why := explain_unfit_value(f"{files.directory}/")):
        raise UsageError(
            f"the working directory {quote(str(files.directory))} cannot have sparse weights:"
            f" moses.ini would name a file in it, and there {why}. Use another {{--working-dir}}"
        )
    return show


def require_constraints(decoder: MosesCommands, task: DecodingTask) -> None:
    """Check that the decoder has the feature function of forced decoding.

    Moses creates feature functions before it answers ``-show-weights``, and loads them afterwards.

    Raises:
        DecoderError: it has not.
        FormatError: the configuration cannot be constrained.
    """
    answer = task.files.directory / "forced.features.list"
    try:
        _show_weights(decoder, decoder.show_weights(prepare_forced(task)), answer, task)
    except DecoderError as error:
        raise DecoderError(
            f"{{--forced-decoding}} requires a decoder with the feature function {CONSTRAINTS}, and"
            f" {decoder.program} rejects a configuration with it. Leave out {{--forced-decoding}},"
            f" or give Moses as the decoder\n{error}"
        ) from error
    for path in (answer, answer.with_suffix(".err")):
        path.unlink(missing_ok=True)


def read_features(task: DecodingTask, weights_format: WeightsFormat) -> ShowWeights:
    """Return features and weights of a weight file; write ``features.list``.

    Args:
        task: names the file.
        weights_format: the format of the files that the run will write.

    Raises:
        FormatError: the file cannot be read.
        UsageError: it has no dense features, or it is not a ``moses.ini``, but one must be written.
    """
    file = read_weights(task.config)
    if not file.show.names:
        raise UsageError(
            f"{file.path} names no dense features to tune (its format is {file.format}). Write one"
            " `Name= value value` line for each feature, or JSON"
        )
    if weights_format == "moses" and file.ini is None:
        raise UsageError(
            f"{{--weights-format moses}} requires a moses.ini, but {file.path} has the format"
            f" {file.format}. Choose dense, json or one-line"
        )
    write_features(task.files, file.show)
    return file.show


def write_features(files: RunFiles, show: ShowWeights) -> None:
    """Write ``features.list`` for features that no program announced."""
    caches.forget(files.features_list)
    write_atomic(files.features_list, format_show_weights(show))


@contextmanager
def explain_lost_models(config: Path, directory: Path) -> Iterator[None]:
    """Add the usual cause to the error of a decoder that cannot load its model.

    A decoder that says that something else is wrong is believed.
    """
    try:
        yield
    except DecoderError as error:
        messages = str(error).partition(MESSAGES)[2]
        for name in caches.find_lost_models(config, directory):
            place = re.escape(f"{directory}/")
            if not messages or re.search(
                rf"(?:{place}|(?<![\w./-])(?:\./)?){re.escape(name)}", messages
            ):
                raise DecoderError(
                    f"{error}\nhint: the decoder runs in {directory} and looks for {name}"
                    f" there, as {config} says: write absolute paths in it"
                ) from error
        raise


@contextmanager
def _explain_own_functions() -> Iterator[None]:
    """Add the remedy to the error of a decoder without functions that Moses lacks."""
    try:
        yield
    except DecoderError as error:
        messages = str(error).partition(MESSAGES)[2]
        for message, name in OWN_FUNCTIONS.items():
            if message in messages:
                raise DecoderError(
                    f"{error}\nhint: only the bundled decoder computes {name}. Remove it, and "
                    "learn its features from n-best lists with mosesplug optimize --templates "
                    "(mosesplug rerank --templates uses them)"
                ) from error
        raise


def _filter_tables(
    config: Path, filtering: ModelFilter, files: RunFiles, watch: Watcher, queue: Queue | None
) -> Path:
    """Return the filtered model's configuration; filter again if sources changed."""
    target = files.filtered_model
    made_from = {
        "command": shlex.join(filtering.command),
        "configuration": caches.describe_content(config),
        "input": caches.describe_content(filtering.input),
        "model": caches.describe_model_files(config, files.directory),
    }
    filtered = target / "moses.ini"
    if caches.is_fresh(target, made_from) and filtered.is_file():
        watch(Note(f"the filtered model in {target} is still valid"))
        return filtered
    watch(PhaseStarted(0, "filter"))
    caches.forget(target)
    if target.is_symlink():  # another run's
        target.unlink()
    elif target.is_dir():
        watch(Note(f"the model in {target} was filtered from other files: filtering again"))
        shutil.rmtree(target)
    command = (*filtering.command, "./filtered", str(config), str(filtering.input))
    out = files.directory / "filterphrases.out"
    _execute(command, out, "filter", files, watch, queue)
    if not filtered.is_file():
        raise make_error(f"the filter wrote no {filtered}", command, out.with_suffix(".err"))
    caches.remember(target, made_from)
    return filtered


def _show_weights(
    decoder: MosesCommands, command: tuple[str, ...], answer: Path, task: DecodingTask
) -> None:
    _execute(command, answer, "decoder", task.files, task.watch, decoder.queue, decoder.timeout)


def _execute(
    command: tuple[str, ...],
    stdout: Path,
    what: str,
    files: RunFiles,
    watch: Watcher,
    queue: Queue | None,
    timeout: float | None = None,
) -> None:
    """Run a command on this machine, or on the queue if there is one."""
    watch(CommandStarted(command))
    stderr = stdout.with_suffix(".err")
    if queue is None or queue.wrapper is None:
        run_command(
            command,
            directory=files.directory,
            stdout=stdout,
            stderr=stderr,
            what=what,
            timeout=timeout,
        )
        return
    log = stdout.with_suffix(".queue")
    run_command(
        queue.make_submission(queue.wrapper, command, stdout, stderr),
        directory=files.directory,
        stdout=log,
        stderr=log.with_suffix(".queue.err"),
        what=f"{what}, submitted to the queue,",
    )
