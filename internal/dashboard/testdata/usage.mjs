// Tests of pages/usage-days.js: days of a range, and the searches behind figures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, dayBefore, searchOf } from "../assets/pages/usage-days.js";
import { money, tokens } from "../assets/lib/money.js";

const range = { from: "2026-02-27", to: "2026-03-02" };

test("a day before another, over months and years", () => {
  assert.equal(dayBefore("2026-03-01", 1), "2026-02-28");
  assert.equal(dayBefore("2026-01-01", 1), "2025-12-31");
  assert.equal(dayBefore("2026-03-01", -1), "2026-03-02");
  assert.equal(dayBefore("2026-03-30", 29), "2026-03-01"); // over a change of the clocks
});

test("days without runs are columns of nothing", () => {
  const [seconds, values] = columnsOf({ ...range, rows: [{ name: "2026-02-28", cost_usd: 2 }, { name: "2026-03-02", cost_usd: 0.5 }] }, (row) => row.cost_usd);
  assert.deepEqual(values, [0, 2, 0, 0.5]);
  assert.equal(seconds[1] * 1000, Date.parse("2026-02-28"));
});

test("the search behind a row", () => {
  const times = "state:ended since:2026-02-27 until:2026-03-03";
  assert.equal(searchOf(range, "agent", "coder", {}), `agent:coder ${times}`);
  assert.equal(searchOf(range, "schedule", "nightly", { agent: "coder" }), `agent:coder source:scheduler job:nightly ${times}`);
  assert.equal(searchOf(range, "schedule", "", {}), `-source:scheduler ${times}`);
  assert.equal(searchOf(range, "user", "user:ann", {}), `by:user:ann ${times}`);
});

test("no search where none can say it", () => {
  assert.equal(searchOf(range, "model", "opus", {}), "");
  assert.equal(searchOf(range, "agent", "coder", { model: "opus" }), "");
  assert.equal(searchOf(range, "agent", "(other)", {}), "");
  assert.equal(searchOf(range, "user", "", {}), "");
});

test("a name is one word of the search", () => {
  assert.equal(searchOf(range, "user", 'x" agent:y', {}).startsWith('by:"x\\" agent:y" '), true);
});

test("amounts", () => {
  assert.equal(money(12.345), "$12.35");
  assert.equal(money(0.0031), "$0.0031");
  assert.equal(money(0), "");
  assert.equal(tokens(940), "940");
  assert.equal(tokens(5_120_400), "5.1M");
});
