// Sentences: a table to sort, filter and search, and the hypotheses of one of them.

import { parseConditions } from "./conditions.js";
import { describeMissingLists } from "./data.js";
import { button, choice, element, keepFocus, markWords, replaceChildren, reveal, table } from "./elements.js";
import { formatCount, formatDifference, formatFixed, formatScore } from "./format.js";
import { computeSparseShare } from "./model_scores.js";
import { findHighest } from "./scorer.js";
import { makeBaseChoice } from "./weights_view.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {{sentence: number, row: number, score: number, change: number, loss: number,
 *   length: number}} SentenceRow `score`, `change` and `loss` are NaN if they cannot be computed
 */

const PAGE = 50;
const HYPOTHESES = 100;
const SHARES = 20;
const FIELDS = ["1-best", "any hypothesis", "source", "reference"];
/** @type {(keyof SentenceRow)[]} */
const NUMBERS = ["score", "change", "loss", "length"];

/**
 * Return the view of the sentences; `open` shows one and moves the keyboard focus to it.
 * @param {Session} session
 * @returns {{node: HTMLElement, update: () => void, open: (sentence: number) => void}}
 */
export function makeSentencesView(session) {
  const list = element("div", {});
  const detail = element("section", {
    class: "sentence-detail", tabindex: -1,
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close(),
  });
  const message = element("p", { class: "note", role: "status" });
  const search = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: "Regular expression", "aria-label": "Search texts by a regular expression",
    oninput: () => {
      session.search = search.value;
      session.tablePage = 0;
      session.notify();
    },
  }));
  const filter = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: "score<0.2 length>30", size: 24, autocapitalize: "off", spellcheck: "false",
    "data-role": "filter", title: "Conditions on score, change, loss and length, such as score<0.2 loss>=0.1; " +
      "spaces separate them, and all must hold.",
    oninput: () => {
      session.filter = filter.value;
      session.tablePage = 0;
      session.notify();
    },
  }));
  const { node: field, select } = choice("in", FIELDS, (place) => {
    session.field = FIELDS[place];
    session.tablePage = 0;
    session.notify();
  });
  const changed = /** @type {HTMLInputElement} */ (element("input", {
    type: "checkbox", "data-role": "changed",
    onchange: () => {
      session.onlyChanged = changed.checked;
      session.tablePage = 0;
      session.notify();
    },
  }));
  const vectors = element("div", { class: "tools" });
  const tools = element("div", { role: "search" },
    element("div", { class: "tools" }, search, field, element("label", {}, "Filter ", filter)), vectors);
  /** @type {RunSession | null} */
  let compared = null;
  let showVectors = () => {};
  /** @param {RunSession} run make the choices of its weights */
  function chooseVectors(run) {
    compared = run;
    const moved = "moved weights";
    const present = choice("Weights", [...run.points.map((point) => point.label), moved], (place) => {
      if (place < run.points.length) run.move(run.pointWeights(place));
      session.notify();
    }, { "data-role": "present" });
    const base = makeBaseChoice(session, run);
    replaceChildren(vectors, present.node, base.node, element("label", {}, changed, " changed only"));
    showVectors = () => {
      const place = run.findPoint();
      present.select.selectedIndex = place < 0 ? run.points.length : place;
      present.select.options[run.points.length].hidden = place >= 0;
      base.select.selectedIndex = run.basePoint;
    };
  }
  const node = element("section", { class: "sentences" }, tools, message, detail, list);

  /** @type {SentenceRow[]} those of the table, in its order */
  let rows = [];

  /** @param {RunSession} run choose the rows of the table, and order them */
  function chooseRows(run) {
    const all = listSentences(run);
    const { sentences, error: searchError } = searchSentences(session, run);
    const { test, error: filterError } = parseConditions(session.filter, run.sentenceScores === null ? ["length"] : NUMBERS);
    const error = searchError ?? filterError;
    rows = all.filter((row) => (sentences === null || sentences.has(row.sentence)) && test(roundScores(row)) &&
      (!session.onlyChanged || run.present.choice[row.sentence] !== run.base.choice[row.sentence]));
    const order = readOrder(session.sort);
    rows.sort((a, b) => compareRows(a, b, order.key, order.isDown));
    replaceChildren(message, error ?? `${formatCount(rows.length)} of ${formatCount(all.length)} sentences`);
    message.classList.toggle("warning", error !== null);
  }

  /** @param {number} sentence @returns {number} its place in the table, -1 if it has none */
  function findPlace(sentence) {
    return rows.findIndex((row) => row.sentence === sentence);
  }

  /** @param {RunSession} run */
  function showList(run) {
    const hasScores = run.sentenceScores !== null;
    const order = readOrder(session.sort);
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    const page = Math.min(session.tablePage, pages - 1);
    /** @param {string} label @param {keyof SentenceRow} key @param {string} title */
    const head = (label, key, title) => {
      const mark = order.key === key ? (order.isDown ? " ▼" : " ▲") : "";
      return button(`${label}${mark}`, () => {
        const isDown = order.key === key ? !order.isDown : key !== "sentence";
        session.tablePage = 0;
        session.sort = `${isDown ? "-" : ""}${key}`;
        keepFocus(list, session.notify.bind(session));
      }, { title, class: "sort" });
    };
    const base = run.points[run.basePoint].label;
    /** @type {[string, keyof SentenceRow, string][]} label, key and meaning of the columns of scores */
    const columns = [
      [run.run.sentenceMetric, "score", "score of the 1-best (score in conditions); larger is better"],
      ["change", "change", `score of the 1-best minus that of the 1-best at the weights of ${base}`],
      ["loss", "loss", "score of the best hypothesis (oracle) minus that of the 1-best"],
    ];
    const header = [
      head("sentence", "sentence", "Sentence id"),
      "1-best",
      ...(hasScores ? columns.map(([label, key, meaning]) => head(label, key, meaning)) : []),
      head("length", "length", "Number of words of the 1-best"),
    ];
    const body = rows.slice(page * PAGE, (page + 1) * PAGE).map((row) => {
      const name = run.lists.name(row.sentence);
      return [
        button(name, () => open(row.sentence), { "aria-label": `Open sentence ${name}`, "data-sentence": row.sentence }),
        element("bdi", {}, row.row < 0 ? "(empty list)" : run.lists.text(row.sentence, row.row)),
        ...(hasScores ? [formatScore(row.score), row.change === 0 ? "" : formatDifference(row.change), formatScore(row.loss)] : []),
        String(row.length),
      ];
    });
    const pager = element("div", { class: "tools" },
      button("Previous", () => turn(page - 1), { disabled: page === 0 }),
      ` page ${page + 1} of ${pages} `,
      button("Next", () => turn(page + 1), { disabled: page >= pages - 1 }));
    const rendered = table([header, ...body], { left: 2, sentences: [1] });
    const heads = rendered.querySelectorAll("th");
    const keys = ["sentence", "", ...(hasScores ? NUMBERS : ["length"])];
    keys.forEach((key, k) => {
      if (key === order.key) heads[k].setAttribute("aria-sort", order.isDown ? "descending" : "ascending");
    });
    replaceChildren(list, rendered, pages > 1 && pager, hasScores && element("p", { class: "note" },
      columns.map(([label, , meaning]) => `${label}: ${meaning}.`).join(" ")));
  }

  /** @param {number} page */
  function turn(page) {
    session.tablePage = page;
    keepFocus(list, session.notify.bind(session));
  }

  /** @param {number} sentence */
  function open(sentence) {
    session.open(sentence);
    session.notify();
    detail.focus({ preventScroll: true });
    // The start of what may be higher than the window.
    detail.querySelector("h3")?.scrollIntoView({ block: "nearest" });
  }

  /** Close the sentence, and return to its row. */
  function close() {
    const { sentence } = session;
    const place = findPlace(sentence);
    if (place >= 0) session.tablePage = Math.floor(place / PAGE);
    session.open(-1);
    session.notify();
    const row = /** @type {HTMLElement | null} */ (list.querySelector(`[data-sentence="${sentence}"]`));
    (row ?? search).focus();
  }

  /** Place of the first hypothesis of the present page, in the order of ranks. */
  let first = 0;
  let shownSentence = -1;

  /** @param {RunSession} run */
  function showDetail(run) {
    const sentence = session.sentence;
    detail.hidden = sentence < 0;
    if (sentence < 0) {
      replaceChildren(detail);
      return;
    }
    if (shownSentence !== sentence) first = 0;
    shownSentence = sentence;
    detail.setAttribute("aria-label", `Sentence ${run.lists.name(sentence)}`);
    const start = run.lists.offsets[sentence];
    const place = findPlace(sentence);
    /** @param {number} to place in the table, on the page that it then shows */
    const move = (to) => {
      session.tablePage = Math.floor(to / PAGE);
      session.open(rows[to].sentence);
      keepFocus(detail, session.notify.bind(session));
    };
    replaceChildren(detail, renderSentence(run, sentence, {
      selected: session.hypothesis < 0 ? null : start + session.hypothesis,
      against: session.against,
      first,
      turn: (place) => {
        first = place;
        keepFocus(detail, () => showDetail(run));
      },
      select: (row) => {
        session.hypothesis = row - start;
        keepFocus(detail, session.notify.bind(session));
      },
      compare: (place) => {
        session.against = place;
        keepFocus(detail, session.notify.bind(session));
      },
      previous: place > 0 ? () => move(place - 1) : null,
      next: place + 1 < rows.length ? () => move(place + 1) : null,
      close,
    }));
  }

  return {
    node,
    open,
    update: () => {
      const run = session.run;
      tools.hidden = run === null;
      if (run === null) {
        replaceChildren(message, describeMissingLists(session.document));
        replaceChildren(list);
        replaceChildren(detail);
        return;
      }
      if (run !== compared) chooseVectors(run);
      showVectors();
      if (search.value !== session.search) search.value = session.search;
      if (filter.value !== session.filter) filter.value = session.filter;
      select.selectedIndex = Math.max(0, FIELDS.indexOf(session.field));
      changed.checked = session.onlyChanged;
      for (const option of select.options) {
        option.disabled = (option.value === "source" && run.lists.sources === null) ||
          (option.value === "reference" && !run.lists.references.length);
      }
      chooseRows(run);
      showDetail(run);
      showList(run);
    },
  };
}

