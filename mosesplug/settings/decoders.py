"""From the values of settings to the decoder of a run and its helpers, and back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from formats.references import reference_files
from mosesplug.decoders.command import parse_command
from mosesplug.decoders.description import (
    ASK,
    PLUGIN,
    DecodedGraphs,
    DecoderCommand,
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
from mosesplug.settings.paths import require_file, require_references
from mosesplug.settings.programs import HelperScripts, find_decoder, require_program

_CACHE_SCRIPT = "ems/support/cache-model.perl"
_MULTI_MOSES = "generic/multi_moses.py"
_POST_EDITING = "generic/moses_sim_pe.py"
_NEED_PROGRAM = (
    *("decoder-flags", "decoder-timeout", "input-type", "jobs", "multi-moses", "spe-symal"),
    *("cache-model", "filter-command", "lattice-samples", "forest", "heldout-decoder"),
)
"""Settings that have no effect if a plug-in decodes."""
_NEED_DECODER = ("runs", "skip-decoder", "transform", *_NEED_PROGRAM)
"""Settings that have no effect if the lists come from outside."""
_Values = Mapping[str, Any]
_Path = tuple[str, ...]


def make_decoding(values: _Values) -> dict[_Path, Any]:
    """Return the decoder, and what depends on it, by their paths in a ``RunPlan``.

    Raises:
        UsageError: a file or program is missing, or settings exclude each other.
    """
    root = ("configuration", "decoding")
    if (other := _other_decoder(values)) is not None:
        return {(*root, "decoder"): other}
    flags = parse_flags(values.get("decoder-flags", ""))
    held_out = _held_out_decoder(values, flags)
    decoder = find_decoder(
        values["decoder"],
        "the decoder",
        flags=flags,
        input_type=values.get("input-type"),
        timeout=values.get("decoder-timeout"),
    )
    scripts = HelperScripts.find(values.get("moses-scripts"), decoder.program)
    queue = _queue(values, scripts)
    if decoder.program is None:
        # With a program for the held-out set, the flags are that program's.
        is_program = "heldout" in values and (held_out is None or held_out.program is not None)
        _reject_program_settings(values, () if is_program else flags)
    else:
        several = values.get("multi-moses")
        decoder = replace(
            decoder,
            queue=queue,
            several=scripts.required(_MULTI_MOSES, "{--multi-moses}") if several else None,
            post_editing=_post_editing(values, scripts),
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
    for name in ("heldout", "monitor", "online"):
        if values.get(name) and not command.takes_input:
            raise UsageError(
                f"{OptionName(name)} decodes other sentences than those of the tuning set: {option}"
                " must name their file as {input}"
            )
    return command


def _held_out_decoder(
    values: _Values, flags: tuple[str, ...]
) -> MosesDecoder | DecodedGraphs | None:
    if "heldout-decoder" not in values:
        return None
    what, timeout = "the decoder of the held-out text", values.get("decoder-timeout")
    return find_decoder(values["heldout-decoder"], what, flags=flags, timeout=timeout)


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
    decoding, held_out = configuration.decoding, configuration.held_out
    decoder, other = decoding.decoder, None if held_out is None else held_out.decoder
    values: dict[str, Any] = {"decoder": decoder.words[0], **decoder.settings}
    if decoder.stored_graphs is not None and other is not None:
        # The flags are those of the program that decodes the held-out text.
        values |= {name: other.settings.get(name) for name in ("decoder-flags", "decoder-timeout")}
    elif decoder.stored_graphs is None and decoding.cache is not None:
        script, directory = decoding.cache
        root = Path(script).parents[_CACHE_SCRIPT.count("/")]
        values |= {"cache-model": directory, "moses-scripts": str(root)}
    if decoder.stored_graphs is None and decoding.filtering is not None:
        values["filter-command"] = shlex.join(decoding.filtering.command)
        values["filter-file"] = str(decoding.filtering.input)
    return {**values, "heldout-decoder": None if other is None else other.words[0]}
