"""Error rates by edit distance: WER and CDER as in Moses, MER and CER as in jiwer."""
