"""The objectives of public rerankers, on the files that their users have.

Each test computes what a public script searches for in NumPy, by an own reading of the same files,
and compares it with what ``mosesplug optimize`` finds. ``test_length_exponent`` has more searches,
on arrays.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from numpy.typing import NDArray

from mosesplug.cli.main import main

pytestmark = pytest.mark.usefixtures("few_restarts")

Floats = NDArray[np.float64]

SENTENCES, HYPOTHESES = 30, 8
WORDS = [f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me") for b in ("n", "rst", "x", "la")]


def make_texts(rng: random.Random) -> tuple[list[list[str]], list[list[list[str]]]]:
    """Return references, and hypotheses with errors, more of them lost words than others."""
    references = [rng.choices(WORDS, k=rng.randint(5, 14)) for _ in range(SENTENCES)]
    lists = []
    for words in references:
        made = []
        for _ in range(HYPOTHESES):
            copy = list(words)
            for _ in range(rng.choice((0, 1, 2, 3))):
                at = rng.randrange(len(copy))
                if rng.random() < 0.6:
                    del copy[at]
                else:
                    copy[at] = rng.choice(WORDS)
            made.append(copy)
        lists.append(made)
    return references, lists


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the edit distance (Wagner & Fischer 1974)."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, against in enumerate(other, start=1):
            here = min(row[j] + 1, row[j - 1] + 1, before + (word != against))
            before, row[j] = row[j], here
    return row[-1]


def choose(scores: Floats) -> NDArray[np.int64]:
    """Return the rows of the first hypothesis of highest score of each sentence."""
    best = scores.reshape(-1, HYPOTHESES).argmax(axis=1)
    return best + HYPOTHESES * np.arange(len(best))


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert not ended.value.code


def read_end(capsys: pytest.CaptureFixture[str]) -> float:
    """Return the score that the command prints for its result."""
    return float(capsys.readouterr().err.split("score at the end")[1].split()[0])


def test_scores_from_outside_are_the_sum_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list of texts without ids, scores in a text file, counts as NumPy: mean and ratio."""
    rng = np.random.default_rng(3)
    n = SENTENCES * HYPOTHESES
    features = rng.normal(size=(n, 2)).astype(np.float32)
    scores = features[:, 0] - 0.5 * features[:, 1] + rng.normal(size=n)
    counts = np.column_stack([rng.integers(0, 5, n), rng.integers(5, 9, n)]).astype(float)
    (tmp_path / "list").write_text(
        "".join(f"w{row}\t{a!s}\t{b!s}\n" for row, (a, b) in enumerate(features))
    )
    (tmp_path / "scores").write_text("".join(f"{value}\n" for value in scores.tolist()))
    np.save(tmp_path / "counts.npy", counts)
    (tmp_path / "start").write_text("a=0.3 b=0.7\n")
    words = ["optimize", tmp_path / "list", "--format", f"flat:{HYPOTHESES}", "--names", "a,b",
             "--init", tmp_path / "start", "-o", tmp_path / "weights.json"]  # fmt: skip
    for given, score in (
        (f"Q={tmp_path}/scores", lambda rows: scores[rows].mean()),
        (f"R={tmp_path}/counts.npy:error",
         lambda rows: 1.0 - counts[rows, 0].sum() / counts[rows, 1].sum()),
    ):  # fmt: skip
        run(*words, "--scores", given)
        said = capsys.readouterr().err
        weights = json.loads((tmp_path / "weights.json").read_text())["dense"]
        start, end = (
            float(score(choose(features.astype(np.float64) @ np.array(vector))))
            for vector in ([0.3, 0.7], [weights["a"], weights["b"]])
        )
        assert f"score at the start  {start:.6f}" in said
        assert f"score at the end    {end:.6f}" in said
        assert end > start


