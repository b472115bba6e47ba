// SPDX-License-Identifier: Apache-2.0
// Opens akaion_verify.html under Node with a book in it, as `akaion trace open` makes it, and prints what a reader
// sees as JSON: {"facts": {name: fact}, "sends": text, "rows": [text, ...], "trust": [[step, ...], ...]}, a row and
// its steps for each record. The job, on standard input, is {"files": [[name, base64], ...], "pin": text}. Owns a
// document that is just enough for the page. What should be shown is the tests' to know.
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { runInThisContext } = require("node:vm");

class Element {
  constructor(name) {
    Object.assign(this, { name, children: [], attributes: {}, listeners: {}, value: "", nextSibling: null });
    this.classList = { add() {}, remove() {} };
  }

  setAttribute(key, value) { this.attributes[key] = value; }
  addEventListener(event, listener) { this.listeners[event] = listener; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  after(element) { this.opened = element; }
  get textContent() { return this.children.map((child) => child.textContent ?? child).join(" "); }
  set textContent(text) { this.children = [text]; }

  find(name) {
    const inside = this.children.filter((child) => child instanceof Element).flatMap((child) => child.find(name));
    return this.name === name ? [this, ...inside] : inside;
  }
}

const { files, pin } = JSON.parse(readFileSync(0, "utf8"));
const elements = new Map();
const byId = (id) => elements.get(id) ?? elements.set(id, new Element(id)).get(id);
globalThis.document = { getElementById: byId, createElement: (name) => new Element(name), addEventListener() {} };
byId("book").textContent = JSON.stringify({ files });
byId("pin").value = pin;
const page = readFileSync(join(__dirname, "..", "akaion_verify.html"), "utf8");
for (const [, script] of page.matchAll(/<script>([^]*?)<\/script>/g)) runInThisContext(script, "akaion_verify.html");

const out = byId("out"), [verdict, , , sends] = out.children;
const rows = out.find("tr").filter(({ attributes }) => attributes.class === "pick");
const steps = (row) => {
  row.listeners.click({ currentTarget: row });
  return row.opened.find("li").map((step) => step.textContent);
};
console.log(JSON.stringify({
  facts: Object.fromEntries(verdict.find("tr").slice(1).map(({ children }) => children.map((cell) => cell.textContent))),
  sends: sends.textContent ?? sends,
  rows: rows.map((row) => row.textContent),
  trust: rows.map(steps),
}));
