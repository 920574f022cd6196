"""BLEU of a corpus and of sentences, its approximations, and GLEU."""
