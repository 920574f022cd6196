"""``mosesplug rerank``: choose the best of each n-best list by other weights and features."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.parameters import ColumnNames, Output, SparseWeights

__all__ = ["rerank"]

_DIGITS = 9


def rerank(
    nbest: Annotated[Path, typer.Option("--nbest", metavar="FILE", help="The n-best lists.")],
    weights: Annotated[
        Path, typer.Option(metavar="FILE", help="Weights of all features, in any format.")
    ],
    sparse_weights: SparseWeights = None,
    add_feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="Add a feature: one value a hypothesis; may be repeated."
        ),
    ] = None,
    names: ColumnNames = None,
    mbr: Annotated[
        bool, typer.Option("--mbr", help="Maximise expected BLEU+1 (Kumar & Byrne 2004).")
    ] = False,
    scale: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="With --mbr, scale of the scores.")
    ] = 1.0,
    output_nbest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the lists too, sorted by their new scores."),
    ] = None,
    output: Output = None,
) -> None:
    """Print the best hypothesis of each n-best list, one per line.

    A sentence without a list has an empty line. Lists may be in the Moses format of any decoder, as
    of Marian's --n-best, or name every value (name=value), as those of Joshua and cdec, whose dense
    features are those that --weights names. Find weights with mosesplug optimize.

    Example: mosesplug rerank --nbest list.gz --weights weights --add-feature LM=lm.scores > best
    """
    from formats.nbest.files import format_list, is_named
    from formats.weights.any_format import read_weights
    from mosesplug.api.reranking import rerank_blocks
    from mosesplug.cli.shared.output import open_output, write_output
    from mosesplug.inspection.rerank import parse_added_feature
    from mosesplug.inspection.texts import format_translations
    from mosesplug.settings.lists import parse_column_names

    added = [parse_added_feature(text) for text in add_feature or ()]
    best: dict[int, bytes] = {}
    named = is_named(nbest)
    columns = parse_column_names(names)
    with ExitStack() as stack:
        write = None if output_nbest is None else stack.enter_context(open_output(output_nbest))
        for part in rerank_blocks(
            nbest,
            read_weights(weights).with_sparse(sparse_weights),
            names=columns,
            added=added,
            scale=scale if mbr else None,
        ):
            best |= part.lines()
            if write is not None:
                write(b"".join(format_list(part.lists.block, digits=_DIGITS, named=named)))
    write_output(output, format_translations(best))
