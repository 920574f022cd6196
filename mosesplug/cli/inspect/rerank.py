"""``mosesplug rerank``: choose the best of each list by other weights."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from formats.nbest.files import format_list
from formats.nbest.list_format import TEXT_NAMES, SentenceIds
from formats.pipes import wrap_files
from formats.weights.named import find_weight_files
from mosesplug.api.reranking import rerank_blocks
from mosesplug.cli.inspect.list_options import RerankCommand
from mosesplug.cli.shared.output import (
    check_output,
    check_two_outputs,
    open_output,
    print_formats,
    write_output,
)
from mosesplug.errors import DataError
from mosesplug.learning.lengths import find_length_range
from mosesplug.learning.lists.blocks import names_values
from mosesplug.results.views.texts import format_translations
from mosesplug.results.weights.sources import read_weights_of

_DIGITS = 9


def rerank(options: RerankCommand) -> None:
    """Print the best hypothesis of each n-best list, one per line."""
    settings, output_nbest = options.settings, options.output_nbest
    inputs = [options.nbest, *settings.input_paths, *find_weight_files(options.weights)]
    inputs += [] if options.sparse_weights is None else [options.sparse_weights]
    check_output(options.output, inputs=inputs)
    check_output(output_nbest, "--output-nbest", inputs)
    check_two_outputs({"--output": options.output, "--output-nbest": output_nbest})
    weights = read_weights_of(options.weights, options.sparse_weights)
    lengths = find_length_range(weights, options.length_exponent, options.length_by)
    (lists,) = wrap_files([options.nbest])
    named = names_values(lists, settings)
    print_formats([lists], settings)
    if lengths is not None:
        print(lengths.explain(), file=sys.stderr)
    scale = options.scale if options.mbr else None
    best: dict[int, bytes] = {}
    ids = SentenceIds()
    with ExitStack() as stack:
        write = None if output_nbest is None else stack.enter_context(open_output(output_nbest))
        for part in rerank_blocks(lists, weights, settings, scale=scale, ids=ids, lengths=lengths):
            block = part.lists.block
            if write is None and not block.has_texts:
                raise DataError(
                    f"{options.nbest}: the list has no texts to print: no key or column is named "
                    f"{', '.join(TEXT_NAMES[:-1])} or {TEXT_NAMES[-1]}. Give the texts one of "
                    "these names, or write the sorted hypotheses with --output-nbest FILE"
                )
            best |= part.lines()
            if write is not None:
                # A name with an underscore and a blank behind it would be that of a sparse feature.
                glues = named or any("_" in name for name, _ in block.groups)
                lines = format_list(block, digits=_DIGITS, named=glues, ids=part.lists.ids)
                write(b"".join(lines))
    names = ids.names if options.with_ids else None
    write_output(options.output, format_translations(best, names))
