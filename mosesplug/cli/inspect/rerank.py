"""``mosesplug rerank``: the best of each n-best list by other weights, and with other features."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["rerank"]

_NINE = 9


def rerank(
    nbest: Annotated[Path, typer.Option("--nbest", metavar="FILE", help="The n-best lists.")],
    weights: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Of all features: moses.ini, Name= value lines, numbers alone, ..."
        ),
    ],
    sparse_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of sparse features, name value a line.")
    ] = None,
    add_feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A further feature: a number for each hypothesis, a line each, in the order of "
            "the lists; may be repeated.",
        ),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    mbr: Annotated[
        bool,
        typer.Option("--mbr", help="Choose by expected BLEU+1 over the list (Kumar & Byrne 2004)."),
    ] = False,
    scale: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="With --mbr, of the scores.")
    ] = 1.0,
    output_nbest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the lists too, sorted by their new scores."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The translations; else stdout."),
    ] = None,
) -> None:
    """The best hypothesis of each list by these weights, one translation a line.

    A sentence without a list has an empty line. Lists of any decoder will do that writes the Moses
    format, as Marian's --n-best does, or name=value as Joshua and cdec: of these, the features that
    --weights names are dense, all others sparse. Find the weights by mosesplug optimize.

    Example: mosesplug rerank --nbest list.gz --weights weights --add-feature LM=lm.scores > best
    """
    from contextlib import ExitStack

    from formats.nbest.dense import is_named
    from formats.nbest.files import format_list
    from formats.text import atomic_write, write_atomic
    from mosesplug.inspection.rerank import least_risk, parse_added, rescored, sentences_of

    added = [parse_added(text) for text in add_feature or ()]
    found: dict[int, bytes] = {}
    named = is_named(nbest)
    with ExitStack() as stack:
        file = None
        if output_nbest is not None:
            is_packed = output_nbest.suffix == ".gz"
            file = stack.enter_context(
                atomic_write(output_nbest, compress="gz" if is_packed else None)
            )
        for block in rescored(
            nbest,
            weights,
            sparse=sparse_weights,
            names=None if names is None else names.split(","),
            added=added,
        ):
            lines = [] if file is None else list(format_list(block, digits=_NINE, named=named))
            for sentence, rows in sentences_of(block):
                place = least_risk(block, rows, scale) if mbr else 0
                found[sentence] = block.text(int(rows[place]))
                if file is not None:
                    file.writelines(lines[row] for row in rows.tolist())
    count = max(found, default=-1) + 1
    text = b"".join(found.get(sentence, b"") + b"\n" for sentence in range(count))
    if output is not None:
        write_atomic(output, text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
