"""Oracle, hope and fear derivations of search graphs."""