/** @param {RunSession} run @returns {SentenceRow[]} */
function listSentences(run) {
  const { sentenceScores: scores, oracles, lists } = run;
  return lists.sentences.map((sentence) => {
    const row = run.present.choice[sentence];
    const base = run.base.choice[sentence];
    const score = scores === null || row < 0 ? NaN : scores[row];
    return {
      sentence,
      row,
      score,
      change: scores === null || row < 0 ? NaN : score - scores[base],
      loss: scores === null || oracles === null || row < 0 ? NaN : scores[oracles[sentence]] - score,
      length: row < 0 ? 0 : lists.lengths[row],
    };
  });
}

/** @param {SentenceRow} row @returns {SentenceRow} with the scores as the table shows them */
function roundScores(row) {
  const [score, change, loss] = [row.score, row.change, row.loss].map((value) => Number(formatScore(value)));
  return { ...row, score, change, loss };
}

/** @param {string} sort as in the address @returns {{key: keyof SentenceRow, isDown: boolean}} */
function readOrder(sort) {
  const key = NUMBERS.find((own) => own === sort.replace("-", "")) ?? "sentence";
  return { key, isDown: sort.startsWith("-") };
}

/** @param {SentenceRow} a @param {SentenceRow} b @param {keyof SentenceRow} key @param {boolean} isDown */
function compareRows(a, b, key, isDown) {
  const difference = a[key] - b[key] || 0;
  return (isDown ? -difference : difference) || a.sentence - b.sentence;
}

