"""Analyses of how systems differ: in words, sentences, n-grams and examples.

The reports are those of compare-mt (Neubig et al. 2019, "compare-mt: a tool for holistic comparison
of language generation systems"), here for several references and several runs of a system.
"""
