"""Solvers that know no loss: they minimise any function or quadratic program."""
