"""Search graphs in the store: their records, writing, reading and checks."""
