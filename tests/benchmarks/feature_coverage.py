"""Print how many sparse features of some sentences other sentences have, too.

usage: python -m tests.benchmarks.feature_coverage NBEST --tuning N... --other N [--at-least K...]

The last sentences of an n-best list (`--other`) stand for text to translate, its first ones for a
tuning set. The first table has the share of the occurrences of sparse features of the last
sentences whose feature is also in the lists of at least K tuning sentences; a feature counts once
for each sentence. The second one has the shares by kind, for K = 1 and the largest tuning set.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from formats.nbest.files import read_nbest_blocks


def _read_features(path: str) -> Iterator[set[str]]:
    """Yield the sparse features of each sentence."""
    for block in read_nbest_blocks(path):
        for start, end in pairwise(block.sparse_indptr[block.list_offsets].tolist()):
            indices = np.unique(block.sparse_indices[start:end])
            yield {block.sparse_names[index] for index in indices}


def _find_share(sentences: Sequence[Collection[str]], known: Collection[str]) -> float:
    names = list(chain.from_iterable(sentences))
    return sum(name in known for name in names) / max(1, len(names))


def main() -> None:
    """Read the lists, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nbest")
    parser.add_argument("--tuning", type=int, nargs="+", required=True, help="tuning sentences")
    parser.add_argument("--other", type=int, required=True, help="sentences to cover")
    parser.add_argument("--at-least", type=int, nargs="+", default=[1, 2, 3, 5, 10])
    options = parser.parse_args()
    sentences = list(_read_features(options.nbest))
    if len(sentences) < max(options.tuning) + options.other:
        parser.error(f"{options.nbest} has {len(sentences)} sentences only")
    others = sentences[-options.other :]
    print(f"features of the last {options.other} sentences: {len(set().union(*others))}")
    print("tuning", *(f"k={least}" for least in options.at_least), "features", sep="\t")
    counts: Counter[str] = Counter()
    for size in options.tuning:
        counts = Counter(chain.from_iterable(sentences[:size]))
        shares = [
            _find_share(others, {name for name, count in counts.items() if count >= least})
            for least in options.at_least
        ]
        print(size, *(f"{share:.2f}" for share in shares), len(counts), sep="\t")
    for kind in sorted({name.partition("_")[0] for name in chain.from_iterable(others)}):
        own = [[name for name in names if name.partition("_")[0] == kind] for names in others]
        print(kind, f"{_find_share(own, counts):.2f}", sep="\t")


if __name__ == "__main__":
    main()
