// Tests of the feed, with a fake director.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openFeed } from "../assets/lib/feed.js";

const snapshot = 'id: e.1\nevent: snapshot\ndata: {"revision":1,"at":"2026-01-01T12:00:00Z","epoch":"e","agents":[{"name":"secret"}]}\n\n';

test("who is logged out leaves nothing for who comes next", async () => {
  const asked = [];
  const answers = [() => new Response(snapshot), () => Response.json({ error: "unauthorized" }, { status: 401 }), () => new Response(snapshot)];
  globalThis.fetch = async (path, { headers }) => {
    asked.push(headers["Last-Event-ID"]);
    return (answers[asked.length - 1] ?? (() => new Promise(() => {})))();
  };
  const heard = [];
  let resume;
  const opened = new Promise((done) => { resume = done; });
  const feed = openFeed((message) => {
    heard.push([message.state ?? message.event, feed.board.agents.size]);
    if (asked.length === 3) resume();
  });
  await opened;
  feed.close();
  assert.deepEqual(asked.slice(0, 3), [undefined, "e.1", undefined]);
  assert.deepEqual(heard.slice(0, 4), [["open", 0], ["snapshot", 1], ["broken", 1], ["login", 0]]);
});

test("text that would be shown backwards is shown as it is", async () => {
  const { get } = await import("../assets/lib/api.js");
  const { readEvents } = await import("../assets/lib/sse.js");
  globalThis.fetch = async () => new Response('{"prompt":"a\u202ecod.exe\u05d0"}');
  assert.deepEqual(await get("/api/queue/x"), { prompt: "a\ufffdcod.exe\u05d0" });
  const heard = [];
  await readEvents(new Response('data: {"text":"\u202dx"}\n\n').body, (e) => heard.push(e.data));
  assert.deepEqual(heard, ['{"text":"\ufffdx"}']);
});

test("an answer that comes after the end is told to nobody", async () => {
  let begun, body;
  const reading = new Promise((done) => { begun = done; });
  globalThis.fetch = async () => ({ ok: false, status: 401, json: () => new Promise((answer) => { body = answer; begun(); }) });
  const heard = [];
  const feed = openFeed((message) => heard.push(message));
  await reading;
  feed.close(); // another user logs in meanwhile, with another feed
  body({ error: "unauthorized" });
  await new Promise((done) => setTimeout(done));
  assert.deepEqual(heard, []);
});
