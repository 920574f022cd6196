"""Oracles of search graphs, and the hope and fear derivations between which MIRA learns."""
