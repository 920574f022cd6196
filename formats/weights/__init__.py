"""Files of feature weights, in every format that Moses and its relatives use."""
