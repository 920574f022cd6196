"""SRILM's ``nbest-optimize``."""
