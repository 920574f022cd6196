"""Settings of a decoding: decoder, helper scripts, n-best lists, search graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mosesplug.decoders.kinds import ModelFilter, WeightsFormat
from mosesplug.options import Opt, OptionGroup, Parts
from mosesplug.settings.checks import check_fields

if TYPE_CHECKING:
    from mosesplug.decoders.description import DecoderDescription
else:  # loading the decoders takes longer than --help
    DecoderDescription = Any

_WITHOUT_COMMAND = (
    *("decoder", "decoder-flags", "input-type", "jobs", "multi-moses", "spe-symal"),
    *("cache-model", "filter-command", "forest", "heldout-decoder"),
)
"""Settings of Moses and its helpers, which exclude a decoder that is a command."""


@dataclass(frozen=True)
class _DecoderSettings:
    """Settings of ``Decoding.decoder``."""

    decoder: Annotated[
        str,
        Opt(
            "The decoder, forest:DIR with search graphs, or plugin:NAME",
            "Data",
            is_argument=True,
            script="decoder",
            note="or the third argument",
            details="moses, mosesplug-decoder, ...; or forest:DIR, where DIR is the working "
            "directory of a run with --forest, or holds search graphs that Moses wrote; or "
            "plugin:NAME:ARGUMENT, a decoder of another package. Any other decoder is a "
            "--decode-command. A run by `mosesplug ask` and `mosesplug tell` has `ask:` here.",
        ),
    ]
    decode_command: Annotated[
        str | None,
        Opt(
            "Command that decodes, instead of DECODER",
            "Decoder",
            metavar="COMMAND",
            excludes=_WITHOUT_COMMAND,
            details="For example 'my-decoder {weights} {input} {nbest}'. The placeholders are "
            "{weights} (file of the weights), {input} (file of the source sentences), {nbest} "
            "(file that the decoder writes its n-best lists to), {nbest-size} and {iteration}. "
            "The command is split into words as by a shell and run without one, in the current "
            "directory of mosesplug; each placeholder is replaced, also within a word. The "
            "arguments are INPUT REFS WEIGHTS then, where WEIGHTS names the features and their "
            "starting weights, in any format that has names.",
        ),
    ] = None
    weights_format: Annotated[
        WeightsFormat,
        Opt(
            "moses, dense, json or one-line weights",
            "Decoder",
            metavar="FORMAT",
            requires=("decode-command or decoder=ask:",),
            details="dense has lines `Name= value value`, and `name value` for sparse features; "
            "one-line has the same words on one line; json is an object with the objects dense "
            "and sparse; moses is the moses.ini that is given as WEIGHTS, with the new weights. "
            "The result of the run has that format, too.",
        ),
    ] = "dense"
    decoder_flags: Annotated[
        str,
        Opt(
            "More words for the decoder's command line",
            "Decoder",
            metavar="WORDS",
            script="decoder-flags",
        ),
    ] = ""
    decoder_timeout: Annotated[
        float | None,
        Opt(
            "Kill a decoder that writes nothing this long",
            "Decoder",
            metavar="SECONDS",
            above=0.0,
            can_be_abbreviated=True,
            details="Loading the model counts. A server may take this long for a sentence "
            "(default: 600) or to load (default: 1800).",
        ),
    ] = None
    input_type: Annotated[
        int | None,
        Opt(
            "0 text, 1 confusion network, 2 lattice, 3 tree",
            "Decoder",
            script="inputtype",
            details="Passed to the decoder as -inputtype.",
        ),
    ] = None


@dataclass(frozen=True)
class _HelperSettings:
    """Settings of Moses' helper scripts, for ``Decoding.decoder`` and ``.cache``."""

    jobs: Annotated[
        int, Opt("Decode in N jobs through moses-parallel.pl", "Decoder", script="jobs")
    ] = 1
    queue_flags: Annotated[
        str,
        Opt("Parameters of qsub, with --jobs", "Decoder", metavar="WORDS", script="queue-flags"),
    ] = "-hard"
    old_sge: Annotated[
        bool, Opt("Grid Engine before version 6.0, with --jobs", "Decoder", script="old-sge")
    ] = False
    moses_parallel: Annotated[
        Path | None,
        Opt(
            "Path of moses-parallel.pl, with --jobs",
            "Decoder",
            exists="path",
            script="mosesparallelcmd",
        ),
    ] = None
    qsub_wrapper: Annotated[
        Path | None,
        Opt("Path of qsub-wrapper.pl, with --jobs", "Decoder", exists="path", script="qsubwrapper"),
    ] = None
    multi_moses: Annotated[
        bool, Opt("Run several decoders through multi_moses.py", "Decoder", script="multi-moses")
    ] = False
    spe_symal: Annotated[
        Path | None,
        Opt(
            "Word alignment for simulated post-editing",
            "Decoder",
            script="spe-symal",
            exists="file",
            what="the word alignment",
            details="Decodes through moses_sim_pe.py, with the first reference.",
        ),
    ] = None
    cache_model: Annotated[
        str | None,
        Opt(
            "Local directory to copy the model to",
            "Decoder",
            metavar="DIR",
            script="cache-model",
            note="without --jobs, the decoder uses the copy too (the script copies and forgets it)",
        ),
    ] = None
    moses_scripts: Annotated[
        Path | None,
        Opt(
            "Moses' scripts directory, for helper scripts",
            "Decoder",
            metavar="DIR",
            exists="path",
            script="rootdir",
            note="else $SCRIPTS_ROOTDIR, else ../scripts beside the decoder's directory",
        ),
    ] = None


