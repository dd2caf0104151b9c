// The feed holds one live stream and the board made from it. It runs in the
// worker that all tabs share, or in the page if there is no shared worker.
import { loginHeaders } from "./login.js";
import { apply, emptyBoard } from "./board.js";
import { readEvents } from "./sse.js";

const firstWait = 250, longestWait = 2000; // ms between attempts

// openFeed calls tell with messages for the pages:
//   {type: "event", event, data}   an event of the stream, already applied to the board
//   {type: "state", state, error}  open; broken: the stream ended or failed, and is retried;
//                                  refused: no answer; login: 401; denied: 403
export const openFeed = (tell) => {
  const over = new AbortController();
  const feed = { board: emptyBoard(), state: { type: "state", state: "opening" }, close: () => over.abort(), last: "" };
  const say = (state, error) => {
    if (over.signal.aborted) return; // a late answer for a previous login
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
          forget(feed); // the next login may be another user
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
      say(answered ? "broken" : "refused"); // a cut stream is retried before it is reported
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
