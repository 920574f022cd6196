"""Optimizers that the papers behind mosesplug's own do not treat."""
