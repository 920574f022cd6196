"""Batch optimizers: each sees the whole tuning set at every step."""
