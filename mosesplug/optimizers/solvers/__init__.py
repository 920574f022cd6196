"""Numerical solvers that know no loss: L-BFGS, OWL-QN, small quadratic programs."""
