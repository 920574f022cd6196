"""The settings of a tuning run, each declared once."""
