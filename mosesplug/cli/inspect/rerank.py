"""``mosesplug rerank``: choose the best hypothesis of each n-best list.

Other weights and further features score the hypotheses.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from formats.nbest.list_format import TEXT_NAMES
from mosesplug.cli.shared.inputs import OUTPUT, WEIGHTS
from mosesplug.cli.shared.parameters import Output, SparseWeights
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_list_parameters,
    print_formats,
    take_list_settings,
)

_DIGITS = 9


def _rerank(
    nbest: Annotated[Path, typer.Option("--nbest", metavar="FILE", help="The n-best lists.")],
    weights: Annotated[
        str,
        typer.Option(
            metavar="FILE|RUN", help="Weights: a file of any format, a run, or 'NAME=W NAME=W'."
        ),
        WEIGHTS,
    ],
    sparse_weights: SparseWeights = None,
    mbr: Annotated[
        bool, typer.Option("--mbr", help="Maximize expected BLEU+1 (Kumar & Byrne 2004).")
    ] = False,
    scale: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="With --mbr, scale of the scores.")
    ] = 1.0,
    length_exponent: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME,...:]X",
            help="Divide scores by length**X.",
            show_default="recorded with WEIGHTS",
        ),
    ] = None,
    length_by: Annotated[
        str, typer.Option(metavar="NAME", help="Length of --length-exponent: words or a feature.")
    ] = "words",
    output_nbest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the lists too, sorted by their new scores."),
        OUTPUT,
    ] = None,
    with_ids: Annotated[
        bool, typer.Option("--ids", help="Begin each line with its sentence id.")
    ] = False,
    output: Output = None,
    **given: Any,
) -> None:
    """Print the best hypothesis of each n-best list, one per line.

    A sentence without a list has an empty line. Lists may have any format that --format names; if
    it names every value (name=value), as those of Joshua and cdec, the dense features are those
    that --weights names. Sentences whose ids are texts come in the order of the list. Find weights
    with mosesplug optimize.

    Example: mosesplug rerank --nbest list.gz --weights weights --add-feature LM=lm.scores > best
    """
    from formats.nbest.files import format_list
    from formats.nbest.list_format import SentenceIds
    from formats.pipes import copy_pipes
    from formats.weights.named import find_weight_files
    from mosesplug.api.reranking import rerank_blocks
    from mosesplug.cli.shared.output import (
        check_output,
        check_two_outputs,
        open_output,
        write_output,
    )
    from mosesplug.errors import DataError
    from mosesplug.learning.lengths import find_length_range
    from mosesplug.learning.lists.blocks import names_values
    from mosesplug.results.views.texts import format_translations
    from mosesplug.results.weights.sources import read_weights_of

    best: dict[int, bytes] = {}
    settings = take_list_settings(given)
    ids = SentenceIds()
    inputs = [nbest, *settings.input_paths, *find_weight_files(weights)]
    inputs += [] if sparse_weights is None else [sparse_weights]
    check_output(output, inputs=inputs)
    check_output(output_nbest, "--output-nbest", inputs)
    check_two_outputs({"--output": output, "--output-nbest": output_nbest})
    found = read_weights_of(weights, sparse_weights)
    lengths = find_length_range(found, length_exponent, length_by)
    (lists,) = copy_pipes([nbest])
    named = names_values(lists, settings)
    print_formats([lists], settings)
    if lengths is not None:
        print(lengths.explain(), file=sys.stderr)
    with ExitStack() as stack:
        write = None if output_nbest is None else stack.enter_context(open_output(output_nbest))
        for part in rerank_blocks(
            lists,
            found,
            settings,
            scale=scale if mbr else None,
            ids=ids,
            lengths=lengths,
        ):
            if write is None and not part.lists.block.has_texts:
                raise DataError(
                    f"{nbest}: the list has no texts to print: no key or column is named "
                    f"{', '.join(TEXT_NAMES[:-1])} or {TEXT_NAMES[-1]}. Give the texts one of "
                    "these names, or write the sorted hypotheses with --output-nbest FILE"
                )
            best |= part.lines()
            if write is not None:
                block = part.lists.block
                # A name with an underscore and a blank behind it would be that of a sparse feature.
                glues = named or any("_" in name for name, _ in block.groups)
                lines = format_list(block, digits=_DIGITS, named=glues, ids=part.lists.ids)
                write(b"".join(lines))
    write_output(output, format_translations(best, ids.names if with_ids else None))


rerank = add_parameters(_rerank, make_list_parameters(without=["scores", "ids"]))
