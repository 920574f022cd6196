"""File formats of Moses and others: line numbers in every error, writes all or nothing.

::

    nbest            n-best lists
    weights          -show-weights, dense and sparse weights, init.opt, weights.txt
    any_weights      the same and moses.ini, told by their content
    moses_ini        the decoder's configuration; decoder_flags, its command line
    references       reference translations
    extractor_data   features.dat and scores.dat
    hypergraph       search graphs; hypergraph_reader reads them
    graphs           search graphs of any decoder, told by their content
    megam            examples for a classifier
    text             plain and compressed files, atomic writes

A library of its own: it needs NumPy and nothing of mosesplug.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

# Not when it is asked for, as the others: its module has the same name, and would hide it.
from formats.decoder_flags import decoder_flags

if TYPE_CHECKING:
    from formats.any_weights import AnyWeights, parse_weights, read_weights
    from formats.errors import FormatError
    from formats.extractor_data import (
        FeatureData,
        ScoreData,
        SparseColumns,
        write_features,
        write_scores,
    )
    from formats.extractor_reader import read_features, read_scores
    from formats.graphs import GraphKind, graph_kind, read_graph, read_graphs
    from formats.hypergraph import (
        Edge,
        hypergraph_names,
        write_hypergraph,
        write_hypergraph_weights,
    )
    from formats.hypergraph_reader import HypergraphFile, read_hypergraph
    from formats.megam import Examples, example_lines, read_examples
    from formats.moses_ini import (
        FeatureLine,
        IniValue,
        MosesIni,
        parse_moses_ini,
        read_moses_ini,
        with_weights,
    )
    from formats.nbest import (
        NBestEntry,
        NBestList,
        format_entry,
        iter_nbest,
        read_nbest,
        read_nbest_blocks,
        write_nbest,
    )
    from formats.nbest_dense import dense_features
    from formats.references import read_references, reference_files
    from formats.search_graph import core_names
    from formats.slf import slf_scales
    from formats.text import (
        atomic_write,
        iter_chunks,
        open_text,
        read_bytes,
        read_lines,
        regular_file,
        write_atomic,
    )
    from formats.weights import (
        InitOpt,
        ShowWeights,
        WeightGroup,
        format_dense,
        format_init_opt,
        format_sparse,
        format_weight,
        format_weights_txt,
        parse_weight_overwrite,
        read_dense,
        read_init_opt,
        read_show_weights,
        read_sparse,
        read_weights_txt,
        weight_overwrite,
    )

__all__ = [
    "AnyWeights",
    "Edge",
    "Examples",
    "FeatureData",
    "FeatureLine",
    "FormatError",
    "GraphKind",
    "HypergraphFile",
    "IniValue",
    "InitOpt",
    "MosesIni",
    "NBestEntry",
    "NBestList",
    "ScoreData",
    "ShowWeights",
    "SparseColumns",
    "WeightGroup",
    "atomic_write",
    "core_names",
    "decoder_flags",
    "dense_features",
    "example_lines",
    "format_dense",
    "format_entry",
    "format_init_opt",
    "format_sparse",
    "format_weight",
    "format_weights_txt",
    "graph_kind",
    "hypergraph_names",
    "iter_chunks",
    "iter_nbest",
    "open_text",
    "parse_moses_ini",
    "parse_weight_overwrite",
    "parse_weights",
    "read_bytes",
    "read_dense",
    "read_examples",
    "read_features",
    "read_graph",
    "read_graphs",
    "read_hypergraph",
    "read_init_opt",
    "read_lines",
    "read_moses_ini",
    "read_nbest",
    "read_nbest_blocks",
    "read_references",
    "read_scores",
    "read_show_weights",
    "read_sparse",
    "read_weights",
    "read_weights_txt",
    "reference_files",
    "regular_file",
    "slf_scales",
    "weight_overwrite",
    "with_weights",
    "write_atomic",
    "write_features",
    "write_hypergraph",
    "write_hypergraph_weights",
    "write_nbest",
    "write_scores",
]

_MODULES = (
    "any_weights",
    "decoder_flags",
    "errors",
    "extractor_data",
    "extractor_reader",
    "graphs",
    "hypergraph",
    "hypergraph_reader",
    "megam",
    "moses_ini",
    "nbest",
    "nbest_dense",
    "references",
    "search_graph",
    "slf",
    "text",
    "weights",
)


def __getattr__(name: str) -> object:
    """The public names, loaded when they are asked for: who needs one module waits for no other."""
    if name in __all__:
        for each in _MODULES:
            module = importlib.import_module(f"formats.{each}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'formats' has no attribute {name!r}")