def count_matches(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Return matched and possible n-grams of each order, and both lengths."""
    counts = []
    for n in range(1, 5):
        ours, theirs = (
            Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            for words in (hypothesis, reference)
        )
        counts += [(ours & theirs).total(), ours.total()]
    return [*counts, len(hypothesis), len(reference)]


def bleu(counts: NDArray[np.int64]) -> float:
    """Return BLEU (Papineni et al. 2002) of sums of ``count_matches``."""
    matched, possible = counts[:8:2].astype(float), counts[1:8:2]
    if not matched.all():
        return 0.0
    return float(np.exp(np.log(matched / possible).mean() + min(0.0, 1.0 - counts[9] / counts[8])))


@pytest.mark.parametrize("normalize", [False, True], ids=["sums", "normalize"])
def test_random_search_of_fairseq(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], normalize: bool
) -> None:
    """``rerank_tune.py`` tries 1,000 random points of 0..3 for ``lenpen`` and three weights.

    ``rerank_utils.get_score`` is ``(a s1 + b s2 + c lm) / len**lenpen``; with ``--normalize``, the
    scores are divided by the length of the hypothesis, and those of the reverse and of the language
    model by that of the source.
    """
    rng = random.Random(5)
    references, lists = make_texts(rng)
    printed, rows, backward, language, sources = [], [], [], [], []
    for sentence, (reference, texts) in enumerate(zip(references, lists, strict=True)):
        printed += [f"S-{sentence}\tx", f"T-{sentence}\t{' '.join(reference)}"]
        source = len(reference) + rng.randint(-1, 2)
        for words in texts:
            errors = distance(words, reference)
            positions = [round(-0.4 - 0.15 * errors + rng.gauss(0, 0.3), 4) for _ in words]
            text, score = " ".join(words), sum(positions) / len(words)
            printed += [f"{kind}-{sentence}\t{score:.6f}\t{text}" for kind in "HD"]
            printed.append(f"P-{sentence}\t{' '.join(map(str, positions))}")
            backward.append(round(-1.5 * source - 2.0 * errors + rng.gauss(0, 2), 4))
            language.append(round(-2.5 * len(words) - 2.0 * errors + rng.gauss(0, 2), 4))
            sources.append(source)
            rows.append([sum(positions), backward[-1], language[-1], len(words)])
    (tmp_path / "generate.out").write_text("".join(f"{line}\n" for line in printed))
    (tmp_path / "refs").write_text("".join(f"{' '.join(words)}\n" for words in references))
    for name, values in (("bw", backward), ("lm", language), ("src", sources)):
        (tmp_path / name).write_text("".join(f"{value}\n" for value in values))
    values = np.array(rows)
    models, lengths = values[:, :3], values[:, 3]
    if normalize:
        models = models / np.column_stack([lengths, sources, sources])
    statistics = np.array(
        [
            count_matches(words, reference)
            for reference, texts in zip(references, lists, strict=True)
            for words in texts
        ]
    )
    draw = random.Random(1)
    points = [[draw.uniform(0.0, 3.0) for _ in range(4)] for _ in range(1000)]
    theirs = max(
        bleu(statistics[choose(models @ weights / lengths**lenpen)].sum(axis=0))
        for lenpen, *weights in points
    )

    words = [
        "optimize",
        tmp_path / "generate.out",
        "--refs",
        tmp_path / "refs",
        "--word-scores",
        "sum",
        "--drop-feature",
        "score",
        "--rename",
        "word_scores=fw",
        "--add-feature",
        f"bw={tmp_path}/bw",
        "--add-feature",
        f"lm={tmp_path}/lm",
    ]
    names = ["fw", "bw", "lm"]
    if normalize:
        words += ["--add-feature", f"src={tmp_path}/src", "--bound", "src:=0"]
        for name, by in (("fw", "words"), ("bw", "src"), ("lm", "src")):
            words += ["--derive", f"{name}_norm={name}/{by}", "--bound", f"{name}:=0"]
        names = [f"{name}_norm" for name in names]
    for name in names:
        words += ["--bound", f"{name}:0..3"]
    words += ["--length-exponent", "0:3", "--option", "restarts=1"]
    run(*words, "-o", tmp_path / "weights.json")
    ours = read_end(capsys)
    assert ours >= theirs - 5e-7
    found = json.loads((tmp_path / "weights.json").read_text())["dense"]
    vector = np.array([found[name] for name in names])
    assert ((vector >= 0.0) & (vector <= 3.0)).all()
    exponent = float((tmp_path / "weights.json.length").read_text())
    assert 0.0 <= exponent <= 3.0
    chosen = choose(models @ vector / lengths**exponent)
    assert bleu(statistics[chosen].sum(axis=0)) == pytest.approx(ours, abs=5e-7)
    texts = [" ".join(words) for texts in lists for words in texts]
    official = sacrebleu.corpus_bleu(
        [texts[row] for row in chosen],
        [[" ".join(words) for words in references]],
        tokenize="none",
        smooth_method="none",
        force=True,
    )
    assert official.score / 100 == pytest.approx(bleu(statistics[chosen].sum(axis=0)))


SCALES = (0.01, 0.05, 0.08, 0.1, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 1.9, 2.0,
          2.1, 2.2, 2.3, 2.5, 3.0, 4.0, 5.0)  # fmt: skip


def test_grid_of_icefall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``rescore_with_attention_decoder`` tries 24 x 24 scales; the best is that of least WER.

    The score is ``am + ngram_lm_scale lm + attention_scale attention``. The lists are a table, and
    archives as of Kaldi, whose references begin with the ids in another order.
    """
    rng = random.Random(8)
    references, lists = make_texts(rng)
    table, archives, keyed = ["id\thyp\tam\tngram_lm\tattention"], [[], [], [], []], []
    rows, errors = [], []
    for sentence, (reference, texts) in enumerate(zip(references, lists, strict=True)):
        utterance = f"{2000 + sentence % 7}-utt-{sentence:04d}"
        keyed.append(f"{utterance} {' '.join(reference)}\n")
        for rank, words in enumerate(texts, start=1):
            count = distance(words, reference)
            scores = [
                round(scale * len(words) - share * count + rng.gauss(0, noise), 4)
                for scale, share, noise in ((-2, 1, 2), (-3, 1, 3), (-0.6, 0.6, 1))
            ]
            table.append("\t".join([utterance, " ".join(words), *map(str, scores)]))
            for lines, value in zip(
                archives, [" ".join(words), *(-s for s in scores)], strict=True
            ):
                lines.append(f"{utterance}-{rank} {value}\n")
            rows.append(scores)
            errors.append(count)
    (tmp_path / "nbest.tsv").write_text("".join(f"{line}\n" for line in table))
    (tmp_path / "archives.1").mkdir()
    names = ("words_text", "am", "ngram_lm", "attention")
    for name, lines in zip(names, archives, strict=True):
        (tmp_path / "archives.1" / name).write_text("".join(lines))
    (tmp_path / "text").write_text("".join(sorted(keyed)))

    models, wrong, total = np.array(rows), np.array(errors), sum(map(len, references))
    grid = [
        wrong[choose(models @ [1.0, lm, attention])].sum() / total
        for lm in SCALES
        for attention in SCALES
    ]
    bounds = ["--bound", "am:=1", "--bound", "ngram_lm:0.01..5", "--bound", "attention:0.01..5"]
    results = []
    for lists_path in (tmp_path / "nbest.tsv", tmp_path):
        weights = tmp_path / "scales.json"
        run("optimize", lists_path, "--refs", tmp_path / "text", "--metric", "WER", *bounds,
            "-o", weights)  # fmt: skip
        rate = 1.0 - read_end(capsys)
        assert rate <= min(grid) + 5e-7
        found = json.loads(weights.read_text())["dense"]
        assert found["am"] == 1.0
        vector = [found[name] for name in names[1:]]
        assert wrong[choose(models @ vector)].sum() / total == pytest.approx(rate, abs=5e-7)
        results.append(rate)
    assert results[0] == pytest.approx(results[1], abs=0.01)
    assert min(grid) < max(grid)  # the choice of scales matters


def search_line(scores: Floats, more: Floats, wrong: NDArray[np.int64]) -> float:
    """Return the coefficient of NeMo's ``linear_search_wer``: 10,000 steps, the first best."""
    right = 10 * abs(scores.mean()) / abs(more.mean())
    coefficients = np.linspace(0.0, right, 10000)
    lines = scores + coefficients[:, np.newaxis] * more
    best = lines.reshape(len(coefficients), -1, HYPOTHESES).argmax(axis=2)
    errors = wrong.reshape(-1, HYPOTHESES)[np.arange(SENTENCES), best].sum(axis=1)
    return float(np.round(coefficients[int(np.argmin(errors))], 3))


def test_line_searches_of_nemo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``eval_neural_rescorer.py`` searches ``score + alpha lm + beta characters``, by WER.

    First ``alpha`` on a line, then ``beta`` with this ``alpha``.
    """
    rng = random.Random(11)
    references, lists = make_texts(rng)
    beams, language, rows, errors = [], [], [], []
    for reference, texts in zip(references, lists, strict=True):
        for words in texts:
            count, text = distance(words, reference), " ".join(words)
            score = round(-1.5 * len(words) - 0.8 * count + rng.gauss(0, 2), 4)
            language.append(round(-3.0 * len(words) - 1.5 * count + rng.gauss(0, 2), 4))
            beams.append(f"{text}\t{score}\n")
            rows.append([score, language[-1], len(text)])
            errors.append(count)
    (tmp_path / "beams.tsv").write_text("".join(beams))
    (tmp_path / "lm.scores").write_text("".join(f"{value}\n" for value in language))
    (tmp_path / "refs").write_text("".join(f"{' '.join(words)}\n" for words in references))
    acoustic, lm, characters = np.array(rows).T
    wrong, total = np.array(errors), sum(map(len, references))
    alpha = search_line(acoustic, lm, wrong)
    fused = acoustic + alpha * lm
    beta = search_line(fused, characters, wrong)
    theirs = wrong[choose(fused + beta * characters)].sum() / total

    run("optimize", tmp_path / "beams.tsv", "--format", f"nemo:{HYPOTHESES}",
        "--add-feature", f"lm={tmp_path}/lm.scores", "--derive", "length=chars",
        "--refs", tmp_path / "refs", "--metric", "WER", "--bound", "score:=1",
        "--bound", "lm:0..100", "--bound", "length:0..100", "-o", tmp_path / "w.json")  # fmt: skip
    rate = 1.0 - read_end(capsys)
    assert rate <= theirs + 5e-7
    found = json.loads((tmp_path / "w.json").read_text())["dense"]
    chosen = choose(acoustic + found["lm"] * lm + found["length"] * characters)
    assert wrong[chosen].sum() / total == pytest.approx(rate, abs=5e-7)
    assert theirs < wrong[::HYPOTHESES].sum() / total
