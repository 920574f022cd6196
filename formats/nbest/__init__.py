"""n-best lists: one hypothesis a line, in the formats of Moses, Joshua, cdec and Marian."""
