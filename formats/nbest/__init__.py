"""n-best lists in the formats of Moses, Joshua, cdec, Marian and others."""
