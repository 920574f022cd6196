"""Error rates by edit distance: WER and CDER as Moses computes them, MER and CER as jiwer does."""
