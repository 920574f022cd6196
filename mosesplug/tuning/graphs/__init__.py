"""Search graphs inside a tuning run: as the decoder, and as what the optimizer learns from."""
