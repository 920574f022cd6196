"""Direct search: optimizers that ask for the corpus score at points, and for nothing else."""
