// Tests of lib/views.js: the saved views of the list of tasks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, putView, readViews, sameView } from "../assets/lib/views.js";

const view = (name, q = "") => ({ name, q, sort: "", group: "none", hide: "none" });
const names = (list) => list.map((v) => v.name);

test("what is broken is left out", () => {
  for (const text of ["", "null", "{}", "[", '"x"', "[1, null, {}]", '[{"name":"a"}]']) assert.deepEqual(readViews(text), [], text);
  const good = view("a");
  assert.deepEqual(readViews(JSON.stringify([good, { ...good, q: 1 }, { ...good, name: "" }, { ...good, name: "x".repeat(41) }])), [good]);
  assert.equal(readViews(JSON.stringify(Array.from({ length: 30 }, (_, i) => view(`v${i}`)))).length, 20);
});

test("a name has at most forty letters", () => {
  assert.equal(nameOf("  mine "), "mine");
  assert.equal(nameOf("é".repeat(50)), "é".repeat(40));
  assert.equal([...nameOf("🚂".repeat(50))].length, 40);
});

test("one is added, replaced, and renamed where it stands", () => {
  const list = [view("a", "1"), view("b", "2"), view("c", "3")];
  assert.deepEqual(names(putView(list, view("d"))), ["a", "b", "c", "d"]);
  assert.deepEqual(putView(list, view("b", "new")), [list[0], view("b", "new"), list[2]]);
  assert.deepEqual(names(putView(list, view("x", "1"), "a")), ["x", "b", "c"]);
  assert.deepEqual(names(putView(list, view("c", "1"), "b")), ["a", "c"]);
});

test("there are at most twenty", () => {
  const full = Array.from({ length: 20 }, (_, i) => view(`v${i}`));
  assert.equal(putView(full, view("one more")), null);
  assert.equal(putView(full, view("v3", "new")).length, 20);
});

test("two show the same, whatever they are called", () => {
  assert.ok(sameView(view("a"), view("b")));
  assert.ok(!sameView(view("a"), view("a", "state:failed")));
  assert.ok(!sameView(view("a"), { ...view("a"), hide: "took" }));
});
