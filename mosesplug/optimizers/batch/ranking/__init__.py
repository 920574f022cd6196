"""Pairwise and listwise ranking of the hypotheses of each sentence."""
