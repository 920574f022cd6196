"""The layouts of a feature matrix in memory, each with its model scores ``w . h``.

Lists are stored row-major (``tuning_set.TuningSet``: float32, dense and CSR), and ``linear_scores``
is plain NumPy there, so that a command that only decodes compiles nothing. Algorithms use one of
two layouts:

- ``rows``: float64, a dense block and CSR, over the features that the hypotheses have. ``scaled``
  divides each feature by its unit; ``oracle_pairs`` adds kernels of pairs, whose differences have
  four running sums, since each addition waits for the last one.
- line-arranged (``arrangement``: sentence by sentence, feature by feature), which keeps a
  sentence's scores in the first cache while all directions of a line search are served.
  ``single_precision`` has distinct hypotheses only, in float32 and in the order of Moses'
  ``kbmira``, whose ties and updates it reproduces to the last bit.

``blocks`` leaves the stored arrays as they are and gives threads blocks of sentences: its kernel
computes scores and probabilities in one pass, without a copy of all features in float64.

Classifiers of pairs and score losses (``batch.ranking``) use SciPy or BLAS products over float64
rows: their solvers take thousands of products and depend on no tie.
"""
