"""The files of a store: LMDB's data file and table of readers, locks, pages, replacement."""
