"""Inspect runs and n-best lists.

The functions read a store or files, and print nothing.
"""
