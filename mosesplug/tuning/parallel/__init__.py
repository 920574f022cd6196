"""Parallel learning: one epoch function each for shards and for stale updates.

An epoch combines four parts, and no part knows which of the others it works with:

- A *batch source* returns the n-best lists of a mini-batch. ``StoredSource`` reads lists that
  exist, from memory or, for other processes, from mapped files (``list_files``). A decoding
  source decodes the batch with the current weights, stores the lists and reads them back
  (``tuning.online``).
- A *learner* (``optimizers.online.learner``) turns a batch into a change of its state. An
  ``Optimizer`` is its name and settings, which can be sent to another process.
- A *mixer* (``mixing``) makes one weight vector of those of several shards: the mean, the mean
  weighted by updates, the mean of the heaviest features, or the best point of a corpus line search.
  A ``Corpus`` tells it how to score weights on the lists of all shards.
- An *executor* (``executors``) runs functions in threads, processes or on a Dask cluster.

``shards.run_sharded_epoch`` lets each shard learn from its own sentences and then mixes.
``stale.run_stale_epoch`` applies the changes that several workers compute on earlier weights to one
state. Without an executor, ``optimizers.online.epochs.run_epoch`` goes through the batches in turn.
All three return an ``EpochReport``.

Everything follows from the seed, the epoch and the place of a batch in it. So a worker that
replaces a dead one computes the same report, and a decoding source resumes an interrupted epoch by
replaying its stored batches.
"""
