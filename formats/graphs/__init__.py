"""Search graphs and lattices: Moses' hypergraph and search graph outputs, SLF, cdec forests."""
