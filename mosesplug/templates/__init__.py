"""Templates: sparse features computed from derivations, as Moses' functions do."""
