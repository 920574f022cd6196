"""Commands that learn weights from existing data: optimize, bench-optimizers, algorithms."""
