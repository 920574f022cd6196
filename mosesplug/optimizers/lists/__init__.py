"""Layouts of a feature matrix in memory, and scores and differences of its rows."""
