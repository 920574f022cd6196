"""What a browser computes of a report: lists, weights and scores."""
