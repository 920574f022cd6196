"""``hgdecode``: print the best translation in a search graph, as Moses does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.errors import UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class HgdecodeArguments(ProgramArguments):
    """The options of ``hgdecode``."""

    dense_init: Annotated[
        str | None,
        Opt("weights of dense features, one 'Name= value' per line", short="d", metavar="FILE"),
    ] = None
    sparse_init: Annotated[
        str | None,
        Opt(
            "weights of sparse features, one 'name value' per line",
            short="s",
            metavar="FILE",
            requires=("dense-init",),
        ),
    ] = None
    hypergraph: Annotated[
        str | None,
        Opt("the search graph, as Moses writes it, plain or .gz", short="g", metavar="FILE"),
    ] = None


PROGRAM = Program(
    "hgdecode",
    "Print the best translation in a search graph, and its feature values on stderr.",
    HgdecodeArguments,
    style=Style.BOOST,
    notes="A feature without a weight gets weight 0. The graph is not pruned.",
)

_SHOWN = 1e-5
"""Feature sums with a smaller absolute value are not shown."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``hgdecode`` and exit."""
    run(PROGRAM, _decode, arguments)


def _decode(arguments: HgdecodeArguments) -> None:
    if arguments.hypergraph is None:
        raise UsageError("no search graph: use --hypergraph FILE")
    # Imported here: --help does not need these modules.
    import numpy as np

    from formats.graphs.hypergraph_reader import read_hypergraph
    from mosesplug.forest import Hypergraph, viterbi

    weights = _weights(arguments.dense_init, arguments.sparse_init)
    file = read_hypergraph(arguments.hypergraph)
    names = list(dict.fromkeys([*weights, *file.names]))
    graph = Hypergraph.of_file(file, {name: column for column, name in enumerate(names)})
    values = np.array([weights.get(name, 0.0) for name in names])
    best = viterbi(graph, graph.edge_scores(values))
    words = graph.translation(best.edges)
    sys.stdout.buffer.write(b"".join(word + b" " for word in words) + b"\n")
    sys.stdout.flush()
    sums = zip(names, graph.features(best.edges, len(names)).tolist(), strict=True)
    shown = "".join(f"{name}={value:g} " for name, value in sums if abs(value) >= _SHOWN)
    print(f"WEIGHTS {shown}", file=sys.stderr)


def _weights(dense: str | None, sparse: str | None) -> dict[str, float]:
    """Return the weights by the feature names of search graphs."""
    from formats.weights.any_format import name_as_in_graphs, read_weights
    from formats.weights.files import read_sparse

    weights: dict[str, float] = {}
    if dense is not None:
        file = read_weights(dense, ("dense", "show-weights", "graph"))
        weights = {**name_as_in_graphs(file.show, file.fixed_weights, file.path), **file.sparse}
    return weights | ({} if sparse is None else read_sparse(sparse))
