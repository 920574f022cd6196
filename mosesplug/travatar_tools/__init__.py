"""The computations of Travatar's ``batch-tune``.

A launcher with the name of that program uses them.
"""
