"""Solvers that know no loss: they minimize any function or quadratic program."""
