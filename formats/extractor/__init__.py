"""Files between Moses' tuning programs: extractor data and examples for ``megam``."""
