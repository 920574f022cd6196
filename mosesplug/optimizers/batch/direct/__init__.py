"""Direct search: optimizers that only ask for the corpus score at given weights."""
