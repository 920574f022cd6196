"""Commands that run the tuning loop: ``tune`` and ``mert-moses``."""
