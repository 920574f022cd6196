"""From the values of settings to the decoder of a run and its helpers, and back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formats.references import reference_files
from mosesplug.decoders.command import parse_command
from mosesplug.decoders.description import (
    ASK,
    PLUGIN,
    DecodedGraphs,
    DecoderCommand,
    DecoderDescription,
    MosesDecoder,
    NamedDecoder,
    OutsideDecoder,
)
from mosesplug.decoders.kinds import ModelFilter
from mosesplug.decoders.moses import parse_flags
from mosesplug.decoders.plugin import find_decoder_plugin
from mosesplug.decoders.wrappers import PostEditing, Queue
from mosesplug.errors import OptionName, UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.decoding import DecodingSettings
from mosesplug.settings.paths import require_file, require_references
from mosesplug.settings.programs import HelperScripts, find_decoder, require_program

_CACHE_SCRIPT = "ems/support/cache-model.perl"
_MULTI_MOSES = "generic/multi_moses.py"
_POST_EDITING = "generic/moses_sim_pe.py"
_NEED_DECODER = (
    *("online", "heldout", "heldout-decoder", "runs", "skip-decoder", "transform", "forest"),
    *("decoder-flags", "decoder-timeout", "input-type", "jobs", "multi-moses", "spe-symal"),
    *("cache-model", "filter-command", "lattice-samples"),
)
"""Settings that have no effect if the lists come from outside."""
_NEED_PROGRAM = (
    *("decoder-flags", "decoder-timeout", "input-type", "jobs", "multi-moses", "spe-symal"),
    *("cache-model", "filter-command", "lattice-samples", "forest", "heldout-decoder"),
)
"""Settings that have no effect if a plug-in decodes."""
_Values = Mapping[str, Any]
_Path = tuple[str, ...]


def make_decoding(values: _Values) -> dict[_Path, Any]:
    """Return the decoder, and what depends on it, by their paths in a ``RunPlan``.

    Raises:
        UsageError: a file or program is missing, or settings exclude each other.
    """
    root = ("configuration", "decoding")
    if (other := _other_decoder(values)) is not None:
        return {
            (*root, "decoder"): other,
            (*root, "cache"): None,
            (*root, "filtering"): None,
            ("configuration", "held_out", "decoder"): None,
        }
    flags = parse_flags(values.get("decoder-flags", ""))
    held_out = _held_out_decoder(values, flags)
    named = find_decoder(values["decoder"], "the decoder")
    scripts = HelperScripts.find(
        values.get("moses-scripts"), named if isinstance(named, Path) else None
    )
    queue = _queue(values, scripts)
    decoder: DecoderDescription
    if isinstance(named, DecodedGraphs):
        # With a program for the held-out set, the flags are that program's.
        is_program = "heldout" in values and not isinstance(held_out, DecodedGraphs)
        _reject_program_settings(values, () if is_program else flags)
        decoder = named
    else:
        decoder = MosesDecoder(
            named,
            flags=flags,
            input_type=values.get("input-type"),
            queue=queue,
            several=(
                scripts.required(_MULTI_MOSES, "{--multi-moses}")
                if values.get("multi-moses")
                else None
            ),
            post_editing=_post_editing(values, scripts),
            timeout=values.get("decoder-timeout"),
        )
    cache = None
    if "cache-model" in values and queue is None:
        script = scripts.required(_CACHE_SCRIPT, "{--cache-model}")
        cache = (str(script), values["cache-model"])
    return {
        (*root, "decoder"): decoder,
        (*root, "cache"): cache,
        (*root, "filtering"): _filtering(values),
        ("configuration", "held_out", "decoder"): held_out,
    }


def _other_decoder(values: _Values) -> DecoderCommand | NamedDecoder | OutsideDecoder | None:
    """Return the decoder if it is not called as Moses is, and no search graphs."""
    kind, option = values.get("weights-format", "dense"), "{--decode-command}"
    if values.get("decoder") == ASK:
        if idle := [name for name in _NEED_DECODER if values.get(name)]:
            raise UsageError(
                f"{OptionName(idle[0])} needs a decoder, which a run by ask and tell does not have:"
                " leave it out"
            )
        return OutsideDecoder(kind)
    if str(values.get("decoder", "")).startswith(PLUGIN):
        if idle := [name for name in _NEED_PROGRAM if values.get(name)]:
            raise UsageError(
                f"{OptionName(idle[0])} needs a decoder that is a program, and {values['decoder']}"
                " is a plug-in: leave it out"
            )
        named = NamedDecoder.parse(values["decoder"])
        find_decoder_plugin(named.name)
        return named
    if "decode-command" not in values:
        return None
    if values.get("lattice-samples"):
        raise UsageError(f"{option} and {{--lattice-samples}} exclude each other: use one of them")
    program, *words = parse_command(values["decode-command"], option)
    command = DecoderCommand(
        (str(require_program(program, option)), *words),
        weights_format=kind,
        timeout=values.get("decoder-timeout"),
    )
    for name in ("heldout", "online"):
        if values.get(name) and not command.takes_input:
            raise UsageError(
                f"{OptionName(name)} decodes other sentences than those of the tuning set: {option}"
                " must name their file as {input}"
            )
    return command


def _held_out_decoder(values: _Values, flags: tuple[str, ...]) -> DecoderDescription | None:
    if "heldout-decoder" not in values:
        return None
    named = find_decoder(values["heldout-decoder"], "the decoder of the held-out text")
    if isinstance(named, DecodedGraphs):
        return named
    return MosesDecoder(named, flags, timeout=values.get("decoder-timeout"))


def _reject_program_settings(values: _Values, flags: tuple[str, ...]) -> None:
    """Reject settings of a program where search graphs take its place."""
    rejected = {
        "decoder flags": bool(flags),
        "an input type": "input-type" in values,
        "parallel jobs": values.get("jobs", 1) > 1,
        "several decoders": bool(values.get("multi-moses")),
        "simulated post-editing": "spe-symal" in values,
    }
    if excluded := [what for what, is_given in rejected.items() if is_given]:
        raise UsageError(f"search graphs cannot be combined with {', '.join(excluded)}")


def _filtering(values: _Values) -> ModelFilter | None:
    if "filter-command" not in values:
        return None
    program, *words = shlex.split(values["filter-command"]) or [""]
    path = require_program(program, "{--filter-command}")
    text = values.get("filter-file") or values["input"]
    return ModelFilter((str(path), *words), Path(text).absolute())


def _queue(values: _Values, scripts: HelperScripts) -> Queue | None:
    """Parallel jobs; one job is not a parallel job."""
    jobs, option = values.get("jobs", 1), "{--jobs}"
    if jobs <= 1:
        return None
    for name in ("multi-moses", "spe-symal"):
        if values.get(name):
            raise UsageError(
                f"{option} and {OptionName(name)} exclude each other: use one of the two"
            )
    if values.get("lattice-samples"):
        raise UsageError(
            f"{{--lattice-samples}} cannot be used with {option}: moses-parallel.pl does not join"
            " the samples. Use one of the two."
        )
    return Queue(
        scripts.required("generic/moses-parallel.pl", option, values.get("moses-parallel")),
        jobs,
        flags=values.get("queue-flags", "-hard"),
        old_sge=bool(values.get("old-sge")),
        cache=values.get("cache-model"),
        wrapper=scripts.required("generic/qsub-wrapper.pl", option, values.get("qsub-wrapper")),
    )


def _post_editing(values: _Values, scripts: HelperScripts) -> PostEditing | None:
    if "spe-symal" not in values:
        return None
    return PostEditing(
        scripts.required(_POST_EDITING, "{--spe-symal}"),
        reference_files(require_references(values["refs"]))[0],
        require_file(values["spe-symal"], "the word alignment"),
        Path(values["working-dir"]).absolute(),
    )


def collect_decoder_values(configuration: Configuration) -> dict[str, Any]:
    """Return the settings of the decoder and what depends on it; None if not given."""
    held_out = configuration.held_out
    other = None if held_out is None else held_out.decoder
    match configuration.decoding.decoder:
        case MosesDecoder() as program:
            values = _program_values(configuration, program)
        case DecodedGraphs() as graphs:
            values = {"decoder": graphs.words[0], "multi-moses": False}
            if isinstance(other, MosesDecoder):
                values["decoder-flags"] = shlex.join(other.flags) or None
                values["decoder-timeout"] = other.timeout
        case DecoderCommand() as command:
            values = {
                "decode-command": shlex.join(command.words),
                "weights-format": command.weights_format,
                "decoder-timeout": command.timeout,
            }
        case NamedDecoder() as named:
            values = {"decoder": named.words[0]}
        case OutsideDecoder() as outside:
            values = {"decoder": ASK, "weights-format": outside.weights_format}
    return {**values, "heldout-decoder": None if other is None else other.words[0]}


def _program_values(configuration: Configuration, decoder: MosesDecoder) -> dict[str, Any]:
    """Return the settings behind a program and its helpers."""
    decoding, queue = configuration.decoding, decoder.queue
    root = _scripts_root(decoding, decoder)
    return {
        "decoder": str(decoder.program),
        "decoder-flags": shlex.join(decoder.flags) or None,
        "decoder-timeout": decoder.timeout,
        "input-type": decoder.input_type,
        "jobs": None if queue is None else queue.jobs,
        "queue-flags": None if queue is None else queue.flags,
        "old-sge": None if queue is None else queue.old_sge,
        "moses-parallel": None if queue is None else str(queue.command),
        "qsub-wrapper": None if queue is None else str(queue.wrapper),
        "multi-moses": decoder.several is not None,
        "spe-symal": (
            None if decoder.post_editing is None else str(decoder.post_editing.alignment)
        ),
        "cache-model": decoding.cache[1] if decoding.cache else queue.cache if queue else None,
        "moses-scripts": None if root is None else str(root),
        "filter-command": (
            None if decoding.filtering is None else shlex.join(decoding.filtering.command)
        ),
        "filter-file": None if decoding.filtering is None else str(decoding.filtering.input),
    }


def _scripts_root(decoding: DecodingSettings, decoder: MosesDecoder) -> Path | None:
    """Moses' scripts directory, as the helper scripts that are used tell it."""
    editing = decoder.post_editing
    if decoding.cache:
        return Path(decoding.cache[0]).parents[_CACHE_SCRIPT.count("/")]
    if decoder.several is not None:
        return decoder.several.parents[_MULTI_MOSES.count("/")]
    return None if editing is None else editing.command.parents[_POST_EDITING.count("/")]
