"""Commands that learn weights from existing lists: ``optimize`` and ``bench-optimizers``."""
