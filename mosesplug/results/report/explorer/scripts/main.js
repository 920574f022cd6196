// The page: tabs, and the state in its address.

import { makeCurvesView } from "./curves_view.js";
import { RunLists } from "./data.js";
import { choice, element, replaceChildren } from "./elements.js";
import { makeRunsView } from "./runs_view.js";
import { makeSentencesView } from "./sentences_view.js";
import { RunSession, Session } from "./session.js";
import { decodeState, encodeState } from "./state.js";
import { makeWeightsView } from "./weights_view.js";

/** Show the page in place of the static report, which stays a tab and is printed. */
async function main() {
  const node = /** @type {HTMLElement} */ (document.getElementById("explorer"));
  const report = /** @type {HTMLElement} */ (document.getElementById("report"));
  document.body.classList.add("scripted");
  replaceChildren(node, element("p", { role: "status" }, "Unpacking the lists …"));
  /** @type {import("./data.js").PageDocument} */
  const page = JSON.parse(document.getElementById("explorer-data")?.textContent ?? "");
  const lists = await Promise.all(page.runs.map((run) => RunLists.read(run)));
  const runs = page.runs.map((run, k) => {
    const own = lists[k];
    return own === null ? null : new RunSession(run, own);
  });
  const session = new Session(page, runs);
  show(session, node, report);
}

/** @param {Session} session @param {HTMLElement} node @param {HTMLElement} report */
function show(session, node, report) {
  /** @param {number} sentence */
  const openSentence = (sentence) => {
    session.tab = "sentences";
    sentences.open(sentence);
  };
  const sentences = makeSentencesView(session);
  const hasSeveral = session.page.runs.length > 1;
  /** @type {[string, string, {node: HTMLElement, update: () => void}][]} */
  const tabs = [
    ["weights", "Weights", makeWeightsView(session, openSentence)],
    ["sentences", "Sentences", sentences],
    ["curves", "Curves", makeCurvesView(session)],
  ];
  if (hasSeveral) {
    const view = makeRunsView(session, (run, sentence) => {
      session.place = run;
      openSentence(sentence);
    });
    tabs.push(["runs", "Runs", view]);
  }
  tabs.push(["report", "Report", { node: report, update: () => {} }]);
  const buttons = tabs.map(([name, label]) => element("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`,
    onclick: () => choose(name),
    onkeydown: (/** @type {KeyboardEvent} */ event) => moveTab(event),
  }, label));
  const panels = tabs.map(([name, , view]) => element("div", {
    role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: `panel-${name}`,
  }, view.node));
  const { node: chooser, select } = choice("Run", session.page.runs.map((run) => run.name), (place) => {
    session.place = place;
    session.open(-1);
    session.notify();
  }, { "data-role": "run" });
  replaceChildren(node,
    element("div", { class: "views" },
      element("div", { role: "tablist", "aria-label": "Views" }, buttons),
      hasSeveral && chooser),
    panels);

  /** @param {string} name */
  function choose(name) {
    session.tab = name;
    session.notify();
  }
  /** @param {KeyboardEvent} event */
  function moveTab(event) {
    // Alt and an arrow are the browser's.
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    const move = moves[/** @type {"ArrowLeft"} */ (event.key)];
    if (move === undefined) return;
    event.preventDefault();
    const at = tabs.findIndex(([name]) => name === session.tab);
    const to = (at + move + tabs.length) % tabs.length;
    choose(tabs[to][0]);
    buttons[to].focus();
  }
  let written = "";
  function update() {
    if (!tabs.some(([name]) => name === session.tab)) session.tab = "weights";
    select.selectedIndex = session.place;
    // The other views show all runs.
    chooser.hidden = !["weights", "sentences"].includes(session.tab);
    tabs.forEach(([name, , view], k) => {
      const isShown = name === session.tab;
      buttons[k].setAttribute("aria-selected", String(isShown));
      buttons[k].tabIndex = isShown ? 0 : -1;
      panels[k].classList.toggle("away", !isShown);
      if (isShown) view.update();
    });
    clearTimeout(timer);
    timer = setTimeout(writeAddress, 100);
  }
  let timer = 0;
  /** Browsers ignore addresses that change in every frame. */
  function writeAddress() {
    written = `#${encodeState(session.state)}`;
    try {
      history.replaceState(null, "", written);
    } catch {
      // A page inside a notebook may have no address.
    }
  }
  function follow() {
    const fragment = location.hash;
    if (fragment === written || fragment === "") return;
    if (fragment.includes("=")) {
      session.restore(decodeState(fragment, session.runs.length));
      session.notify();
      return;
    }
    // A heading of the static report.
    choose("report");
    document.getElementById(fragment.slice(1))?.scrollIntoView();
  }
  session.listeners.push(update);
  addEventListener("hashchange", follow);
  if (location.hash === "") session.notify();
  else follow();
  document.body.dataset.ready = "yes";
}

main().catch((error) => {
  document.body.classList.remove("scripted");
  const node = /** @type {HTMLElement} */ (document.getElementById("explorer"));
  replaceChildren(node, element("p", { class: "warning" }, `This browser cannot show the lists: ${error.message}`));
  document.body.dataset.ready = "no";
});
