"""Test the page of two runs in a browser: one start of Chromium serves all tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import mosesplug
from formats.weights.named import read_named_weights
from mosesplug.cli.main import main
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.report.document import render_document
from mosesplug.results.report.explorer.page import make_script
from mosesplug.results.report.explorer.run_data import gather_explorer
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.results.views.texts import ParallelText
from tests.browser import Browser, find_chromium, open_browser
from tests.results.pages import check_whole
from tests.results.report.explorer.explored import (
    N_SENTENCES,
    SPARSE,
    make_explored_run,
    make_references,
    make_wide_run,
)
from tests.results.runs import gather_report

pytest.importorskip("matplotlib")


class Shown(NamedTuple):
    """A page of two runs, and the browser that shows it."""

    browser: Browser
    page: Path
    first: Path
    references: Path

    def open(self, fragment: str = "") -> Browser:
        """Load the page anew."""
        self.browser.open(self.page, fragment)
        return self.browser

    def read(self, fact: str) -> str:
        """Return a number of the summary."""
        text: str = self.browser.evaluate(f"document.querySelector('[data-fact={fact}]').value")
        return text


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Two runs on one page."""
    find_chromium()
    directory = tmp_path_factory.mktemp("runs")
    runs = [make_explored_run(directory / name, seed=seed) for name, seed in (("a", 1), ("b", 2))]
    references, source = directory / "refs", directory / "source"
    references.write_bytes(b"".join(line + b"\n" for line in make_references()))
    source.write_text("<b>zwei</b> & mehr\n" * N_SENTENCES)
    page = mosesplug.report(runs, directory / "p.html", references=references, source=source)
    with open_browser() as browser:
        yield Shown(browser, page, runs[0], references)
        assert browser.problems == []


def set_weight(browser: Browser, place: int, value: float) -> None:
    """Move a slider as a hand does, and wait for the next frame."""
    browser.evaluate(
        "new Promise((done) => {"
        f"const slider = document.querySelector('#w{place}'); slider.value = '{value}';"
        "slider.dispatchEvent(new Event('input'));"
        "requestAnimationFrame(() => requestAnimationFrame(done)); })"
    )


