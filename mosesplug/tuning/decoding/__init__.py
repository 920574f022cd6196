"""One decoding of the tuning set.

Prepare the model, run the decoder, and check its lists.
"""
