"""File formats of Moses and others.

Readers raise ``FormatError``, which names the file, the line and what to do about it. A file is
written completely or not at all.

::

    nbest/       n-best lists
    graphs/      search graphs and lattices; any_graph tells the format by its content
    weights/     -show-weights, dense and sparse weights, init.opt, weights.txt;
                 weight_format tells the format by its content
    moses/       moses.ini, and the decoder's command-line flags
    extractor/   features.dat and scores.dat; examples for the classifier megam
    references   reference translations
    text         plain and compressed files, atomic writes

A library of its own: it needs NumPy and nothing of mosesplug.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formats.errors import FormatError
    from formats.extractor.data import (
        FeatureData,
        ScoreData,
        SparseColumns,
        write_features,
        write_scores,
    )
    from formats.extractor.megam import Examples, format_examples, read_examples
    from formats.extractor.reader import read_features, read_scores
    from formats.extras.slf import slf_scales
    from formats.graphs.any_graph import GraphKind, detect_graph_kind, read_graph, read_graphs
    from formats.graphs.hypergraph import (
        Edge,
        HypergraphFile,
        hypergraph_names,
        write_hypergraph,
        write_hypergraph_weights,
    )
    from formats.graphs.hypergraph_reader import read_hypergraph
    from formats.graphs.search_graph import core_names
    from formats.moses.decoder_flags import decoder_flags
    from formats.moses.ini import (
        FeatureLine,
        IniValue,
        MosesIni,
        parse_moses_ini,
        read_moses_ini,
        with_weights,
    )
    from formats.nbest.block import NBestList
    from formats.nbest.entry import NBestEntry, format_entry
    from formats.nbest.files import (
        dense_features,
        iter_nbest,
        read_nbest,
        read_nbest_blocks,
        write_nbest,
    )
    from formats.references import read_references, reference_files
    from formats.text import (
        atomic_write,
        iter_chunks,
        open_text,
        read_bytes,
        read_lines,
        require_regular_file,
        write_atomic,
    )
    from formats.weights.any_format import WeightFile, parse_weights, read_weights
    from formats.weights.files import (
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
    "WeightFile",
    "WeightGroup",
    "atomic_write",
    "core_names",
    "decoder_flags",
    "dense_features",
    "detect_graph_kind",
    "format_dense",
    "format_entry",
    "format_examples",
    "format_init_opt",
    "format_sparse",
    "format_weight",
    "format_weights_txt",
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
    "require_regular_file",
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
    "weights.any_format",
    "moses.decoder_flags",
    "errors",
    "extractor.data",
    "extractor.reader",
    "graphs.any_graph",
    "graphs.hypergraph",
    "graphs.hypergraph_reader",
    "extractor.megam",
    "moses.ini",
    "nbest.files",
    "references",
    "graphs.search_graph",
    "extras.slf",
    "text",
    "weights.files",
)


def __getattr__(name: str) -> object:
    """Load a public name on first access, so that importing one module loads no other."""
    if name in __all__:
        for module_name in _MODULES:
            module = importlib.import_module(f"formats.{module_name}")
            if name in vars(module):
                return getattr(module, name)
    raise AttributeError(f"module 'formats' has no attribute {name!r}")
