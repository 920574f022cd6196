"""k-best batch MIRA (Cherry & Foster 2012), on n-best lists and on search graphs."""
