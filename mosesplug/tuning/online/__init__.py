"""Learn while decoding: decode a mini-batch, store its lists, learn from them.

``epoch`` runs one epoch, with one decoder, several at once (asynchronous) or several shards;
``source`` stores the lists of an epoch and replays them when it is resumed.
"""
