// Tests of parts/listing.js: how a list is sorted and filtered.
import assert from "node:assert/strict";
import { test } from "node:test";

const { filtered, sorted } = await import("../assets/parts/listing.js");

const columns = [{ name: "name", by: (x) => x.name }, { name: "when", by: (x) => x.when }, { name: "count", by: (x) => x.count }, { name: "do" }];
const names = (list) => list.map((x) => x.name).join(" ");
const list = [{ name: "b10", when: "2026-02", count: 2 }, { name: "b9", count: 10 }, { name: "A", when: "2026-01" }];

test("texts are sorted as people count, numbers as numbers", () => {
  assert.equal(names(sorted(list, columns, "name")), "A b9 b10");
  assert.equal(names(sorted(list, columns, "-name")), "b10 b9 A");
  assert.equal(names(sorted(list, columns, "count")), "b10 b9 A");
});

test("what has no value stands last, rising and falling", () => {
  assert.equal(names(sorted(list, columns, "when")), "A b10 b9");
  assert.equal(names(sorted(list, columns, "-when")), "b10 A b9");
});

test("what is equal, or sorted by no column there is, goes by the first one", () => {
  const equal = [{ name: "c", count: 1 }, { name: "a", count: 1 }];
  assert.equal(names(sorted(equal, columns, "-count")), "a c");
  for (const sort of ["", "nonsense", "do", "-__proto__"]) assert.match(names(sorted(list, columns, sort)), /^(A b9 b10|b10 b9 A)$/);
});

test("a filter wants all words, in any order and case", () => {
  const text = (x) => `${x.name} of the night`;
  assert.equal(names(filtered(list, "NIGHT b", text)), "b10 b9");
  assert.equal(names(filtered(list, "  ", text)), "b10 b9 A");
  assert.equal(names(filtered(list, "day", text)), "");
});
