"""The page that rescores the lists of runs in a browser."""
