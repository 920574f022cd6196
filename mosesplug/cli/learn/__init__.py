"""Commands about learning: optimize, bench-optimizers, algorithms and others."""
