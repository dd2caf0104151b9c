// Tests of pages/schedule-words.js: texts about schedules.
import assert from "node:assert/strict";
import { test } from "node:test";

// The clock of the pages ticks for ever; it must not keep the test running.
const tick = globalThis.setInterval;
globalThis.setInterval = (...args) => tick(...args).unref();
globalThis.document = { addEventListener() {}, hidden: true };
const { failedInARow, inZone, markOf, outcomeText, tally } = await import("../assets/pages/schedule-words.js");

test("outcomes are said in words, and counted", () => {
  const runs = [{ outcome: "queued", status: "completed" }, { outcome: "skipped_queue_full", status: "failed" }, { outcome: "queued", status: "completed" }];
  assert.equal(tally(runs), "2 completed; 1 skipped: the queue was full");
  assert.equal(outcomeText({ outcome: "skipped_error", status: "failed", error: "no such agent" }), "not submitted: no such agent");
  assert.equal(outcomeText({ outcome: "skipped_missed", status: "skipped", missed: 3 }), "skipped: its time had passed, 3 before it skipped");
});

test("a schedule fails while its newest tasks do", () => {
  const run = (status, outcome = "queued") => ({ outcome, status });
  assert.equal(failedInARow([]), 0);
  assert.equal(failedInARow([run("running"), run("failed"), run("skipped", "skipped_busy"), run("timeout"), run("completed"), run("failed")]), 2);
  assert.equal(failedInARow([run("completed"), run("failed")]), 0);
  assert.equal(failedInARow([run("failed"), run("failed")]), 2);
});

test("what was left out never looks as if it had been done", () => {
  for (const outcome of ["skipped_queue_full", "skipped_busy", "skipped_missed", "skipped_no_director", "skipped_error"]) {
    assert.notEqual(markOf({ outcome, status: "skipped" })[1], "good", outcome);
  }
  assert.deepEqual(markOf({ outcome: "queued", status: "completed" }), ["check", "good"]);
  assert.deepEqual(markOf({ outcome: "queued", status: "running" }), ["play", "busy"]);
});

test("instants are said in the schedule's zone", () => {
  assert.match(inZone("2025-03-30T01:00:00Z", "Europe/Berlin"), /30 Mar.*03:00/);
  const now = Date.parse("2026-11-27T12:00:00Z");
  assert.doesNotMatch(inZone("2026-12-31T22:59:00Z", "Europe/Berlin", now), /2026/);
  assert.match(inZone("2026-12-31T23:00:00Z", "Europe/Berlin", now), /1 Jan 2027.*00:00/);
  assert.match(inZone("2028-02-29T00:00:00Z", "UTC", now), /29 Feb 2028/);
  assert.match(inZone("2025-03-30T01:00:00Z", "UTC"), /30 Mar.*01:00/);
  assert.ok(inZone("2025-03-30T01:00:00Z", "Nowhere/AtAll"));
});
