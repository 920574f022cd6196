"""Hypotheses that callers give: arrays, texts, data frames and n-best lists."""
