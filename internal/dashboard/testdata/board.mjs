// Tests of the board and the reader of events, without a browser. Run by
// modules_test.go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, emptyBoard } from "../assets/lib/board.js";
import { readEvents } from "../assets/lib/sse.js";

const at = (s) => new Date(Date.UTC(2026, 0, 1, 12, 0, s)).toISOString();
const frame = (revision, more) => ({ revision, at: at(revision), epoch: "e", ...more });
const task = (id, more) => ({ queue_id: id, state: "pending", ...more });

const snapshot = () => apply(emptyBoard(), "snapshot", frame(1, {
  totals: { pending: 2 }, agents: [{ name: "a" }, { name: "b" }], tasks: [task("1"), task("2")], paused: [{ queue: "" }],
  pressure: [{ at: at(0) }, { at: at(10) }],
}));

test("a change replaces what it names and keeps the rest as it was", () => {
  const before = snapshot();
  const after = apply(before, "change", frame(2, { tasks: [task("2", { state: "working" })], gone: ["task:1", "agent:b", "nothing:x", "task:none"] }));
  assert.deepEqual([...after.tasks.values()], [task("2", { state: "working" })]);
  assert.deepEqual([...after.agents.keys()], ["a"]);
  assert.equal(after.queues, before.queues, "what did not change is the same object");
  assert.equal(after.agents.get("a"), before.agents.get("a"));
  assert.equal(after.totals, before.totals);
  assert.deepEqual(after.pauses, [{ queue: "" }]);
  assert.equal(before.tasks.size, 2, "the board before is not touched");
  assert.equal(after.revision, 2);
});

test("an empty list of pauses is news, an absent one is not", () => {
  assert.deepEqual(apply(snapshot(), "change", frame(2, { paused: [] })).pauses, []);
  assert.equal(apply(snapshot(), "change", frame(2, {})).pauses.length, 1);
});

test("a resync forgets all before it", () => {
  const after = apply(snapshot(), "resync", frame(9, { agents: [{ name: "c" }] }));
  assert.deepEqual([...after.agents.keys()], ["c"]);
  assert.equal(after.tasks.size, 0);
});

test("a beat moves the time alone", () => {
  const before = snapshot(), after = apply(before, "beat", frame(2));
  assert.equal(after.at, at(2));
  assert.equal(after.tasks, before.tasks);
  assert.equal(apply(before, "unheard-of", {}), before);
});

test("samples come once, and are let go after half an hour", () => {
  const more = apply(snapshot(), "change", frame(2, { pressure: [{ at: at(10) }, { at: at(20) }] }));
  assert.deepEqual(more.pressure.map((p) => p.at), [at(0), at(10), at(20)]);
  const later = apply(more, "change", frame(3, { pressure: [{ at: at(20 + 1800) }] }));
  assert.deepEqual(later.pressure.map((p) => p.at), [at(20), at(1820)]);
});

test("ended tasks are bounded, those in flight are not", () => {
  const many = Array.from({ length: 2000 }, (_, i) => task(`e${i}`, { state: "completed" }));
  const after = apply(snapshot(), "change", frame(2, { tasks: many }));
  assert.equal(after.tasks.size, 502);
  assert.ok(after.tasks.has("1") && after.tasks.has("e1999") && !after.tasks.has("e0"));
});

test("events are read whole, wherever the bytes are cut", async () => {
  const text = 'retry: 1000\n\n: alive\n\nid: e.1\nevent: change\ndata: {"text":"Grüße ✓"}\n\nevent: beat\r\ndata: 1\r\ndata: 2\r\n\r\nid: e.2\ndata: unended';
  const bytes = new TextEncoder().encode(text);
  for (let cut = 1; cut < bytes.length; cut++) {
    const body = new ReadableStream({ start(c) { c.enqueue(bytes.slice(0, cut)); c.enqueue(bytes.slice(cut)); c.close(); } });
    const events = [];
    await readEvents(body, (e) => events.push(e));
    assert.deepEqual(events, [{ event: "change", id: "e.1", data: '{"text":"Grüße ✓"}' }, { event: "beat", id: "", data: "1\n2" }], `cut at ${cut}`);
  }
});
