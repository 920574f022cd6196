"""The computations of SRILM's ``nbest-optimize``, for the launcher that replaces it."""
