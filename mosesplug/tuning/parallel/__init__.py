"""Parallel learning: shards, asynchronous workers, and the executors that run them."""
