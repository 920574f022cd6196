"""TER (Snover et al. 2006) as Moses computes it and as sacrebleu computes it."""
