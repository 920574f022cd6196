"""Random iterations with overlapping lists, against a model of plain lists."""

from __future__ import annotations

import itertools
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from mosesplug.store import NBestStore
from mosesplug.store.testing import check_store
from mosesplug.store.toys import Hypothesis, StoreModel, WordMetric, make_list

N_SENTENCES = 4
REFERENCES = ((b"a b", b"c", b"", b"a \xff"),)

# Few values of everything, so that lists overlap in all ways.
hypothesis = st.builds(
    Hypothesis,
    sentence=st.integers(0, N_SENTENCES - 1),
    text=st.sampled_from([b"", b"a", b"a b", b"b a", b"a\x00b", b"\xff c"]),
    dense=st.tuples(
        st.sampled_from([0.0, -0.0, 1.5]), st.sampled_from([0.1, 3e-39]), st.just(-7.0)
    ),
    sparse=st.permutations([("s_a", 1.0), ("s_b", -0.0), ("t_c", 0.5), ("t_d", 0.25)]).flatmap(
        lambda entries: st.integers(0, 4).map(lambda n: tuple(entries[:n]))
    ),
    score=st.floats(-100, 0, width=32),
    extra=st.sampled_from([b"", b" 0-0"]),
)
runs = st.lists(st.lists(hypothesis, max_size=14), max_size=4)


@settings(max_examples=40, deadline=None)
@given(runs=runs, n_blocks=st.integers(1, 3), threads=st.integers(1, 2))
def test_a_store_gives_what_lists_would(
    runs: list[list[Hypothesis]], n_blocks: int, threads: int
) -> None:
    metric = WordMetric()
    references = metric.prepare(REFERENCES)
    model = StoreModel(N_SENTENCES)
    with (
        tempfile.TemporaryDirectory() as path,
        NBestStore.open(path, writable=True, map_size=1 << 16) as store,
    ):
        for iteration, lines in enumerate(runs, start=1):
            lines = sorted(lines, key=lambda line: line.sentence)
            blocks = [
                make_list(itertools.chain.from_iterable(lists))
                for _, lists in itertools.groupby(
                    (list(g) for _, g in itertools.groupby(lines, lambda line: line.sentence)),
                    key=lambda lists: lists[0].sentence // n_blocks,
                )
            ]
            report = store.add_iteration(
                iteration,
                iter(blocks),
                metric=metric,
                references=references,
                n_sentences=N_SENTENCES,
                record={"iteration": iteration},
                threads=threads,
            )
            before = sum(len(model.merged(s, range(1, iteration))) for s in range(N_SENTENCES))
            model.add(lines)
            after = sum(len(model.merged(s, range(1, iteration + 1))) for s in range(N_SENTENCES))
            assert report.hypotheses == len(lines)
            assert report.new_hypotheses == after - before
            assert report.sentences == len({line.sentence for line in lines})
        check_store(store, model, metric, references)
        assert metric.scored == sum(record.new_hypotheses for record in store.iterations())
