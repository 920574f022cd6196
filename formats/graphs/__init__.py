"""Search graphs and lattices.

The formats are Moses' hypergraph and search graph outputs, SLF, and cdec's forests.
"""