@dataclass(frozen=True)
class _FilterSettings:
    """Settings of ``Decoding.filtering``."""

    filter_command: Annotated[
        str | None,
        Opt(
            "Filter the model first: command and its options",
            "Decoder",
            metavar="COMMAND",
            script="filtercmd",
            details="filter-model-given-input.pl or a script with the same arguments.",
        ),
    ] = None
    filter_file: Annotated[
        Path | None,
        Opt(
            "Source sentences to filter for, if not INPUT",
            "Decoder",
            exists="path",
            script="filterfile",
        ),
    ] = None


@dataclass(frozen=True)
class GraphSettings:
    """Search graphs from the decoder; the n-best lists are taken out of them."""

    edges: Annotated[
        int,
        Opt(
            "Best edges kept per reference word; 0: all",
            "Decoder",
            name="forest-edges",
            minimum=0,
            can_be_abbreviated=True,
            note="as kbmira's --hg-prune",
            details="Keeps the edges of each search graph that lie on the best derivations by the "
            "weights of the decoding: this many for each word of the shortest reference.",
        ),
    ] = 50
    every: Annotated[
        int,
        Opt(
            "Decode only every N iterations",
            "Decoder",
            name="redecode-every",
            minimum=1,
            can_be_abbreviated=True,
            details="The other iterations take their n-best lists out of all search graphs so "
            "far, with their own weights. When no weight changes by --min-change or more, the "
            "next iteration decodes again. If no weight changes in that iteration either, the run "
            "ends. With --online, the graphs are made before epochs 1, N+1, ..., and decode all "
            "mini-batches.",
        ),
    ] = 1

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        # Stores keep this text, whatever the class is called.
        return f"Graphs(edges={self.edges}, every={self.every})"


@dataclass(frozen=True)
class DecodingSettings:
    """How n-best lists are made.

    Attributes:
        decoder: the program and how to call it, or search graphs that take its place.
        filtering: filter the model first, or None.
        cache: words of a command that copies the model to a local disk and prints the path of
            the copy's configuration, or None; the configuration is put after the first word.
    """

    decoder: Annotated[DecoderDescription, Parts(_DecoderSettings)]
    nbest: Annotated[
        int,
        Opt(
            "Length of the n-best lists",
            "Decoder",
            minimum=1,
            script="nbest",
            stored_name="n-best size",
        ),
    ] = 100
    lattice_samples: Annotated[
        int,
        Opt(
            "Lattice samples merged into each list",
            "Decoder",
            minimum=0,
            script="lattice-samples",
            stored_name="lattice samples",
            note="not together with --jobs: moses-parallel.pl does not join the samples",
            details="Samples of the search lattice (Chatterjee & Cancedda 2010).",
        ),
    ] = 0
    forced: Annotated[
        bool,
        Opt(
            "Add the derivation of each reference to its list",
            "Decoder",
            name="forced-decoding",
            can_be_abbreviated=True,
            stored_name="forced decoding",
            excludes=("decode-command", "jobs", "multi-moses", "online", "forest"),
            details="Moses decodes a second time, constrained to the references "
            "(ConstrainedDecoding), and what it finds is merged into the lists. The references "
            "must be tokenized as the output. Sentences whose references cannot be derived keep "
            "their lists.",
        ),
    ] = False
    filtering: Annotated[ModelFilter | None, Parts(_FilterSettings)] = None
    transform: Annotated[
        str | None,
        Opt(
            "Command that rewrites lists before scoring, or bpe",
            "Decoder",
            metavar="COMMAND",
            script="transform-decoded-file",
            stored_name="transformation",
            details="A shell command that reads one n-best list and writes another, the path of a "
            "script, or bpe to join subwords at @@.",
        ),
    ] = None
    templates: Annotated[
        Path | None,
        Opt(
            "Templates of sparse features for the decoder to compute",
            "Decoder",
            exists="file",
            excludes=("decode-command",),
            details="A TOML file that declares features of aligned words, phrase pairs, inserted "
            "and deleted words, n-grams and others. They are added to the moses.ini as feature "
            "functions. The reference of templates describes it.",
        ),
    ] = None
    config_weights_first: Annotated[
        bool,
        Opt(
            "Decode first without normalizing the weights",
            "Decoder",
            script="use-config-weights-for-first-run",
        ),
    ] = False
    cache: Annotated[tuple[str, ...] | None, Parts(_HelperSettings)] = None
    graphs: Annotated[
        GraphSettings | None,
        OptionGroup(
            Opt(
                "Take search graphs from the decoder",
                "Decoder",
                name="forest",
                can_be_abbreviated=True,
                note="mert, kbmira and others learn from the graphs, some from the lists",
                details="The decoder writes search graphs, those of all iterations are kept, and "
                "the n-best lists are taken out of them. mert learns from the whole graphs "
                "(Macherey et al. 2008), risk, linear-bleu, xbleu and softmax from the sums over "
                "all derivations; kbmira, mira, arow, rm-pa and rm-cp find hope and fear there. "
                "Other algorithms learn from the lists, and so do all but mert with a metric "
                "other than BLEU with case, and all with --online or --shards.",
            )
        ),
    ] = None
