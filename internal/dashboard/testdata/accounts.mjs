// Tests of the texts about accounts and parked tasks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, emptyBoard, isWaiting } from "../assets/lib/board.js";

// The clock of the pages ticks for ever; it must not keep the test running.
const tick = globalThis.setInterval;
globalThis.setInterval = (...args) => tick(...args).unref();
globalThis.document = { addEventListener() {}, hidden: true };
const { ahead, clock, local } = await import("../assets/lib/time.js");
const { stepsOf } = await import("../assets/pages/task-steps.js");
const { gateText, stateText, waitsText, whyText } = await import("../assets/parts/account-words.js");

const now = Date.UTC(2026, 0, 31, 12, 0, 0), later = "2026-01-31T12:12:05Z";
const frame = (revision, more) => ({ revision, at: "2026-01-31T12:00:00Z", epoch: "e", ...more });

test("what is closed, in words", () => {
  let board = apply(emptyBoard(), "snapshot", frame(1, { gates: [{ kind: "agent", name: "coder" }] }));
  board = apply(board, "change", frame(2, { accounts: [] }));
  assert.deepEqual(board.gates, [{ kind: "agent", name: "coder" }]);
  assert.deepEqual(apply(board, "change", frame(3, { gates: [] })).gates, []);
  const g = { kind: "agent", text: `agent coder is closed until ${later} (it broke)`, waiting: 2, parked: 0 };
  assert.equal(gateText(g, now), `Agent coder is closed until ${clock(later, now)} (it broke): 2 tasks wait`);
  assert.equal(gateText({ kind: "tool", text: "tool queue github is closed", waiting: 1, parked: 0 }, now), "Tool queue github is closed: 1 call waits");
  assert.equal(gateText({ kind: "time", text: "2 parked tasks go on", waiting: 0, parked: 2 }, now), "2 parked tasks go on");
});

test("the board keeps accounts by name", () => {
  let board = apply(emptyBoard(), "snapshot", frame(1, { accounts: [{ name: "max", state: "open" }, { name: "pro", state: "open" }] }));
  board = apply(board, "change", frame(2, { accounts: [{ name: "max", state: "closed" }], gone: ["account:pro"] }));
  assert.deepEqual([...board.accounts.values()], [{ name: "max", state: "closed" }]);
  assert.equal(isWaiting("parked") && isWaiting("pending") && !isWaiting("working"), true);
});

test("an account says what it lets through, until when and why", () => {
  const a = { state: "closed", until: later, window: "five_hour", reason: "You've hit your limit", source: "event" };
  assert.equal(stateText(a, now), `closed until ${clock(later, now)} (in 12m 05s)`);
  assert.equal(whyText(a, now), `Closed until ${clock(later, now)} (in 12m 05s): five_hour · You've hit your limit · as its agent reported`);
  assert.equal(whyText({ state: "closed", source: "ann" }, now), "Closed until someone opens it: by ann");
  assert.equal(whyText({ state: "signed_out" }, now), "Signed out, a person must log in");
  assert.equal(stateText({ state: "trying" }, now), "being tried, one task goes first");
  assert.equal(ahead("2026-01-31T11:00:00Z", now), clock("2026-01-31T11:00:00Z", now), "what is over is not ahead");
  assert.equal(waitsText({ parked: 0, waiting: 0 }), "");
  assert.equal(waitsText({ parked: 1, waiting: 0 }), "1 task waits, 1 of them parked");
  assert.equal(waitsText({ parked: 0, waiting: 2 }), "2 tasks wait");
});

test("instants in the director's sentences are of this computer's zone", () => {
  assert.equal(local(`account max is closed until ${later} (five_hour)`, now), `account max is closed until ${clock(later, now)} (five_hour)`);
  assert.equal(local("nothing of the kind", now), "nothing of the kind");
});

test("a task that was parked ran, was parked, and ran again", () => {
  const at = (s) => new Date(now + 1000 * s).toISOString();
  const park = { event: "park", agent: "claude", claimed_at: at(10), at: at(30), message: "You've hit your limit" };
  const done = { queue_id: "q", state: "completed", agent: "claude", created_at: at(0), dispatched_at: at(90), started_at: at(90), ended_at: at(95), requeues: [park] };
  assert.deepEqual(stepsOf(done, now).map(({ label, kind, note }) => [label, kind, note]),
    [["Queued", "wait", ""], ["Run on claude", "run", undefined], ["Parked", "wait", "You've hit your limit"], ["Run on claude", "run", undefined]]);
  const parked = { queue_id: "q", state: "parked", created_at: at(0), requeues: [park], waiting_for: { name: "max", text: `account max is closed until ${later}` } };
  const steps = stepsOf(parked, now + 60000);
  assert.deepEqual(steps.at(-1), { label: "Parked", kind: "wait", from: now + 30000, to: now + 60000, note: `account max is closed until ${clock(later, now)}` });
});
