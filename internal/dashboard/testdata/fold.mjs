// Tests of lib/fold.js: folding of equal adjacent failures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fold } from "../assets/lib/fold.js";

const list = (causes) => [...causes].map((c, i) => ({ queue_id: String(i), cause: c === "." ? undefined : c }));
// shown writes a task as its id and a group as its ids in brackets.
const shown = (causes, ...open) => fold(list(causes), new Set(open)).map((e) => (e.tasks ? `[${e.tasks.map((t) => t.queue_id).join("")}]` : e.queue_id)).join(" ");

test("two or more alike that stand together are one", () => {
  assert.equal(shown(""), "");
  assert.equal(shown("aab"), "[01] 2");
  assert.equal(shown(".aaa.bb"), "0 [123] 4 [56]");
  assert.equal(shown("a.a"), "0 1 2");
  assert.equal(shown("ab"), "0 1");
});

test("without a cause nothing is alike", () => assert.equal(shown("...."), "0 1 2 3"));

test("an unfolded one has its tasks below it", () => {
  assert.equal(shown("aab", "a"), "[01] 0 1 2");
  assert.equal(shown("aabb", "b"), "[01] [23] 2 3");
});

test("keys differ, also where a cause stands twice", () => {
  const keys = fold(list("aa.aa"), new Set()).map((e) => e.key ?? e.queue_id);
  assert.equal(new Set(keys).size, 3);
});
