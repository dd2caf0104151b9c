// Tests of lib/complete.js: completion in a query.
import assert from "node:assert/strict";
import { test } from "node:test";
import { complete, unfinished } from "../assets/lib/complete.js";

const keys = [
  { key: "state", text: "a state", values: ["completed", "failed", "cancelled"] }, { key: "source", text: "its way" },
  { key: "agent", text: "that runs it" }, { key: "since", text: "when", examples: ["1h", "24h"] },
];
const more = (key) => ({ agent: ["coder", "code reviewer", "writer", "coder"], source: [["cli", "the command line"]] }[key] ?? []);

// after is the query after accepting the first option with this beginning; | is the caret.
const after = (marked, option) => {
  const caret = marked.indexOf("|"), text = marked.replace("|", "");
  const found = complete(text, caret, keys, more), one = found.options.find((o) => o.text.startsWith(option));
  assert.ok(one, `${marked}: ${JSON.stringify(found.options)}`);
  return `${text.slice(0, found.from)}${one.text}|${text.slice(found.to)}`;
};
const options = (marked) => complete(marked.replace("|", ""), marked.indexOf("|"), keys, more).options.map((o) => o.text);

test("a key, by its beginning, with what it means", () => {
  assert.deepEqual(options("s|"), ["state:", "source:", "since:"]);
  assert.deepEqual(options("|"), ["state:", "source:", "agent:", "since:"]);
  assert.equal(complete("ag", 2, keys, more).options[0].note, "that runs it");
  assert.deepEqual(options("billing|"), []);
  assert.equal(after("billing st| since:1h", "state"), "billing state:| since:1h");
  assert.equal(after("-a|", "agent"), "-agent:|");
});

test("a value, those that begin so first", () => {
  assert.deepEqual(options("state:c|"), ["completed", "cancelled"]);
  assert.deepEqual(options("state:el|"), ["cancelled"]);
  assert.deepEqual(options("since:|"), ["1h", "24h"]);
  assert.equal(after("STATE:FA|", "failed"), "STATE:failed|");
  assert.deepEqual(options("agent:w|"), ["writer", '"code reviewer"']);
  assert.equal(after("agent:|x since:1h", "writer"), "agent:writer| since:1h");
});

test("further values leave out those that are there", () => {
  assert.deepEqual(options("state:failed,|"), ["completed", "cancelled"]);
  assert.equal(after("state:failed,com|", "completed"), "state:failed,completed|");
});

test("a value with a blank is in quotes, and goes on there", () => {
  assert.equal(after("agent:rev|", '"'), 'agent:"code reviewer"|');
  assert.equal(after('agent:"code rev|', '"'), 'agent:"code reviewer"|');
});

test("nothing where nothing is known, or is there already", () => {
  assert.deepEqual(options("state:failed|"), []);
  assert.deepEqual(options("nokey:x|"), []);
  assert.deepEqual(options('"st|'), []);
  assert.deepEqual(options('"a state:f|'), []);
});

test("the caret says which word", () => {
  assert.equal(after("sta| agent:x", "state"), "state:| agent:x");
  assert.deepEqual(options("state:failed agent:|"), ["coder", '"code reviewer"', "writer"]);
});

test("a query whose value is missing is not finished", () => {
  for (const text of ["state:", "a state:failed,", "-agent:"]) assert.ok(unfinished(text), text);
  for (const text of ["", "state:failed", '"a:"', ":"]) assert.ok(!unfinished(text), text);
});
