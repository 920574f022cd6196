"""The computations of SRILM's ``nbest-optimize``.

A launcher with the name of that program uses them.
"""