/**
 * Return the sentences in which the searched expression occurs; null: all.
 * @param {Session} session
 * @param {RunSession} run
 * @returns {{sentences: Set<number> | null, error: string | null}}
 */
function searchSentences(session, run) {
  if (session.search === "") return { sentences: null, error: null };
  let pattern;
  try {
    pattern = new RegExp(session.search, "iu");
  } catch (error) {
    return { sentences: null, error: `Not a regular expression: ${/** @type {Error} */ (error).message}` };
  }
  const { lists } = run;
  /** @param {number} sentence @returns {string[]} */
  const textsOf = (sentence) => {
    switch (session.field) {
      case "source":
        return lists.sources === null ? [] : [lists.sources[sentence]];
      case "reference":
        return lists.references.map((lines) => lines[sentence]);
      case "any hypothesis":
        return lists.texts(sentence);
      default: {
        const row = run.present.choice[sentence];
        return row < 0 ? [] : [lists.text(sentence, row)];
      }
    }
  };
  const sentences = new Set();
  for (const sentence of lists.sentences) {
    if (textsOf(sentence).some((text) => pattern.test(text))) sentences.add(sentence);
  }
  return { sentences, error: null };
}

/**
 * @param {RunSession} run
 * @param {number} sentence
 * @param {{selected: number | null, against: number, first: number,
 *   select: (row: number) => void, turn: (first: number) => void,
 *   compare: (place: number) => void, previous: (() => void) | null, next: (() => void) | null,
 *   close: () => void}} actions `previous` and `next` go through the table
 */
