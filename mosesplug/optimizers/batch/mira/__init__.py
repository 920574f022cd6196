"""Batch MIRA (Cherry & Foster 2012), on n-best lists or on search graphs."""
