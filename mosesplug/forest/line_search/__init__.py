"""Exact line search over all derivations of search graphs (Macherey et al. 2008)."""
