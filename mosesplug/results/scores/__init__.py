"""Scores of finished translations, confidence intervals, comparisons of systems."""