def test_page_needs_nothing_else_and_loads_nothing(shown: Shown) -> None:
    text = shown.page.read_text()
    check_whole(text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    ids = shown.open().evaluate("[...document.querySelectorAll('h2')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_moved_weight_scores_as_mosesplug_score(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = shown.open()
    before = shown.read("BLEU")
    with open_run(shown.first) as run:
        vector, space = run.vector.copy(), run.space
        vector[1] = 0.125
        merged = run.store.tuning_set()
        assert before == f"{_score(run, merged, run.vector):.4f}"
        rows = merged.first_best(vector)
        texts = choose_texts(run, vector)
        changed = int(np.sum(rows != merged.first_best(_first(run))))
    set_weight(browser, 1, 0.125)
    assert space.names[1] == "TM0_0"
    output, references = tmp_path / "output", tmp_path / "refs"
    output.write_bytes(b"".join(text + b"\n" for text in texts))
    references.write_bytes(b"".join(shown.references.read_bytes().splitlines(True)[: len(texts)]))
    words = ["score", str(output), str(references), "--metric", "BLEU", "--samples", "0"]
    with pytest.raises(SystemExit):
        main([*words, "--json"])
    (scored,) = json.loads(capsys.readouterr().out)
    assert shown.read("BLEU") == f"{scored['score']:.4f}" != before
    assert shown.read("changed") == f"{changed} of {N_SENTENCES}"
    # A link leads to the same weights, and undo away from them.
    browser.wait_for("location.hash.includes('weights=')")
    shown.open(browser.evaluate("location.hash"))
    assert shown.read("BLEU") == f"{scored['score']:.4f}"


def choose_texts(run: StoredRun, vector: NDArray[np.float64]) -> list[bytes]:
    """The 1-best of each list that is not empty; these come first."""
    merged = run.store.tuning_set()
    rows = merged.first_best(vector)
    return [
        run.store.hypotheses(sentence)[row - merged.offsets[sentence]]
        for sentence, row in enumerate(rows)
    ]


def _first(run: Any) -> Any:
    return run.decoding_weights(1).normalize().vector(run.space)


def _score(run: Any, merged: Any, vector: Any) -> float:
    return float(run.metric.score(merged.stats[merged.first_best(vector)].sum(axis=0)))


def test_buttons_undo_curves_and_copies(shown: Shown) -> None:
    browser = shown.open()
    result = shown.read("BLEU")
    browser.evaluate("document.querySelector('[data-point=\"1\"]').click()")
    browser.wait_for("location.hash.includes('point=1')")
    browser.evaluate(
        "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Undo').click()"
    )
    assert shown.read("BLEU") == result
    browser.wait_for("document.querySelector('.surface .mark')")
    browser.evaluate(
        "(() => { const curve = document.querySelector('.surface');"
        "const box = curve.getBoundingClientRect();"
        "curve.dispatchEvent(new MouseEvent('click', { clientX: box.left + box.width / 4 }));"
        "return new Promise((done) => requestAnimationFrame(() =>"
        " requestAnimationFrame(done))); })()"
    )
    slider = "document.querySelector('#w0')"
    share = browser.evaluate(f"({slider}.value - {slider}.min) / ({slider}.max - {slider}.min)")
    assert share == pytest.approx(0.25, abs=0.02)
    browser.evaluate("document.querySelector('[data-point=\"3\"]').click()")
    copies = [
        browser.evaluate(
            f"(() => {{ [...document.querySelectorAll('.copy button')][{place}].click();"
            "return document.querySelector('.copy textarea').value; })()"
        )
        for place in range(3)
    ]
    with open_run(shown.first) as run:
        weights = run.weights.normalize()
    lm, *tm = weights.dense
    assert copies[0].startswith(f"[weight]\nLM0= {lm!r}\nTM0= {tm[0]!r} {tm[1]!r}\n")
    sparse = {name: weight for name, weight in weights.sparse.items() if weight}
    assert json.loads(copies[1]) == {"dense": {"LM0": lm, "TM0": tm}, "sparse": sparse}
    written = read_named_weights(copies[2].strip())
    assert written.groups == {"LM0": (lm,), "TM0": tuple(tm)}
    assert written.sparse == sparse


def test_search_and_a_sentence_with_hostile_texts(shown: Shown) -> None:
    browser = shown.open("#tab=sentences&search=script%3E.*dog&field=any+hypothesis")
    rows = "[...document.querySelectorAll('[data-sentence]')].map((one) => one.dataset.sentence)"
    assert browser.evaluate(rows) == ["0"]
    browser.evaluate("document.querySelector('[data-sentence]').click()")
    detail = browser.evaluate("document.querySelector('.sentence-detail').textContent")
    assert "<b>zwei</b> & mehr" in detail
    assert "<img src=x onerror=\"document.title='image'\">" in detail
    assert "</script><script>document.title='script'</script>" in detail
    assert "(oracle" in browser.evaluate("document.querySelector('.shares h4').textContent")
    for role in ("1-best", "oracle", "hope", "fear", "sparse features", "1:"):
        assert role in detail
    assert "<b>\\u202dالبيت</b> e\u0301 \U0001f469\u200d\U0001f680 longlong" in detail
    for tab in ("weights", "sentences", "curves", "runs", "report"):
        browser.evaluate(f"document.querySelector('#tab-{tab}').click()")
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    texts = "document.querySelectorAll(':is(#panel-sentences, #panel-runs, .changed) :is(img, b)')"
    assert browser.evaluate(f"{texts}.length") == 0
    assert browser.evaluate("document.title").startswith("Tuning in")
    # An invalid expression is explained, and hides nothing.
    browser.open(shown.page, "#tab=sentences&search=(")
    message = browser.evaluate("document.querySelector('.sentences [role=status]').textContent")
    assert message.startswith("Not a regular expression")
    assert len(browser.evaluate(rows)) == N_SENTENCES


def test_filter_order_and_hypothesis_are_in_the_link(shown: Shown) -> None:
    browser = shown.open("#tab=sentences")
    with open_run(shown.first) as run:
        merged = run.store.tuning_set()
        scores, base = score_sentences(run.metric, merged.stats), _first(run)
        rows, before = merged.first_best(run.vector), merged.first_best(base)
    chosen = {str(k): round(scores[row], 4) for k, row in enumerate(rows) if row >= 0}
    limit = sorted(chosen.values())[6]
    wanted = sorted((k for k in chosen if chosen[k] < limit), key=lambda k: (-chosen[k], int(k)))
    ids = "[...document.querySelectorAll('[data-sentence]')].map((one) => one.dataset.sentence)"
    browser.evaluate(set_field("[data-role=filter]", f"score<{limit:.4f} length>0", "input"))
    sort = "document.querySelectorAll('.sentences thead button')[1]"
    browser.evaluate(f"{sort}.click()")
    assert browser.evaluate(ids) == wanted
    browser.evaluate(f"document.querySelector('[data-sentence=\"{wanted[0]}\"]').click()")
    # Next and Previous go through the table.
    for label, sentence in (("Next", wanted[1]), ("Previous", wanted[0])):
        browser.evaluate(
            "[...document.querySelectorAll('.sentence-detail button')]"
            f".find((one) => one.textContent === '{label}').click()"
        )
        label = browser.evaluate("document.querySelector('.sentence-detail').ariaLabel")
        assert label == f"Sentence {sentence}"
    browser.evaluate("document.querySelectorAll('[data-row]')[2].click()")
    pressed = "document.querySelector('[data-row][aria-pressed=true]').dataset.row"
    row = browser.evaluate("document.querySelectorAll('[data-row]')[2].dataset.row")
    browser.evaluate(set_field("[data-role=against]", "reference", "change"))
    assert browser.evaluate("document.activeElement.dataset.role") == "against"
    browser.wait_for("location.hash.includes('against=')")
    shown.open(browser.evaluate("location.hash"))
    assert browser.evaluate(ids) == wanted
    assert browser.evaluate(pressed) == row
    assert browser.evaluate("document.querySelector('[data-role=against]').value") == "reference"
    assert browser.evaluate(f"{sort}.closest('th').ariaSort") == "descending"
    # Both weight vectors can be chosen beside the table.
    browser.evaluate(set_field("[data-role=filter]", "", "input"))
    browser.evaluate(set_field("[data-role=present]", "iteration 1", "change"))
    browser.evaluate(set_field(".sentences [data-role=base]", "result", "change"))
    browser.evaluate("document.querySelector('[data-role=changed]').click()")
    changed = {str(k) for k in np.flatnonzero(rows != before)}
    assert set(browser.evaluate(ids)) == changed != set()


def test_keyboard_focus_follows_the_sentence(shown: Shown) -> None:
    active = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    heading = "document.querySelector('.sentence-detail h3').getBoundingClientRect().top"
    last = N_SENTENCES - 1
    openers = {
        "weights": "document.querySelector('.changed button')",
        "runs": "document.querySelector('.runs td button')",
        "sentences": f"document.querySelector('[data-sentence=\"{last - 1}\"]')",
    }
    for tab, button in openers.items():
        browser = shown.open(f"#tab={tab}")
        browser.resize(1150, 300)
        browser.evaluate(f"{button}.focus()")
        browser.evaluate(f"{button}.click()")
        assert browser.evaluate(active).startswith("Sentence ")
        assert 0 <= browser.evaluate(heading) < 300
    # The button keeps the focus until it is disabled.
    buttons = "[...document.querySelectorAll('.sentence-detail button')]"
    after = f"{buttons}.find((one) => one.textContent === 'Next')"
    browser.evaluate(f"{after}.focus()")
    browser.evaluate(f"{after}.click()")
    assert browser.evaluate("document.querySelector('.sentence-detail').ariaLabel").endswith(
        str(last)
    )
    assert browser.evaluate(active) == "Previous"
    browser.evaluate(f"{buttons}.find((one) => one.textContent === 'Close').click()")
    assert browser.evaluate(active) == f"Open sentence {last}"
    browser.resize(1150, 800)


def test_arrow_keys_move_between_views(shown: Shown) -> None:
    browser = shown.open("#tab=weights")
    chosen = "document.querySelector('[role=tab][aria-selected=true]')"
    for options, tab in (("altKey: true", "weights"), ("", "report"), ("", "runs")):
        event = f"new KeyboardEvent('keydown', {{ key: 'ArrowLeft', {options} }})"
        browser.evaluate(f"{chosen}.dispatchEvent({event})")
        assert browser.evaluate(f"{chosen}.id") == f"tab-{tab}"
    assert browser.evaluate("document.activeElement.id") == "tab-runs"


FOCUS = """(() => {
  const active = document.activeElement;
  if (active === document.body) return null;
  const { left, top, width, height } = active.getBoundingClientRect();
  const x = Math.min(Math.max(left + width / 2, 1), innerWidth - 1);
  const seen = document.elementFromPoint(x, top + Math.min(height / 2, 10));
  const isSeen = seen !== null && (active.contains(seen) || seen.contains(active));
  const ring = parseFloat(getComputedStyle(active).outlineWidth);
  return [active.id || active.ariaLabel || active.textContent, isSeen && ring > 0];
})()"""
"""The name of what has the keyboard focus, and whether a reader sees it."""


def test_tab_key_walks_through_all_views(shown: Shown) -> None:
    def walk(*, back: bool) -> list[str]:
        names: list[str] = []
        for _ in range(150):
            browser.press("Tab", shift=back)
            if (focus := browser.evaluate(FOCUS)) is None:
                return names
            assert focus[1], f"{focus[0]} is focused where nobody sees it"
            names.append(focus[0])
        raise AssertionError(f"the Tab key does not leave {names[-1]}")

    for tab in ("sentences", "curves", "runs", "report", "weights"):
        browser = shown.open(f"#tab={tab}&sentence=1")
        names = walk(back=False)
        assert f"tab-{tab}" in names
    assert names == walk(back=True)[::-1]


def test_keys_keep_their_place(shown: Shown) -> None:
    browser = shown.open("#tab=weights")
    value = browser.evaluate("document.querySelector('#w1').value")
    browser.evaluate("document.querySelector('#w1').focus()")
    browser.press("ArrowRight")
    browser.wait_for(f"document.querySelector('#w1').value !== '{value}'")
    undo = "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Undo')"
    browser.wait_for(f"{undo}.ariaDisabled === 'false'")
    browser.evaluate(f"{undo}.focus()")
    browser.press("Enter")
    browser.wait_for(f"document.querySelector('#w1').value === '{value}'")
    # What a button no longer does keeps the focus on it.
    assert browser.evaluate(f"{undo} === document.activeElement && {undo}.ariaDisabled") == "true"
    browser.open(shown.page, "#tab=sentences")
    browser.evaluate("document.querySelector('[data-sentence=\"3\"]').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.className") == "sentence-detail"
    browser.press("Escape")
    assert browser.evaluate("document.activeElement.ariaLabel") == "Open sentence 3"


def test_fingers_scroll_the_page_and_zoom_charts(shown: Shown) -> None:
    browser = shown.open("#tab=weights")
    browser.resize(390, 600)

    def find(selector: str) -> tuple[float, float, float]:
        left, top, width = browser.evaluate(
            f"(() => {{ const node = document.querySelector('{selector}');"
            "node.scrollIntoView({ block: 'center', behavior: 'instant' });"
            "const { left, top, width } = node.getBoundingClientRect();"
            "return [left, top, width]; })()"
        )
        return left, top + 10, width

    value = browser.evaluate("document.querySelector('#w0').value")
    left, top, width = find("#w0")
    before = browser.evaluate("scrollY")
    browser.swipe((left + 0.1 * width, top), (left + 0.1 * width, top - 150))
    browser.wait_for(f"scrollY > {before}")
    assert browser.evaluate("document.querySelector('#w0').value") == value
    left, top, width = find("#w0")
    browser.swipe((left + 0.5 * width, top), (left + 0.9 * width, top))
    browser.wait_for(f"document.querySelector('#w0').value > {value}")
    browser.evaluate("document.querySelector('#tab-curves').click()")
    left, top, width = find("svg.chart")
    before = browser.evaluate("scrollY")
    browser.swipe((left + 0.5 * width, top), (left + 0.5 * width, top - 150))
    browser.wait_for(f"scrollY > {before}")
    left, top, width = find("svg.chart")
    browser.swipe((left + 0.5 * width, top), (left + 0.5 * width, top))
    browser.wait_for("document.querySelector('.values').textContent.startsWith('iteration 2: a: ')")
    assert browser.evaluate(TICKS) == ["1", "2", "3"]
    browser.swipe((left + 0.2 * width, top), (left + 0.6 * width, top))
    browser.wait_for(f"{TICKS}.join() === '1,2'")
    browser.resize(1150, 800)


TICKS = (
    "[...document.querySelectorAll('svg.chart')[0].querySelectorAll('[text-anchor=middle]')]"
    ".map((one) => one.textContent).slice(0, -1)"
)
"""The iterations below a chart."""


def test_zoom_of_a_chart(shown: Shown) -> None:
    browser = shown.open("#tab=curves")
    assert browser.evaluate(TICKS) == ["1", "2", "3"]
    press = (
        "document.querySelector('svg.chart').dispatchEvent("
        "new KeyboardEvent('keydown', {{ key: '{}' }}))"
    )
    browser.evaluate(press.format("+"))
    assert browser.evaluate(TICKS) == ["2", "3"]
    for _ in range(3):  # The range follows the cursor.
        browser.evaluate(press.format("ArrowLeft"))
    assert browser.evaluate(TICKS) == ["1", "2"]
    browser.evaluate("document.querySelector('[aria-label^=\"Zoom out\"]').click()")
    assert browser.evaluate(TICKS) == ["1", "2", "3"]
    box = browser.evaluate(
        "(({ left, top, width }) => [left, top, width])("
        "document.querySelector('svg.chart').getBoundingClientRect())"
    )
    for kind, share in (("Pressed", 0.05), ("Moved", 0.3), ("Moved", 0.7)):
        browser.mouse(kind, box[0] + share * box[2], box[1] + 30)
    assert (
        browser.evaluate("Number(document.querySelector('.selection').getAttribute('width'))") > 0
    )
    browser.mouse("Released", box[0] + 0.7 * box[2], box[1] + 30)
    assert browser.evaluate("document.querySelector('.selection')") is None
    assert browser.evaluate(TICKS) == ["1", "2"]


def test_sparse_features_are_one_factor(shown: Shown) -> None:
    browser = shown.open()
    set_weight(browser, 3, -1.0)
    with open_run(shown.first) as run:
        vector = run.vector * np.where(np.arange(len(run.vector)) < 3, 1.0, -1.0)
        assert shown.read("BLEU") == f"{_score(run, run.store.tuning_set(), vector):.4f}"
    names = browser.evaluate(
        "(() => { const details = document.querySelector('ul.sparse').parentElement;"
        "details.open = true; return new Promise((done) => setTimeout(() => done("
        "[...details.querySelectorAll('bdi')].map((one) => one.textContent)), 50)); })()"
    )
    assert set(names) <= set(SPARSE)


def test_groups_are_one_factor(shown: Shown) -> None:
    browser = shown.open()
    set_weight(browser, 4, -0.75)
    with open_run(shown.first) as run:
        vector = run.vector * np.where(np.isin(np.arange(len(run.vector)), (1, 2)), -0.75, 1.0)
        assert shown.read("BLEU") == f"{_score(run, run.store.tuning_set(), vector):.4f}"
    # The other slider of the group moves along, and begins anew when one of its weights moves.
    value = "Number(document.querySelector('#w{}').value)"
    assert browser.evaluate(value.format(1)) == vector[1]
    set_weight(browser, 1, 0.5)
    assert browser.evaluate(value.format(4)) == 1.0
    undo = "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Undo')"
    for _ in range(2):
        browser.evaluate(f"{undo}.click()")
    assert browser.evaluate(f"{undo}.ariaDisabled") == "true"


def test_two_runs_side_by_side(shown: Shown) -> None:
    browser = shown.open("#tab=runs")
    rows = browser.evaluate(
        "[...document.querySelectorAll('.runs table')].map((table) => [...table.rows]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent)))"
    )
    runs, weights, sentences = rows
    assert runs[0] == ["run", "a", "b"]
    assert [row[0] for row in weights] == ["feature", "LM0_0", "TM0_0", "TM0_1"]
    assert 1 < len(sentences) <= N_SENTENCES
    # A link leads to the present weights of both runs.
    differing = "document.querySelector('.runs > div:last-child').textContent"
    before = browser.evaluate(differing)
    browser.evaluate("document.querySelector('#tab-weights').click()")
    set_weight(browser, 0, -0.5)
    browser.evaluate("document.querySelector('#tab-runs').click()")
    browser.evaluate(set_field(".views select", "b", "change"))
    after = browser.evaluate(differing)
    browser.wait_for("location.hash.includes('run=1') && location.hash.includes('&weights=')")
    shown.open(browser.evaluate("location.hash"))
    assert before != after == browser.evaluate(differing)
    browser.evaluate("document.querySelector('.runs table:last-of-type button')?.click()")
    browser.evaluate("document.querySelector('#tab-curves').click()")
    assert browser.evaluate("document.querySelectorAll('.charts svg.chart').length") == 6
    watched = browser.evaluate("document.querySelectorAll('.charts > *')[1].textContent")
    assert watched.startswith("Not optimized: WER (less is better)")
    assert "b: decoded" in watched
    assert "a: news" in watched
    browser.evaluate(
        "document.querySelector('svg.chart').dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'ArrowRight' }))"
    )
    values = browser.evaluate("document.querySelector('.values').textContent")
    assert values.startswith("iteration 1: a: decoded 0.")
    assert "a: news 0.2500, b: news 0.2500" in values


def test_differences_of_runs_are_those_of_compare(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for path in (shown.first, shown.first.with_name("b")):
        with open_run(path) as run:
            texts = choose_texts(run, run.vector)
        outputs.append(tmp_path / path.name)
        # The list of the last sentence is empty: it adds nothing to the statistics.
        outputs[-1].write_bytes(b"".join(text + b"\n" for text in [*texts, b""]))
    references = tmp_path / "refs"
    lines = shown.references.read_bytes().splitlines(keepends=True)
    references.write_bytes(b"".join([*lines[:-1], b"\n"]))
    words = ["compare", *map(str, outputs), "--refs", str(references), "--metric", "BLEU"]
    with pytest.raises(SystemExit):
        main([*words, "--format", "tsv"])
    printed = capsys.readouterr().out.splitlines()
    head, first, second = (line.split("\t") for line in printed)
    tested = dict(zip(head, second, strict=True))
    cells = shown.open("#tab=runs").evaluate(
        "[...document.querySelector('.runs table').rows]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    facts = {name: own for name, *own in cells}
    assert facts["result, merged lists"] == [
        dict(zip(head, first, strict=True))["score"],
        tested["score"],
    ]
    assert float(tested["difference"]) != 0
    assert facts["difference from a"][1] == tested["difference"]
    for name in ("interval of difference", "p(boot)", "p(AR)"):
        assert facts[name] == ["", tested[name]]


def test_many_features_and_hypotheses(shown: Shown, tmp_path: Path) -> None:
    with open_run(make_wide_run(tmp_path / "run")) as run:
        vector, text = run.vector, ParallelText()
        data = gather_report(run, text)
        whole = gather_explorer(run, text, data, "run")
        size = sum(len(array["data"]) for array in whole.document["arrays"].values())
        half = gather_explorer(run, text, data, "run", size / 2)
        scripts = [make_script([whole]), make_script([half])]
        order = np.argsort(-run.store.tuning_set().model_scores(vector), kind="stable")
        texts = run.store.hypotheses(0)
    page, browser = tmp_path / "page.html", shown.browser
    held = []
    for script in reversed(scripts):
        page.write_text(render_document("wide", ["<h1>wide</h1>"], script=script))
        browser.open(page)
        held.append(browser.evaluate("document.querySelector('[data-role=held]').textContent"))
    assert held[0].startswith(f"The page holds {half.document['held']} of 130 hypotheses: ")
    assert held[0].endswith("their score equals that of all hypotheses.")
    assert held[1] == "The page holds all 130 hypotheses of the run."
    names = (
        "[...document.querySelectorAll('.feature')].filter((one) => one.checkVisibility())"
        ".map((one) => one.querySelector('label').textContent)"
    )
    assert browser.evaluate(names) == ["LM0_0", "Topic0 (factor)"]
    browser.evaluate(set_field(".features-tools input[type=search]", "opic0_7", "input"))
    assert browser.evaluate(names) == ["Topic0_7"]
    browser.evaluate(set_field(".features-tools input[type=search]", "", "input"))
    browser.evaluate(set_field("[data-role=order]", "influence", "change"))
    sizes = [abs(feature.weight * feature.spread) for feature in data.features]
    sorted_names = [run.names[place] for place in np.argsort(sizes)[::-1]]
    assert browser.evaluate(names) == sorted_names
    browser.open(page, "#tab=sentences&sentence=0")
    shares = "document.querySelectorAll('.shares tbody tr').length"
    assert browser.evaluate(shares) == 22  # 20, the others, and their sum
    browser.evaluate(set_field("[data-role=rank]", "123", "change"))
    chosen = "document.querySelector('.sentence-detail [aria-pressed=true]').closest('tr')"
    cells = browser.evaluate(f"[...{chosen}.cells].map((cell) => cell.textContent.trim())")
    assert cells[0] == "123"
    assert texts[order[122]].decode().split()[-1] in cells[1].split()
    assert browser.evaluate("document.activeElement.dataset.role") == "rank"


def set_field(selector: str, value: str, event: str) -> str:
    """The code that fills a field as a reader does."""
    return (
        f"(() => {{ const field = document.querySelector('{selector}'); field.focus();"
        f"field.value = '{value}'; field.dispatchEvent(new Event('{event}')); }})()"
    )


def test_narrow_screens_and_paper(shown: Shown) -> None:
    browser = shown.open()
    browser.resize(390, 844)
    for tab in ("weights", "sentences", "curves", "runs", "report"):
        browser.evaluate(f"document.querySelector('#tab-{tab}').click()")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    # Numbers need no scrolling to the side: those of a row take several lines.
    shown.open("#tab=sentences&sentence=1")
    for tab, n_tables in (("sentences", 2), ("runs", 1), ("report", 4)):
        browser.evaluate(f"document.querySelector('#tab-{tab}').click()")
        widths = browser.evaluate(
            f"[...document.querySelectorAll('.panel-{tab} table.stacked')]"
            ".map(({ parentElement: frame }) => [frame.scrollWidth, frame.clientWidth])"
        )
        assert len(widths) == n_tables
        assert all(needed <= room for needed, room in widths)
    browser.evaluate("document.querySelector('#tab-weights').click()")
    browser.print_media("print")
    visible = (
        "['.panel-weights', '#panel-report', '#features', '#features-2'].map((name) =>"
        " getComputedStyle(document.querySelector(name)).display !== 'none')"
    )
    assert browser.evaluate(visible) == [False, True, True, True]
    browser.print_media("")
