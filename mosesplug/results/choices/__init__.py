"""Hypotheses chosen by other rules: oracles, minimum Bayes risk, other weights."""
