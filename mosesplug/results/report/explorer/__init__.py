"""The page in which a browser rescores the lists of runs, and the data that it needs."""
