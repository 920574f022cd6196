"""The computations of Moses' own tuning programs.

Launchers with the names of those programs use them.
"""
