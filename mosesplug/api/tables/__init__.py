"""Results as tables, which print and convert to data frames."""
