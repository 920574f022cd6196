"""Online learners: one mini-batch of hypotheses, one update of the weights."""
