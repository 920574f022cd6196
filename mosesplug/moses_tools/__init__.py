"""The computations of Moses' own tuning programs, for the launchers that replace them."""
