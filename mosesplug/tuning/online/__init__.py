"""Learn while decoding: decode a mini-batch, store its lists, learn from them.

``run`` opens decoders and workers and runs iterations; an iteration is an epoch of one learner
(``epoch``) or of shards (``sharded``). ``source`` stores the lists of an epoch and replays them.
"""
