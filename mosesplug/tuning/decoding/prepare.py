"""Prepare decoding: filter the model, and ask the decoder for its features."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from formats.errors import FormatError, quote
from formats.moses.ini import explain_unfit_value
from formats.text import write_atomic
from formats.weights.any_format import read_weights
from formats.weights.files import ShowWeights, format_show_weights, read_show_weights
from mosesplug.decoders import caches
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.process import MESSAGES, make_error, run_command
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, Note, PhaseStarted, Watcher
from mosesplug.learning.lengths import require_undivided
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.decoding import ModelFilter
from mosesplug.tuning.decoding.forced import CONSTRAINTS, prepare_forced
from mosesplug.tuning.workdir.iteration_files import writes_moses_ini
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "announce_features",
    "explain_lost_models",
    "prepare_config",
    "read_features",
    "require_constraints",
]


def prepare_config(configuration: Configuration, workspace: Workspace, watch: Watcher) -> Path:
    """Return the ``moses.ini`` to decode with, after filtering or copying the model.

    Raises:
        DecoderError: the filter or the copying failed.
    """
    config = configuration.config
    decoding = configuration.decoding
    if decoding.filtering is not None:
        config = _filter_tables(configuration, decoding.filtering, workspace, watch)
    if decoding.cache is not None:
        script, *arguments = decoding.cache
        answer = workspace.directory / "cache-model.out"
        command = (script, str(config), *arguments)
        _execute(decoding.program, workspace, command, answer, "model cache", watch)
        config = Path(answer.read_text().strip().splitlines()[-1])
    return config


def announce_features(
    decoder: MosesDecoder, workspace: Workspace, config: Path, watch: Watcher
) -> ShowWeights:
    """Return the announced features and weights, cached in ``features.list``.

    Raises:
        DecoderError: the decoder failed, or announced nothing to tune; its answer cannot be read.
        UsageError: sparse weights cannot lie in this working directory.
    """
    command = decoder.show_weights(config)
    made_from = {
        "command": shlex.join(command),
        "configuration": caches.describe_content(config),
        "decoder": caches.describe_size_and_time(decoder.program),
    }
    path = workspace.features_list
    if not caches.is_fresh(path, made_from):
        watch(PhaseStarted(0, "features"))
        caches.forget(path)
        answer = path.with_name("features.list.new")
        with explain_lost_models(config, workspace):
            _execute(decoder, workspace, command, answer, "decoder", watch, decoder.timeout)
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
            f"(its answer is in {path}; is the [weight] section of {config} in order?)"
        )
    if show.sparse and (why := explain_unfit_value(f"{workspace.directory}/")):
        raise UsageError(
            f"the working directory {quote(str(workspace.directory))} cannot have sparse weights:"
            f" moses.ini would name a file in it, and there {why}. Use another --working-dir"
        )
    return show


def require_constraints(
    decoder: MosesDecoder,
    configuration: Configuration,
    workspace: Workspace,
    config: Path,
    n_sentences: int,
    watch: Watcher,
) -> None:
    """Check that the decoder has the feature function of forced decoding.

    Moses creates feature functions before it answers ``-show-weights``, and loads them afterwards.

    Raises:
        DecoderError: it has not.
        FormatError: the configuration cannot be constrained.
    """
    answer = workspace.directory / "forced.features.list"
    command = decoder.show_weights(prepare_forced(configuration, workspace, config, n_sentences))
    try:
        _execute(decoder, workspace, command, answer, "decoder", watch, decoder.timeout)
    except DecoderError as error:
        raise DecoderError(
            f"--forced-decoding requires a decoder with the feature function {CONSTRAINTS}, and"
            f" {decoder.program} rejects a configuration with it. Leave out --forced-decoding, or"
            f" give Moses as the decoder\n{error}"
        ) from error
    for path in (answer, answer.with_suffix(".err")):
        path.unlink(missing_ok=True)


def read_features(configuration: Configuration, workspace: Workspace) -> ShowWeights:
    """Return features and weights of a weight file; write ``features.list``.

    Raises:
        FormatError: the file cannot be read.
        UsageError: its weights are of divided scores, it has no dense features, or it is not a
            ``moses.ini``, but one must be written.
    """
    file = read_weights(configuration.config)
    require_undivided(file, "a decoder")
    if not file.show.names:
        raise UsageError(
            f"{file.path} names no dense features to tune (its format is {file.format}). Write one"
            " `Name= value value` line for each feature, or JSON"
        )
    if writes_moses_ini(configuration) and file.ini is None:
        raise UsageError(
            f"--weights-format moses requires a moses.ini, but {file.path} has the format"
            f" {file.format}. Choose dense, json or one-line"
        )
    caches.forget(workspace.features_list)
    write_atomic(workspace.features_list, format_show_weights(file.show))
    return file.show


@contextmanager
def explain_lost_models(config: Path, workspace: Workspace) -> Iterator[None]:
    """Add the usual cause to the error of a decoder that cannot load its model.

    A decoder that says that something else is wrong is believed.
    """
    try:
        yield
    except DecoderError as error:
        messages = str(error).partition(MESSAGES)[2]
        for name in caches.find_lost_models(config, workspace.directory):
            place = re.escape(f"{workspace.directory}/")
            if not messages or re.search(
                rf"(?:{place}|(?<![\w./-])(?:\./)?){re.escape(name)}", messages
            ):
                raise DecoderError(
                    f"{error}\nhint: the decoder runs in {workspace.directory} and looks for {name}"
                    f" there, as {config} says: write absolute paths in it"
                ) from error
        raise


def _filter_tables(
    configuration: Configuration, filtering: ModelFilter, workspace: Workspace, watch: Watcher
) -> Path:
    """Return the filtered model's configuration; filter again if sources changed."""
    target = workspace.filtered_model
    made_from = {
        "command": shlex.join(filtering.command),
        "configuration": caches.describe_content(configuration.config),
        "input": caches.describe_content(filtering.input),
        "model": caches.describe_model_files(configuration.config, workspace.directory),
    }
    config = target / "moses.ini"
    if caches.is_fresh(target, made_from) and config.is_file():
        watch(Note(f"the filtered model in {target} is still valid"))
        return config
    watch(PhaseStarted(0, "filter"))
    caches.forget(target)
    if target.is_symlink():  # another run's
        target.unlink()
    elif target.is_dir():
        watch(Note(f"the model in {target} was filtered from other files: filtering again"))
        shutil.rmtree(target)
    command = (*filtering.command, "./filtered", str(configuration.config), str(filtering.input))
    out = workspace.directory / "filterphrases.out"
    _execute(configuration.decoding.program, workspace, command, out, "filter", watch)
    if not config.is_file():
        raise make_error(f"the filter wrote no {config}", command, out.with_suffix(".err"))
    caches.remember(target, made_from)
    return config


def _execute(
    decoder: MosesDecoder | None,
    workspace: Workspace,
    command: Sequence[str],
    stdout: Path,
    what: str,
    watch: Watcher,
    timeout: float | None = None,
) -> None:
    """Run a command on this machine, or on the queue if there is one."""
    watch(CommandStarted(tuple(command)))
    stderr = stdout.with_suffix(".err")
    queue = None if decoder is None else decoder.queue
    if queue is None or queue.wrapper is None:
        run_command(
            command,
            directory=workspace.directory,
            stdout=stdout,
            stderr=stderr,
            what=what,
            timeout=timeout,
        )
        return
    log = stdout.with_suffix(".queue")
    run_command(
        queue.make_submission(queue.wrapper, command, stdout, stderr),
        directory=workspace.directory,
        stdout=log,
        stderr=log.with_suffix(".queue.err"),
        what=f"{what}, submitted to the queue,",
    )
