"""From the command line of ``mert-moses.pl`` to the configuration of a tuning run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from formats.references import reference_files
from mosesplug.cli.run.getopt import Parsed
from mosesplug.cli.run.graph_options import graphs_of
from mosesplug.cli.run.mert_given import Given, held_out, select, sharding
from mosesplug.cli.run.mert_options import ADDITIONS, OPTIONS, refusal
from mosesplug.cli.run.online_options import held_out_of, online_of
from mosesplug.cli.run.tool_arguments import (
    ToolArguments,
    merged_settings,
    read_extractor_arguments,
    read_kbmira_arguments,
    read_mert_arguments,
    read_pro_arguments,
)
from mosesplug.decoders.moses import Decoder, PostEditing, Queue, checked_flags
from mosesplug.errors import UsageError
from mosesplug.metrics import metric
from mosesplug.settings.arguments import (
    assignments,
    checked_timeout,
    existing_decoder,
    existing_file,
    existing_references,
    transformation,
)
from mosesplug.settings.configuration import (
    Configuration,
    Decoding,
    Filtering,
    Optimising,
)
from mosesplug.settings.helper_scripts import HelperScripts, filter_command

__all__ = ["Settings", "settings"]

_POSITIONALS = ("input", "refs", "decoder", "config")
_WITH_MERT = ("mert", "pro+mert")
_REFERENCE_LENGTHS = ("shortest", "average", "closest")


@dataclass(frozen=True)
class Settings:
    """A configuration, and what its user should be told before it runs.

    Attributes:
        configuration: of the run.
        notes: one sentence each.
        verbose: show commands.
        quiet: show errors only.
    """

    configuration: Configuration
    notes: tuple[str, ...]
    verbose: bool
    quiet: bool


def settings(parsed: Parsed) -> Settings:
    """What a command line asks for.

    Args:
        parsed: the command line, read.

    Raises:
        UsageError: an option is refused, something is missing, contradictory or not there.
    """
    _refuse(parsed)
    given = Given(parsed)
    places = _places(parsed)
    working_directory = Path(given.text("working-dir") or "mert-work").absolute()
    program, forest = existing_decoder(places["decoder"], "the decoder")
    scripts = HelperScripts.find(given.text("rootdir"), program)
    notes = []
    if given.text("mertdir") is not None:
        notes.append("--mertdir is not needed: metrics and optimizers are built in")
    references = existing_references(places["refs"])
    decoding, note = _decoding(given, scripts, program, places, references, working_directory)
    if forest is not None:
        asked = {"filter-phrase-table", "filtercmd"} & given.parsed.values.keys()
        decoding = replace(decoding, forest=forest, filtering=decoding.filtering if asked else None)
    elif note is not None:
        notes.append(note)
    algorithm = _algorithm(given)
    notes += _idle(given, algorithm)
    tools = _tools(given, algorithm)
    edges = given.optional("forest-edges")
    graphs = graphs_of(
        _wants_graphs(given),
        tools.edges if edges is None else edges,
        given.optional("redecode-every"),
    )
    decoding = replace(decoding, graphs=graphs)
    online = online_of(
        given.flag("online"),
        given.text("online-decoder"),
        given.optional("online-servers"),
        given.flag("strict-online"),
    )
    judged = held_out_of(
        held_out(given),
        given.optional("heldout-every"),
        given.optional("patience"),
        online,
        given.text("heldout-decoder"),
        given.text("decoder-flags") or "",
        given.seconds("decoder-timeout"),
    )
    if forest is not None and judged is not None and judged.forest is None:
        # The flags are those of the program for the held-out text.
        decoding = replace(decoding, decoder=replace(decoding.decoder, flags=()))
    sparse, former = given.text("sparse-weights"), given.text("start-from")
    configuration = Configuration(
        input=existing_file(places["input"], "the input"),
        references=references,
        config=existing_file(places["config"], "the configuration"),
        working_directory=working_directory,
        metric=metric(*_metric(given, tools)),
        decoding=decoding,
        optimising=_optimising(given, algorithm, tools),
        maximum_iterations=_at_least(
            given.integer("maximum-iterations", 0 if given.flag("online") else 25), 0, "iterations"
        ),
        select=select(given),
        existing="continue" if given.flag("continue") else "overwrite",
        skip_decoder=given.flag("skip-decoder"),
        keep_extractor_files=given.flag("keep-extractor-files"),
        online=online,
        held_out=judged,
        sparse_weights=None if sparse is None else existing_file(sparse, "the sparse weights"),
        start_from=None if former is None else Path(former).absolute(),
        strict=given.flag("strict"),
        max_drop=0.05 if (drop := given.seconds("max-drop")) is None else drop,
    )
    return Settings(configuration, tuple(notes), given.flag("verbose"), given.flag("quiet"))


def _refuse(parsed: Parsed) -> None:
    """Refuse what cannot be honoured, before anything is looked at."""
    refused = [
        refusal(option)
        for option in (*OPTIONS, *ADDITIONS)
        if option.name in parsed.values and option.refused
    ]
    if refused:
        raise UsageError("; ".join(refused))


def _places(parsed: Parsed) -> dict[str, str]:
    """The four files, from four arguments or from options of these names."""
    if parsed.positionals and len(parsed.positionals) != len(_POSITIONALS):
        raise UsageError(
            "expected four arguments (input-text references decoder-executable decoder.ini), got"
            f" {len(parsed.positionals)}: {' '.join(parsed.positionals)}"
        )
    places = {name: str(parsed.values[name]) for name in _POSITIONALS if name in parsed.values}
    places |= dict(zip(_POSITIONALS, parsed.positionals, strict=False))
    missing = [name for name in _POSITIONALS if name not in places]
    if missing:
        raise UsageError(
            "input-text, references, decoder-executable and decoder.ini are needed: give all four"
            f" as arguments, or also {' '.join('--' + name for name in missing)} (see --help)"
        )
    return places


def _decoding(
    given: Given,
    scripts: HelperScripts,
    program: Path,
    places: dict[str, str],
    references: Path,
    working_directory: Path,
) -> tuple[Decoding, str | None]:
    """How to decode, and what to say about the filter."""
    words, note = filter_command(
        scripts,
        given.flag("filter-phrase-table") if "filter-phrase-table" in given.parsed.values else None,
        given.text("filtercmd"),
    )
    text = Path(given.text("filterfile") or places["input"]).absolute()
    queue = _queue(given, scripts)
    samples = _at_least(given.integer("lattice-samples", 0), 0, "lattice samples")
    if queue is not None and samples:
        raise UsageError(
            "--lattice-samples cannot be used with --jobs: moses-parallel.pl does not join the"
            " samples; use one of the two"
        )
    cache = given.text("cache-model")
    several = "generic/multi_moses.py" if given.flag("multi-moses") else None
    decoder = Decoder(
        program,
        flags=checked_flags(given.text("decoder-flags") or ""),
        input_type=given.integer("inputtype", 0) if "inputtype" in given.parsed.values else None,
        queue=queue,
        several=scripts.required(several, "--multi-moses") if several else None,
        post_editing=_post_editing(given, scripts, references, working_directory),
        timeout=checked_timeout(given.seconds("decoder-timeout")),
    )
    local_cache = None
    if cache is not None and queue is None:
        script = scripts.required("ems/support/cache-model.perl", "--cache-model")
        local_cache = (str(script), cache)
    decoding = Decoding(
        decoder,
        nbest=_at_least(given.integer("nbest", 100), 1, "n-best"),
        lattice_samples=samples,
        filtering=Filtering(words, text) if words is not None else None,
        cache=local_cache,
        transform=transformation(given.text("transform-decoded-file"), "--transform-decoded-file"),
        config_weights_first=given.flag("use-config-weights-for-first-run"),
    )
    return decoding, note


def _queue(given: Given, scripts: HelperScripts) -> Queue | None:
    """Parallel jobs; one job is no parallel job."""
    jobs = given.integer("jobs", 1)
    if jobs <= 1:
        return None
    clash = next((n for n in ("multi-moses", "spe-symal") if n in given.parsed.values), None)
    if clash is not None:
        raise UsageError(f"--jobs and --{clash} exclude each other: use one of the two")
    parallel = scripts.required(
        "generic/moses-parallel.pl", "--jobs", given.text("mosesparallelcmd")
    )
    wrapper = scripts.required("generic/qsub-wrapper.pl", "--jobs", given.text("qsubwrapper"))
    flags = given.text("queue-flags")
    return Queue(
        parallel,
        jobs,
        flags="-hard" if flags is None else flags,
        old_sge=given.flag("old-sge"),
        cache=given.text("cache-model"),
        wrapper=wrapper,
    )


def _post_editing(
    given: Given, scripts: HelperScripts, references: Path, working_directory: Path
) -> PostEditing | None:
    alignment = given.text("spe-symal")
    if alignment is None:
        return None
    script = scripts.required("generic/moses_sim_pe.py", "--spe-symal")
    return PostEditing(
        script,
        reference_files(references)[0],
        existing_file(alignment, "the word alignment"),
        working_directory,
    )


def _tools(given: Given, algorithm: str) -> ToolArguments:
    """The arguments for the tools, together; the later ones count.

    Options for ``mert`` count only where it is the algorithm; as in the script, its arguments may
    be given with any, for the metric's sake.
    """
    _refuse_arguments_of_others(given, algorithm)
    parts = [
        read_kbmira_arguments(given.text("batch-mira-args") or ""),
        read_pro_arguments(given.text("proargs") or ""),
    ]
    for name in ("mertargs", "mertmertargs"):
        part = read_mert_arguments(given.text(name) or "", name)
        parts.append(part if algorithm in _WITH_MERT else replace(part, options={}))
    parts.append(read_extractor_arguments(given.text("extractorargs") or ""))
    merged: dict[str, object] = {}
    options: dict[str, object] = {}
    for part in parts:
        options |= part.options
        merged |= {
            name: value
            for name, value in vars(part).items()
            if value is not None and name != "options"
        }
    tools = ToolArguments(**merged, options=options)  # type: ignore[arg-type]
    if tools.edges is not None and not _wants_graphs(given):
        raise UsageError("--batch-mira-args: --hg-prune is for --hg-mira: leave one of them out")
    return tools


def _refuse_arguments_of_others(given: Given, algorithm: str) -> None:
    """Arguments of a tool that does not run would be swallowed.

    Raises:
        UsageError: there are some.
    """
    if given.text("batch-mira-args") and algorithm != "kbmira":
        raise UsageError(
            "--batch-mira-args are for --batch-mira and --hg-mira: give one of them too, or leave"
            " them out"
        )
    if given.text("proargs") and algorithm not in ("pro", "pro+mert"):
        raise UsageError(
            "--proargs are for --pairwise-ranked or --pro-starting-point: give one of them too, or"
            " leave them out"
        )


def _metric(given: Given, tools: ToolArguments) -> tuple[str, str]:
    """Name and settings of the metric, as ``--sctype`` and ``--scconfig`` spell them."""
    lengths = [name for name in _REFERENCE_LENGTHS if given.flag(name)]
    if len(lengths) > 1:
        raise UsageError(
            f"{' and '.join('--' + name for name in lengths)} exclude each other: use one of them"
        )
    name = tools.metric or "BLEU"
    if lengths and "BLEU" not in name.split(","):
        raise UsageError(f"--{lengths[0]} chooses the reference length of BLEU, not of {name}")
    case = "case:false" if given.flag("nocase") else "case:true"
    flags = [f"reflen:{name}" for name in lengths]
    return name, merged_settings(tools.settings or "", *flags, case)


def _optimising(given: Given, algorithm: str, tools: ToolArguments) -> Optimising:
    """The algorithm and its options; an option of its own outweighs one in ``--mertargs``."""
    options = dict(tools.options)
    if algorithm in _WITH_MERT:
        options = _SEARCH | options | _mert_options(given)
    options |= assignments(given.texts("algorithm-option"), "--algorithm-option")
    if (epochs := given.optional("epochs")) is not None:
        options["epochs"] = _at_least(epochs, 1, "epochs")
    active = given.text("activate-features") or tools.active
    seed = given.integer("seed", 0) if "seed" in given.parsed.values else tools.seed
    if seed is not None and given.flag("predictable-seeds"):
        raise UsageError("--predictable-seeds and a seed exclude each other: use one of the two")
    interpolation = given.parsed.values.get("historic-interpolation", 0.0)
    if not isinstance(interpolation, float) or not 0 <= interpolation <= 1:
        raise UsageError(f"--historic-interpolation={interpolation}: must lie in 0 to 1")
    return Optimising(
        algorithm=algorithm,
        options=options,
        active=tuple(active.replace(",", " ").split()) if active is not None else None,
        ranges=given.texts("range"),
        window=_at_least(given.integer("prev-aggregate-nbestlist", -1), -1, "earlier iterations"),
        historic_bests=given.flag("historic-bests"),
        interpolation=interpolation,
        threads=max(1, given.integer("threads", tools.threads or 1)),
        seed=seed,
        predictable_seeds=given.flag("predictable-seeds"),
        sharding=sharding(given, algorithm),
    )


def _algorithm(given: Given) -> str:
    """The algorithm by its name, or by the script's flag for it."""
    flags = {
        "--" + option.name: option.algorithm
        for option in (*OPTIONS, *ADDITIONS)
        if option.algorithm is not None and given.flag(option.name)
    }
    named = given.text("algorithm")
    if len(flags) + (named is not None) > 1:
        every = [*flags, *(["--algorithm"] if named is not None else [])]
        raise UsageError(f"{' and '.join(every)} exclude each other: use one of them")
    return named or next(iter(flags.values()), None) or "mert"


