"""``mosesplug tune``: the native command line of the tuning loop."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.run.several_parameters import Runs, SelectRun
from mosesplug.cli.run.sharding_parameters import (
    Asynchronous,
    AsyncOrder,
    Keep,
    Mixing,
    Scheduler,
    ShardDirectory,
    Shards,
    Workers,
)

__all__ = ["tune"]


def tune(
    input_text: Annotated[
        Path, typer.Argument(metavar="INPUT", help="The text to tune on, one sentence a line.")
    ],
    references: Annotated[
        Path,
        typer.Argument(
            metavar="REFS",
            help="Its translation; or the prefix of several: REFS0, REFS1, ... or REFS.ref0, ...",
        ),
    ],
    decoder: Annotated[
        str,
        typer.Argument(
            metavar="DECODER",
            help="The decoder: moses, mosesplug-decoder, ...; or forest:DIR, the search graphs "
            "that a run with --forest in DIR stored, or that Moses wrote into DIR.",
        ),
    ],
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Its moses.ini with starting weights.")
    ],
    working_dir: Annotated[
        Path, typer.Option(help="Where all files go; the decoder's current directory.")
    ] = Path("tuning"),
    nbest: Annotated[int, typer.Option(min=1, help="Length of the n-best lists.")] = 100,
    decoder_flags: Annotated[
        str, typer.Option(help="More words for the decoder's command line.")
    ] = "",
    decoder_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Kill a decoder that writes nothing for so long, and end with an error; loading "
            "its model counts. A server may take so long for a sentence [600] or to load [1800].",
        ),
    ] = None,
    input_type: Annotated[
        int | None,
        typer.Option(help="0 text, 1 confusion network, 2 lattice, 3 tree; to the decoder."),
    ] = None,
    search_graphs: Annotated[
        bool,
        typer.Option(
            "--forest",
            help="Have the decoder write search graphs, keep those of all iterations, and take "
            "the n-best lists out of them. mert learns from all that is in them (Macherey et al. "
            "2008), kbmira finds hope and fear there; other algorithms learn from the lists.",
        ),
    ] = False,
    forest_edges: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With --forest, edges of each search graph that are kept for each word of the "
            "reference, those of the best derivations; 0 keeps all [50].",
        ),
    ] = None,
    redecode_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --forest, have the decoder decode in iterations 1, N+1, 2N+1, ... only; "
            "the others list the best in all graphs so far, with their own weights. With --online "
            "the graphs are made before epochs 1, N+1, ..., and decode all mini-batches. [1]",
        ),
    ] = None,
    lattice_samples: Annotated[
        int, typer.Option(min=0, help="Samples of the search lattice, merged into each list.")
    ] = 0,
    filter_command: Annotated[
        str | None,
        typer.Option(
            help="Filter the model first, by filter-model-given-input.pl or another such script."
        ),
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(help="Shell command that rewrites lists before scoring, or bpe."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="What to optimise: BLEU, CDER, CHRF, PER, TER, TER-SACREBLEU or WER; "
            "or a weighted sum, as BLEU,TER."
        ),
    ] = "BLEU",
    metric_settings: Annotated[
        str,
        typer.Option(
            help="Its settings, as reflen:closest|shortest|average,case:true|false; "
            "of a sum also weights:0.6+0.4."
        ),
    ] = "",
    algorithm: Annotated[
        str, typer.Option(help="The optimizer; mosesplug optimize --help names all.")
    ] = "mert",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "--algorithm-option",
            metavar="NAME=VALUE",
            help="An option of the optimizer; may be repeated.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Of an online learner: passes over the lists after each decoding; with --online, "
            "over the text.",
        ),
    ] = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Learn while decoding: each mini-batch is decoded with the weights of the moment, "
            "then learnt from.",
        ),
    ] = False,
    online_decoder: Annotated[
        str | None,
        typer.Option(
            metavar="auto|server|process",
            help="With --online, keep the decoder running as a server, or start one for each "
            "batch. auto: a server, if the decoder can be one.",
        ),
    ] = None,
    online_servers: Annotated[
        int | None,
        typer.Option(min=1, help="With --online, servers to keep; each loads the model [1]."),
    ] = None,
    strict_online: Annotated[
        bool,
        typer.Option(
            "--strict-online",
            help="With --online, end with an error where new weights do not change a server's "
            "lists as they should; else it is restarted for each batch.",
        ),
    ] = False,
    heldout: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="INPUT REFS",
            help="Other text and its translations, translated with the starting weights and after "
            "each iteration, to choose weights.",
        ),
    ] = None,
    heldout_decoder: Annotated[
        str | None,
        typer.Option(
            metavar="DECODER",
            help="What translates it, if not DECODER: a program, or forest:DIR with its search "
            "graphs.",
        ),
    ] = None,
    heldout_every: Annotated[
        int | None,
        typer.Option(min=1, help="With --online, translate it after so many mini-batches, too."),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after so many translations of it in a row that are no better than one "
            "before; that with the starting weights does not count.",
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="best-dev|last|average|best-heldout|median",
            help="Which weights to end with. Default: best-heldout with --heldout; else best-dev, "
            "or with --online what the learner's averaging says: last, or average. With --runs, "
            "whose weights the result has: those of the median run (by the held-out score if there "
            "is one, else by that of the tuning set; of an even number of runs the lower of two "
            "in the middle), of the run that is best-heldout, or the average of all [median].",
        ),
    ] = None,
    runs: Runs = None,
    select_run: SelectRun = None,
    sparse_weights: Annotated[
        Path | None,
        typer.Option(help="Starting weights of sparse features, a name and a number a line."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Start from the weights of the finished run in DIR."),
    ] = None,
    shards: Shards = None,
    mixing: Mixing = None,
    keep: Keep = None,
    asynchronous: Asynchronous = False,
    async_order: AsyncOrder = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    shard_directory: ShardDirectory = None,
    active: Annotated[
        str | None,
        typer.Option(help="Comma-separated features to tune (LM0_0, or a group: LM0); else all."),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Bounds of random starts: name:min..max,min..max; repeat."),
    ] = None,
    window: Annotated[
        int,
        typer.Option(
            "--iterations-window",
            "--window",
            min=-1,
            help="Earlier iterations whose lists are used; -1 for all.",
        ),
    ] = -1,
    historic_bests: Annotated[
        bool, typer.Option("--historic-bests", help="Start also from all earlier weights.")
    ] = False,
    interpolation: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="From iteration 4 on, share of the new weights; 0 for all."
        ),
    ] = 0.0,
    config_weights_first: Annotated[
        bool,
        typer.Option("--config-weights-first", help="Decode first without normalising weights."),
    ] = False,
    max_iterations: Annotated[
        int | None,
        typer.Option(min=0, help="0 for no limit [25; with --online, the learner's epochs]."),
    ] = None,
    min_change: Annotated[
        float,
        typer.Option(
            min=0.0, help="Stop when no weight moved by this much: see the table's column change."
        ),
    ] = 1e-5,
    last: Annotated[
        bool,
        typer.Option("--last", help="The same as --select last; with --runs, --select-run last."),
    ] = False,
    threads: Annotated[
        int, typer.Option(min=1, help="For scoring and optimising; results do not depend on it.")
    ] = os.cpu_count() or 1,
    seed: Annotated[
        int | None, typer.Option(help="Of all random choices; else one is drawn and kept.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--continue", help="Go on after the last finished iteration.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier run in the working directory.")
    ] = False,
    keep_extractor_files: Annotated[
        bool, typer.Option("--keep-extractor-files", help="Write features.dat and scores.dat too.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="End with an error, and write no weights, at signs that something is wrong: one "
            "weight that is all, a score that falls, references of another language or "
            "tokenisation, lists of one hypothesis, features that never vary. Else a warning.",
        ),
    ] = False,
    max_drop: Annotated[
        float,
        typer.Option(
            min=0.0, help="How far an iteration may score below the first without a warning."
        ),
    ] = 0.05,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show each command that is run.")
    ] = False,
) -> None:
    """Tune a system: decode, optimise, repeat, write moses.ini.

    The result is moses.ini in the working directory, with the weights whose own translations
    scored best, or those that --select says.

    In the table of iterations, the score is that of the decoder's translations; "in lists", what
    the weights found then reach in the lists of all iterations; change, the largest difference of
    a weight between those found and those decoded with; new, hypotheses of no earlier list.
    """
    from mosesplug.cli.run.graph_options import graphs_of
    from mosesplug.cli.run.online_options import held_out_of, online_of, selected
    from mosesplug.cli.run.running import run
    from mosesplug.cli.run.several_runs import run_several, selections
    from mosesplug.cli.run.sharding_options import sharding_of
    from mosesplug.decoders.moses import Decoder, checked_flags
    from mosesplug.errors import UsageError
    from mosesplug.metrics import metric as find_metric
    from mosesplug.optimizers import algorithm as find_algorithm
    from mosesplug.settings.arguments import (
        assignments,
        checked_timeout,
        existing_decoder,
        existing_file,
        existing_program,
        existing_references,
        transformation,
    )
    from mosesplug.settings.configuration import Configuration, Decoding, Filtering, Optimising

    if resume and overwrite:
        raise UsageError(
            "--continue and --overwrite exclude each other: --continue goes on with the run in the"
            " working directory, --overwrite begins anew"
        )
    input_file = existing_file(input_text, "the input")
    decoding_program, forest = existing_decoder(decoder, "the decoder")
    filtering = None
    if filter_command is not None:
        program, *words = shlex.split(filter_command) or [""]
        found = existing_program(program, "--filter-command")
        filtering = Filtering((str(found), *words), input_file)
    learning = online_of(online, online_decoder, online_servers, strict_online)
    timeout = checked_timeout(decoder_timeout)
    held_out = held_out_of(
        heldout, heldout_every, patience, learning, heldout_decoder, decoder_flags, timeout
    )
    # Where search graphs are the decoder, flags are those of the program for the held-out text.
    is_other = forest is not None and held_out is not None and held_out.forest is None
    own_flags = "" if is_other else decoder_flags
    if last and (select_run if runs else select) is not None:
        other = "--select-run" if runs else "--select"
        raise UsageError(f"--last and {other} exclude each other: use one of them")
    choice, within = selections(runs, select, select_run)
    options = assignments(option or (), "--option")
    configuration = Configuration(
        input=input_file,
        references=existing_references(references),
        config=existing_file(config, "the configuration"),
        working_directory=working_dir.absolute(),
        metric=find_metric(metric, metric_settings),
        decoding=Decoding(
            Decoder(decoding_program, checked_flags(own_flags), input_type, timeout=timeout),
            nbest=nbest,
            lattice_samples=lattice_samples,
            filtering=filtering,
            transform=transformation(transform, "--transform"),
            config_weights_first=config_weights_first,
            forest=forest,
            graphs=graphs_of(search_graphs, forest_edges, redecode_every),
        ),
        optimising=Optimising(
            algorithm=algorithm,
            options=options if epochs is None else options | {"epochs": epochs},
            active=None if active is None else tuple(active.replace(",", " ").split()),
            ranges=tuple(ranges or ()),
            window=window,
            historic_bests=historic_bests,
            interpolation=interpolation,
            threads=threads,
            seed=seed,
            sharding=sharding_of(
                find_algorithm(algorithm),
                shards=shards,
                mixing=mixing,
                keep=keep,
                asynchronous=asynchronous,
                async_order=async_order,
                workers=workers,
                scheduler=scheduler,
                shard_directory=shard_directory,
            ),
        ),
        maximum_iterations=max_iterations if max_iterations is not None else 0 if online else 25,
        minimum_change=min_change,
        select=selected("last" if last else within)
        or (None if online or heldout is not None else "best-dev"),
        existing="continue" if resume else "overwrite" if overwrite else "refuse",
        keep_extractor_files=keep_extractor_files,
        online=learning,
        held_out=held_out,
        sparse_weights=(
            None if sparse_weights is None else existing_file(sparse_weights, "the sparse weights")
        ),
        start_from=None if start_from is None else start_from.absolute(),
        strict=strict,
        max_drop=max_drop,
    )
    if runs is not None:
        run_several(configuration, runs, choice, quiet=quiet, verbose=verbose)
    else:
        run(configuration, quiet=quiet, verbose=verbose)
