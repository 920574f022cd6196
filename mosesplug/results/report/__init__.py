"""Figures and self-contained HTML pages of runs, learned weights and systems."""
