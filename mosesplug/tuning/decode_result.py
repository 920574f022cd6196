"""Decode the tuning set of a run once more, with the weights of its result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formats.weights.files import read_show_weights
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Watcher, ignore_event
from mosesplug.settings.build import make_plan
from mosesplug.settings.online import HeldOutSet
from mosesplug.settings.toml import read_settings
from mosesplug.tuning.heldout import open_held_out_scorer
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.workspace import Workspace

_OF_A_WHOLE_RUN = frozenset({"runs", "select", "select-run", "patience", "transform"})
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
            f"--decode: {directory} has no {workspace.settings.name} and"
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
        raise UsageError(f"--decode: the run in {directory} has no file of source sentences")
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
            return scorer.translate(weights)
        finally:
            for path in {*directory.glob("heldout.*")} - known:
                path.unlink()
