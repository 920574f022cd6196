"""Objectives of the model's distribution over n-best lists, by gradients."""
