"""The computations of Travatar's ``batch-tune``, for the launcher that replaces it."""
