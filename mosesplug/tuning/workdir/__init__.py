"""The files of a working directory: one reader and one writer of each."""
