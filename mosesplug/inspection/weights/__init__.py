"""Weights as people look at them: by any name, compared, mixed and converted."""
