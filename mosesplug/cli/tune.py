"""``mosesplug tune``: the native command line of the tuning loop."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

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
        str, typer.Argument(metavar="DECODER", help="The decoder: moses, mosesplug-decoder, ...")
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
    input_type: Annotated[
        int | None,
        typer.Option(help="0 text, 1 confusion network, 2 lattice, 3 tree; to the decoder."),
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
    algorithm: Annotated[str, typer.Option(help="The optimizer.")] = "mert",
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the optimizer; may be repeated."),
    ] = None,
    active: Annotated[
        str | None,
        typer.Option(help="Comma-separated features to tune (LM0_0, or a group: LM0); else all."),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Bounds of random starts: name:min..max,min..max; repeat."),
    ] = None,
    window: Annotated[
        int, typer.Option(min=-1, help="Earlier iterations whose lists are used; -1 for all.")
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
    max_iterations: Annotated[int, typer.Option(min=0, help="0 for no limit.")] = 25,
    min_change: Annotated[
        float, typer.Option(min=0.0, help="Stop when no weight moved by this much.")
    ] = 1e-5,
    last: Annotated[
        bool,
        typer.Option(
            "--last", help="End with the last weights, not with the best that were decoded."
        ),
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
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show each command that is run.")
    ] = False,
) -> None:
    """Tune a system: decode, optimise, repeat, write moses.ini.

    The result is moses.ini in the working directory, with the weights whose own translations
    scored best.
    """
    from mosesplug.cli.arguments import (
        assignments,
        existing_file,
        existing_program,
        existing_references,
        transformation,
    )
    from mosesplug.cli.running import run
    from mosesplug.decoders.moses import Decoder, checked_flags
    from mosesplug.errors import UsageError
    from mosesplug.metrics import metric as find_metric
    from mosesplug.tuning.configuration import Configuration, Decoding, Filtering, Optimising

    if resume and overwrite:
        raise UsageError("--continue and --overwrite exclude each other: use one of them")
    input_file = existing_file(input_text, "the input")
    filtering = None
    if filter_command is not None:
        program, *words = shlex.split(filter_command) or [""]
        found = existing_program(program, "--filter-command")
        filtering = Filtering((str(found), *words), input_file)
    configuration = Configuration(
        input=input_file,
        references=existing_references(references),
        config=existing_file(config, "the configuration"),
        working_directory=working_dir.absolute(),
        metric=find_metric(metric, metric_settings),
        decoding=Decoding(
            Decoder(
                existing_program(decoder, "the decoder"), checked_flags(decoder_flags), input_type
            ),
            nbest=nbest,
            lattice_samples=lattice_samples,
            filtering=filtering,
            transform=transformation(transform, "--transform"),
            config_weights_first=config_weights_first,
        ),
        optimising=Optimising(
            algorithm=algorithm,
            options=assignments(option or (), "--option"),
            active=None if active is None else tuple(active.replace(",", " ").split()),
            ranges=tuple(ranges or ()),
            window=window,
            historic_bests=historic_bests,
            interpolation=interpolation,
            threads=threads,
            seed=seed,
        ),
        maximum_iterations=max_iterations,
        minimum_change=min_change,
        return_best_dev=not last,
        existing="continue" if resume else "overwrite" if overwrite else "refuse",
        keep_extractor_files=keep_extractor_files,
    )
    run(configuration, quiet=quiet, verbose=verbose)
