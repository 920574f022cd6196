"""Read n-best lists of any format: change, score and merge them, as settings say."""
