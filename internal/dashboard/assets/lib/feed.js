// The feed holds one live stream and the board made of it. It runs in the
// worker that all tabs share, or in the page where there is no such worker.
import { loginHeaders } from "./login.js";
import { apply, emptyBoard } from "./board.js";
import { readEvents } from "./sse.js";

const firstWait = 250, longestWait = 2000; // ms between attempts: a director that is back is seen at once

// openFeed calls tell with messages for the pages:
//   {type: "event", event, data}   an event of the stream, and the board has it already
//   {type: "state", state, error}  open; broken: the stream ended, or an error came, and it is
//                                  asked for again; refused: no answer; login: 401; denied: 403
export const openFeed = (tell) => {
  const over = new AbortController();
  const feed = { board: emptyBoard(), state: { type: "state", state: "opening" }, close: () => over.abort(), last: "" };
  const say = (state, error) => {
    if (over.signal.aborted) return; // an answer that came at last, to whom was here before
    feed.state = { type: "state", state, error };
    tell(feed.state);
  };
  follow(feed, over.signal, say, tell);
  return feed;
};

const follow = async (feed, signal, say, tell) => {
  let wait = firstWait;
  while (!signal.aborted) {
    let answered = false;
    try {
      const answer = await fetch("/api/live", { headers: headersOf(feed), credentials: "same-origin", cache: "no-store", signal });
      answered = true;
      if (!answer.ok) {
        const state = { 401: "login", 403: "denied" }[answer.status] ?? "broken";
        const body = await answer.json().catch(() => ({}));
        if (state !== "broken") {
          wait = longestWait;
          forget(feed); // whoever comes next may be somebody else
        }
        say(state, { code: body.error, message: body.message, request_id: body.request_id });
      } else {
        say("open");
        wait = firstWait;
        await readEvents(answer.body, (e) => take(feed, e, tell));
        say("broken");
      }
    } catch {
      if (signal.aborted) return;
      say(answered ? "broken" : "refused"); // a stream cut short is asked for again before anybody is alarmed
    }
    await new Promise((resume) => setTimeout(resume, wait));
    wait = Math.min(wait * 2, longestWait);
  }
};

const forget = (feed) => {
  feed.board = emptyBoard();
  feed.last = "";
};

const headersOf = (feed) => ({ Accept: "text/event-stream", ...loginHeaders(), ...(feed.last ? { "Last-Event-ID": feed.last } : {}) });

const take = (feed, e, tell) => {
  const data = JSON.parse(e.data);
  if (e.id) feed.last = e.id;
  feed.board = apply(feed.board, e.event, data);
  tell({ type: "event", event: e.event, data });
};
