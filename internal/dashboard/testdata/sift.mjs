// Tests of lib/sift.js: lists that are filtered and put in order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasWords, sorted } from "../assets/lib/sift.js";

test("all words of a filter are in the text, in any order", () => {
  for (const filter of ["", "  ", "coder", "CODE run", " running  coder "]) assert.ok(hasWords("coder\nrunning", filter), filter);
  for (const filter of ["writer", "coder writer"]) assert.ok(!hasWords("coder\nrunning", filter), filter);
});

const list = [{ id: 1, n: 5 }, { id: 2 }, { id: 3, n: 7 }, { id: 4, n: 5 }];
const order = (sort) => sorted(list, sort, { n: (i) => i.n }).map((i) => i.id).join("");

test("a list by a value, either way; what has none comes last, and equals stay as they are", () => {
  assert.equal(order("n"), "1432");
  assert.equal(order("-n"), "3142");
});

test("an order that is not known changes nothing", () => {
  for (const sort of ["", "-", "x", "__proto__"]) assert.equal(order(sort), "1234", sort);
});
