"""Decode with the weights of a result: the tuning set once more, or another text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formats.text import read_lines, write_atomic
from formats.weights.any_format import read_weights
from formats.weights.files import read_show_weights
from mosesplug.decoders.processes.run import make_error, run_command
from mosesplug.decoders.protocol import BatchTask
from mosesplug.errors import DataError, UsageError
from mosesplug.events import CommandStarted, Watcher, ignore_event
from mosesplug.settings.build import make_plan
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import HeldOutSet
from mosesplug.settings.toml import read_settings
from mosesplug.tuning.heldout import open_held_out_scorer, translate_sentences
from mosesplug.tuning.weights import Weights, to_model_weights
from mosesplug.tuning.workdir.workspace import Workspace

_OF_A_WHOLE_RUN = frozenset({"runs", "select", "select-run", "patience", "transform", "monitor"})
"""Settings that change no decoding, and may exclude a decoding alone."""


def decode_tuning_set(
    directory: Path, weights: Weights, watch: Watcher = ignore_event
) -> list[bytes]:
    """Return the 1-best translations of a run's tuning set.

    Args:
        directory: the working directory, with the settings of the run. Nothing is kept in it.

    Raises:
        UsageError: the settings of the run are unknown, or name files that are gone; or the run has
            no decoder that can be called.
        DataError: another process uses the directory.
        DecoderError: the decoder failed.
    """
    workspace = Workspace(directory, 0)
    if not (workspace.settings.is_file() and workspace.features_list.is_file()):
        raise UsageError(
            f"{{--decode}}: {directory} has no {workspace.settings.name} and"
            f" {workspace.features_list.name}, which say how its run decodes"
        )
    values = {**read_settings(workspace.settings), "working-dir": str(directory)}
    values = {
        name: value
        for name, value in values.items()
        if name not in _OF_A_WHOLE_RUN and not name.startswith("heldout")
    }
    configuration = make_plan(values).configuration
    if configuration.input is None:
        raise UsageError(f"{{--decode}}: the run in {directory} has no file of source sentences")
    tuning_set = HeldOutSet(configuration.input, configuration.references)
    configuration = replace(configuration, held_out=tuning_set)
    config = configuration.config
    if (filtered := workspace.filtered_model / "moses.ini").is_file():
        config = filtered
    show = read_show_weights(workspace.features_list)
    with workspace.lock():
        known = {*directory.iterdir()}
        try:
            scorer = open_held_out_scorer(configuration, config, show, watch)
            if scorer is None:
                raise DataError(f"{configuration.input} has no sentences")
            return scorer.translate(scorer.sets[0], weights)
        finally:
            for path in {*directory.glob("heldout.*")} - known:
                path.unlink()


def translate_text(
    configuration: Configuration,
    config: Path,
    source: Path,
    directory: Path,
    prefix: str,
    watch: Watcher = ignore_event,
) -> list[bytes]:
    """Return the 1-best translations of a text by the weights of a result.

    Args:
        configuration: how the decoder is called.
        config: the result: a ``moses.ini``, or a file of weights of a decoder that is a command.
        source: the source sentences.
        directory: of the decoder's files, which are removed.
        prefix: the beginning of their names.

    Raises:
        DecoderError: the decoder failed, or left out sentences.
        UsageError: the decoder translates no other texts.
        FormatError: a file cannot be read.
    """
    sentences = read_lines(source)
    decoder = configuration.decoding.decoder
    paths = [directory / f"{prefix}.decoded{end}" for end in ("", ".in", ".err")]
    out, plain, err = paths
    if command := decoder.translate(config, plain):
        write_atomic(plain, b"".join(line + b"\n" for line in sentences))
        watch(CommandStarted(command))
        run_command(command, directory=directory, stdout=out, stderr=err, timeout=decoder.timeout)
        lines = [line.strip() for line in read_lines(out)]
        if len(lines) != len(sentences):
            raise make_error(
                f"the decoder wrote {len(lines)} translations of {len(sentences)} sentences",
                command,
                err,
            )
        for path in paths:
            path.unlink()
        return lines
    weights = read_weights(config)
    task = BatchTask(
        config,
        directory,
        1,
        prefix=prefix,
        executing=lambda command: watch(CommandStarted(command)),
    )
    known = {*directory.iterdir()}
    try:
        with decoder.open_batches(task) as batches:
            model = to_model_weights(weights.show, Weights.of_file(weights))
            return translate_sentences(batches, sentences, model)
    finally:
        for path in {*directory.glob(f"{prefix}.*")} - known:
            path.unlink()
