// Tests of the texts and requests for worktrees.
import assert from "node:assert/strict";
import { test } from "node:test";
import { discardPath, lostOf, sizeText, stateText, toneOf } from "../assets/parts/workspace-words.js";

test("sizes are for people", () => {
  assert.deepEqual([0, 1023, 1024, 1572864, 3 * 2 ** 30].map((n) => sizeText(n)), ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "3.0 GiB"]);
  assert.equal(sizeText(2048, true), "over 2.0 KiB");
});

test("a state says how much there is", () => {
  assert.equal(stateText({ state: "uncommitted", files: 1 }), "1 file not committed");
  assert.equal(stateText({ state: "unlanded", commits_count: 2 }), "2 commits not landed");
  assert.equal(stateText({ state: "in_use" }), "in use");
  assert.deepEqual(["unlanded", "landed", "empty", "unknown"].map((state) => toneOf({ state })), ["warn", "good", "quiet", "bad"]);
});

test("what would be lost depends on the branch", () => {
  const w = { agent: "a/b", name: "x y", branch: "signalbox/x", files: 3, uncommitted: ["one", "two"], commits_count: 1, commits: ["1234567 c"], seen: "s&1" };
  assert.deepEqual(lostOf(w, false), [{ head: "3 uncommitted files would be lost:", lines: ["one", "two"], more: "and 1 more" }]);
  assert.deepEqual(lostOf(w, true)[1], { head: "1 commit of signalbox/x would be lost:", lines: ["1234567 c"], more: "" });
  assert.deepEqual(lostOf({ files: 0 }, true), []);
  assert.equal(discardPath(w, true), "/api/agents/a%2Fb/workspaces/x%20y?seen=s%261&delete_branch=true");
  assert.equal(discardPath({ agent: "a", name: "b" }, false), "/api/agents/a/workspaces/b?");
});
