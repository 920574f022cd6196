// Elements of the page. Texts of data are only ever text nodes.

import { compareWords } from "./words.js";

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Record<string, any>} Attributes names of attributes; `onclick` and the like are
 *   listeners, false and undefined leave an attribute out
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an HTML element.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Return an SVG element.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function drawing(tag, attributes = {}, ...children) {
  return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} node
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 * @returns {E}
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) {
      node.setAttribute(name, String(value));
    }
  }
  append(node, children);
  return node;
}

/** @param {Element} node @param {(Child | Child[])[]} children */
function append(node, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} node @param {...(Child | Child[])} children */
export function replaceChildren(node, ...children) {
  node.textContent = "";
  append(node, children);
}

/**
 * Redraw a node; the control that had the keyboard focus keeps it, or if it is disabled, a button
 * beside it gets it.
 * @param {HTMLElement} node
 * @param {() => void} render
 */
export function keepFocus(node, render) {
  const active = /** @type {HTMLElement} */ (document.activeElement);
  const label = node.contains(active) ? nameControl(active) : null;
  render();
  if (label === null) return;
  const controls = /** @type {HTMLElement[]} */ ([...node.querySelectorAll("button, input, select, summary")]);
  const same = controls.find((control) => nameControl(control) === label);
  const target = /** @type {HTMLElement | null | undefined} */ (same?.matches(":disabled") ? same.parentElement?.querySelector("button:enabled") : same);
  target?.focus({ preventScroll: true });
}

/** @param {HTMLElement} control @returns {string} a name that it still has after redrawing */
function nameControl(control) {
  return control.dataset.role ?? (control.title || control.ariaLabel || control.textContent || "");
}

/**
 * Return a button.
 * @param {string} label
 * @param {() => void} onclick
 * @param {Attributes} [attributes]
 */
export function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, label);
}

/**
 * Say whether a button does something now; unlike a disabled one, it keeps the keyboard focus.
 * @param {HTMLElement} node
 * @param {boolean} isActive
 */
export function activate(node, isActive) {
  node.setAttribute("aria-disabled", String(!isActive));
}

/**
 * Return a labeled choice.
 * @param {string} label
 * @param {string[]} options
 * @param {(place: number) => void} onchange
 * @param {Attributes} [attributes]
 * @returns {{node: HTMLElement, select: HTMLSelectElement}}
 */
export function choice(label, options, onchange, attributes = {}) {
  const select = /** @type {HTMLSelectElement} */ (
    element(
      "select",
      { ...attributes, onchange: () => onchange(select.selectedIndex) },
      options.map((option) => element("option", {}, option)),
    )
  );
  return { node: element("label", {}, `${label} `, select), select };
}

/**
 * Return a closed section whose content is made when it is first opened.
 * @param {string} label
 * @param {() => Node} make
 * @returns {HTMLElement}
 */
export function reveal(label, make) {
  const details = element("details", {
    ontoggle: () => details.childElementCount === 1 && details.append(make()),
  }, element("summary", {}, label));
  return details;
}

/**
 * Return a table whose first row is its head.
 * @param {Child[][]} rows
 * @param {{left?: number, last?: boolean, sentences?: number[]}} [layout] number of columns of text
 *   on the left, whether the last is text, too, and the columns of sentences: on a phone, each is a
 *   line of its own below the other cells
 */
export function table(rows, { left = 1, last = false, sentences = [] } = {}) {
  const [head, ...body] = rows;
  const isStacked = sentences.length > 0;
  /** @param {string} name a role that a table loses when its cells are stacked */
  const role = (name) => isStacked ? name : undefined;
  /** @param {number} k @param {Child[]} row */
  const classOf = (k, row) =>
    sentences.includes(k) ? "words" : k < left || (last && k === row.length - 1) ? undefined : "n";
  /** @param {Child[]} row */
  const headLine = (row) => element("tr", { role: role("row") }, row.map((cell, k) =>
    element("th", { class: classOf(k, row), scope: "col", role: role("columnheader") }, cell)));
  /** @param {Child[]} row */
  const line = (row) => element("tr", { role: role("row") }, row.map((cell, k) =>
    element("td", { class: classOf(k, row), role: role("cell") }, cell)));
  return element(
    "div",
    { class: "wide" },
    element(
      "table",
      { class: role("stacked"), role: role("table") },
      element("thead", { role: role("rowgroup") }, headLine(head)),
      element("tbody", { role: role("rowgroup") }, body.map(line)),
    ),
  );
}

/** @param {string} text @param {string} other @returns {Node[]} the text with its differences marked */
export function markWords(text, other) {
  return compareWords(text, other).flatMap(({ kind, word }) => [
    kind === "same" ? document.createTextNode(word)
      : element(kind === "added" ? "ins" : "del", {}, word),
    document.createTextNode(" "),
  ]);
}