function renderSentence(run, sentence, actions) {
  const { lists, present, sentenceScores } = run;
  const start = lists.offsets[sentence];
  const texts = lists.texts(sentence);
  const rows = texts.map((_, k) => start + k).sort((a, b) => present.scores[b] - present.scores[a] || a - b);
  const roles = findRoles(run, sentence);
  const best = present.choice[sentence];
  const oracle = rows.find((row) => roles.get(row)?.includes("oracle"));
  const other = actions.selected ?? oracle ?? rows[1] ?? best;
  const references = lists.references.map((lines) => lines[sentence]);
  /** @param {number} row */
  const textOf = (row) => texts[row - start];
  const targets = ["1-best", ...references.map((_, k) => references.length > 1 ? `reference ${k + 1}` : "reference")];
  const place = Math.min(actions.against, targets.length - 1);
  const target = place === 0 ? (best < 0 ? "" : textOf(best)) : references[place - 1];
  const name = lists.name(sentence);
  const head = element("div", { class: "tools" },
    element("h3", {}, `Sentence ${name}`),
    button("Previous", () => actions.previous?.(), { disabled: actions.previous === null }),
    button("Next", () => actions.next?.(), { disabled: actions.next === null }),
    button("Close", actions.close));
  /** @type {[string, string | Node[]][]} */
  const parts = [];
  if (lists.sources !== null) parts.push(["source", lists.sources[sentence]]);
  references.forEach((text, k) => parts.push([targets[k + 1], text]));
  if (best < 0) {
    return [head, renderParts(parts), element("p", { class: "note" }, "No hypotheses.")];
  }
  parts.push(["1-best", references.length ? markWords(textOf(best), references[0]) : textOf(best)]);
  if (references.length) {
    parts.push(["", "Words that only the 1-best has are underlined, those that only the reference has are struck out."]);
  }
  // Hypotheses with a role are on every page.
  const first = Math.min(actions.first, Math.floor((rows.length - 1) / HYPOTHESES) * HYPOTHESES);
  const shown = rows.filter((row, k) =>
    (k >= first && k < first + HYPOTHESES) || roles.has(row) || row === actions.selected);
  const ranks = new Map(rows.map((row, k) => [row, k + 1]));
  const body = shown.map((row) => [
    button(String(ranks.get(row)), () => actions.select(row), {
      "aria-pressed": String(row === other), "aria-label": `Compare hypothesis ${ranks.get(row)} with the 1-best`,
      "data-row": row,
    }),
    element("bdi", {}, place === 0 && row === best ? textOf(row) : markWords(textOf(row), target)),
    (roles.get(row) ?? []).join(", "),
    formatFixed(present.scores[row], 4),
    ...(sentenceScores === null ? [] : [formatScore(sentenceScores[row])]),
    listRanks(run, row),
  ]);
  const { node: against, select } = choice("Differences to the", targets, actions.compare, { "data-role": "against" });
  select.selectedIndex = place;
  const header = ["rank", "hypothesis", "role", "model score",
    ...(sentenceScores === null ? [] : [run.run.sentenceMetric]), "iteration: rank"];
  return [
    head,
    renderParts(parts),
    renderShares(run, best, other, ranks, roles),
    element("div", { class: "tools" }, against, rows.length > HYPOTHESES && makePager(rows, first, actions)),
    table([header, ...body], { left: 3, last: true, sentences: [1] }),
    sentenceScores !== null && element("p", { class: "note" },
      `oracle: the highest ${run.run.sentenceMetric}. hope, fear: the highest model score (at weights with an L1 norm of 1) ` +
      `plus, or minus, ${run.run.sentenceMetric}. iteration: rank: its ranks in the n-best lists.`),
  ];
}

/**
 * Return buttons that turn pages, and a field that selects a hypothesis by its rank.
 * @param {number[]} rows by rank
 * @param {number} first place of the first on the page
 * @param {{select: (row: number) => void, turn: (first: number) => void}} actions
 */
function makePager(rows, first, actions) {
  const last = Math.min(first + HYPOTHESES, rows.length);
  const rank = /** @type {HTMLInputElement} */ (element("input", {
    type: "text", inputmode: "numeric", size: 5, "data-role": "rank",
    onchange: () => {
      const place = Number(rank.value) - 1;
      if (!(place in rows)) return;
      actions.turn(place - (place % HYPOTHESES));
      actions.select(rows[place]);
    },
  }));
  return [
    element("span", { role: "group", "aria-label": "Pages of hypotheses" },
      button("Previous ranks", () => actions.turn(first - HYPOTHESES), { disabled: first === 0 }),
      ` ${formatCount(first + 1)} to ${formatCount(last)} of ${formatCount(rows.length)} `,
      button("Next ranks", () => actions.turn(first + HYPOTHESES), { disabled: last === rows.length })),
    element("label", {}, "Compare rank ", rank),
  ];
}

