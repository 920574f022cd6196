"""Search graphs in a tuning run: as a decoder, and as input of the optimizer."""
