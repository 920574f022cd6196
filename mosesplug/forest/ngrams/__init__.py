"""N-grams in search graphs: tables, states, counts and posteriors."""