/** @param {[string, string | Node[]][]} parts */
function renderParts(parts) {
  return element("dl", { class: "facts" }, parts.flatMap(([what, content]) => [
    element("dt", {}, what), element("dd", { class: what === "" ? "note" : undefined }, element("bdi", {}, content)),
  ]));
}

/** @param {RunSession} run @param {number} sentence @returns {Map<number, string[]>} roles by row */
export function findRoles(run, sentence) {
  /** @type {Map<number, string[]>} */
  const roles = new Map();
  /** @param {number} row @param {string} role */
  const add = (row, role) => {
    if (row >= 0) roles.set(row, [...(roles.get(row) ?? []), role]);
  };
  const { scores } = run.present;
  add(run.present.choice[sentence], "1-best");
  const own = run.sentenceScores;
  if (own === null) return roles;
  // Hope and fear compare model scores with sentence scores, at weights whose L1 norm is 1.
  const norm = run.present.weights.dense.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
  add(findHighest(run.lists, sentence, (row) => own[row], scores), "oracle");
  add(findHighest(run.lists, sentence, (row) => scores[row] / norm + own[row], scores), "hope");
  add(findHighest(run.lists, sentence, (row) => scores[row] / norm - own[row], scores), "fear");
  return roles;
}

/** @param {RunSession} run @param {number} row @returns {string} as `1:5 2:1` */
function listRanks(run, row) {
  return run.lists.ranks.flatMap((ranks, k) =>
    ranks[row] ? [`${run.run.iterations[k].number}:${ranks[row]}`] : []).join(" ");
}

/**
 * @param {RunSession} run
 * @param {number} best
 * @param {number} other
 * @param {Map<number, number>} ranks
 * @param {Map<number, string[]>} roles
 */
function renderShares(run, best, other, ranks, roles) {
  const { dense } = run.present.weights;
  const names = [...run.run.features];
  const pairs = names.map((_, k) => [best, other].map((row) => dense[k] * run.lists.features[k][row]));
  const { sparse } = run.lists;
  if (sparse !== null) {
    names.push("sparse features");
    pairs.push([best, other].map((row) => computeSparseShare(sparse, run.present.weights, row)));
  }
  const largest = Math.max(...pairs.flat().map(Math.abs)) || 1;
  const isSame = best === other;
  const sizes = pairs.map(([a, b]) => Math.abs(isSame ? a : a - b));
  const order = names.map((_, k) => k).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const second = `rank ${ranks.get(other)}`;
  const role = roles.get(other);
  const named = role === undefined ? second : `${second} (${role.join(", ")})`;
  /** @param {number} value @param {string} kind */
  const bar = (value, kind) => element("span", { class: `bar ${kind}` },
    element("span", { class: value < 0 ? "negative" : "positive", style: `width: ${(50 * Math.abs(value)) / largest}%` }));
  /** @param {string} name @param {number[]} pair @returns {(string | Node)[]} */
  const line = (name, [a, b]) => isSame
    ? [name, formatFixed(a || 0, 4), bar(a, "first")]
    : [name, formatFixed(a || 0, 4), formatFixed(b || 0, 4), formatDifference(a - b),
      element("span", { class: "bars" }, bar(a, "first"), bar(b, "second"))];
  const leading = order.length > SHARES + 1 ? order.slice(0, SHARES) : order;
  const others = order.slice(leading.length);
  const body = leading.map((k) => line(names[k], pairs[k]));
  if (others.length) {
    const sums = [0, 1].map((side) => others.reduce((sum, k) => sum + pairs[k][side], 0));
    body.push([`${formatCount(others.length)} others`,
      ...(isSame ? sums.slice(0, 1) : sums).map((sum) => formatFixed(sum || 0, 4)),
      ...(isSame ? [] : [formatDifference(sums[0] - sums[1])]), ""]);
  }
  /** @param {number} row */
  const total = (row) => formatFixed(run.present.scores[row], 4);
  body.push(isSame ? ["model score", total(best), ""]
    : ["model score", total(best), total(other),
      formatDifference(run.present.scores[best] - run.present.scores[other]), ""]);
  /** @param {string} name @param {string} kind of its bars */
  const key = (name, kind) => element("span", {}, element("span", { class: `key ${kind}` }), name);
  const header = isSame ? ["weight × value", "1-best", ""]
    : ["weight × value", key("1-best", "first"), key(second, "second"), "lead", "shares"];
  return element("div", { class: "shares" },
    element("h4", {}, isSame ? "What the model score consists of" : `Why the 1-best wins over ${named}`),
    table([header, ...body], { last: true }),
    others.length > 0 && reveal(`The ${formatCount(others.length)} others`, () =>
      table([header, ...others.map((k) => line(names[k], pairs[k]))], { last: true })));
}
