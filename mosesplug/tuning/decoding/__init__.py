"""One decoding of the tuning set: prepare the model, run the decoder, check its lists."""
