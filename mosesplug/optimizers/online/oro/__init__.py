"""Online rank learning, plain and with optimized updates (Watanabe 2012)."""