def _wants_graphs(given: Given) -> bool:
    """Whether search graphs are wanted."""
    return any(option.forest and given.flag(option.name) for option in (*OPTIONS, *ADDITIONS))


_SEARCH = {"restarts": 20, "polish": 20}
"""MERT's, where nothing else is said: the script's restarts, and a polish in proportion."""

_MERT_ONLY = ("random-restarts", "random-directions", "number-of-random-directions")


def _idle(given: Given, algorithm: str) -> list[str]:
    """What is said of options that do nothing for this algorithm."""
    if algorithm in _WITH_MERT:
        return []
    return [
        f"--{name} is MERT's, and {algorithm} does without"
        for name in _MERT_ONLY
        if name in given.parsed.values
    ]


def _mert_options(given: Given) -> dict[str, object]:
    """The script's own options for MERT, under the names of the algorithm's options."""
    options: dict[str, object] = {}
    if "random-restarts" in given.parsed.values:
        options["restarts"] = given.integer("random-restarts", 20)
    if given.flag("random-directions"):
        options |= {"method": "random-direction", "random_directions": 50}
    if given.integer("number-of-random-directions", 0):
        options["random_directions"] = given.integer("number-of-random-directions", 0)
    return options


def _at_least(value: int, least: int, what: str) -> int:
    if value < least:
        raise UsageError(f"the number of {what} must be at least {least}, not {value}")
    return value
