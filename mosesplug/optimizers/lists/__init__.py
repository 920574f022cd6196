"""The layouts of a feature matrix in memory, each with its model scores ``w . h``.

Two layouts are general:

- row-major, as stored (``tuning_set.TuningSet``: float32, dense and CSR). ``linear_scores`` is
  plain NumPy: a command that only decodes compiles nothing.
- line-arranged (``arrangement``: sentence by sentence, feature by feature), which keeps a
  sentence's scores in the first cache while all directions of a line search are served.

The others are special. Their sums round differently, so merging them would change results:

- ``blocks``: the row-major arrays in blocks of sentences for threads; the kernel computes scores
  and probabilities in one pass.
- ``rows``: float64 CSR of a few hypotheses over their own columns; a mini-batch costs what is in
  it, not the number of features.
- ``oracle_pairs``: float64 dense and CSR of the active features; pairs by number, four running
  sums for a difference's score.
- ``scaled``: ``oracle_pairs`` rows with each feature divided by its unit, for large margins.
- ``single_precision``: distinct hypotheses in float32, in the order of Moses' ``kbmira``, whose
  ties and updates it reproduces to the last bit.

Classifiers of pairs and score losses (``batch.ranking``) use SciPy or BLAS products over float64
rows: their solvers take thousands of products and depend on no tie.
"""
