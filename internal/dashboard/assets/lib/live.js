// The board, its age, and whether users may act on it.
import { emptyBoard, apply } from "./board.js";
import { openFeed } from "./feed.js";
import { loginKey } from "./login.js";
import { store, useStore, useEffect } from "./dom.js";
import { setClock, stopClock } from "./time.js";
import { scriptAddress } from "./trusted.js";
import { passwordChange, toLogin } from "./api.js";

const lateAfter = 5, deadAfter = 15; // seconds without news

let newest = emptyBoard(); // from the stream
const shown = store(newest); // for the pages: the same, unless they are held
const age = store({ state: "opening", seconds: 0 });
const paused = store(false);
export const link = store({ state: "opening" }); // state of the stream
export const attention = store(0); // how many things need a person, held or not

let heard = performance.now(), heardAt = "";
const watchers = { tasks: new Map(), schedules: new Map() };
const anyone = new Set();

const show = () => { if (!paused.get() && !document.hidden) shown.set(newest); };

const hear = (message) => {
  switch (message.type) {
    case "board":
      if (message.board.ready) take(message.board, null);
      return;
    case "event":
      take(apply(newest, message.event, message.data), message);
      return;
    case "state":
      link.set(message);
      if (message.state === "login") loggedOut();
      look();
  }
};

// An ended login may have been replaced, here or in another tab, for example by a password
// change: the new key comes a moment after the end of the stream.
const grace = 1000; // ms
let rejoin = null, joined = "";
const loggedOut = () => setTimeout(async () => {
  await passwordChange();
  if (rejoin && loginKey() !== joined) rejoin();
  else toLogin();
}, grace);

const take = (board, message) => {
  newest = board;
  // Only a new time is news: a director that repeats the same time hangs.
  if (board.at !== heardAt) {
    heardAt = board.at;
    heard = performance.now();
    setClock(board.at);
  }
  attention.set((board.health?.attention.length ?? 0) + (board.health?.more ?? 0));
  look();
  show();
  if (message) tellWatchers(message);
};

// tellWatchers calls the watchers of a task or schedule. After a break it calls all:
// they may have missed a change.
const tellWatchers = ({ event, data }) => {
  for (const [kind, key] of [["tasks", "queue_id"], ["schedules", "id"]]) {
    if (event === "snapshot" || event === "resync") {
      for (const [id, calls] of watchers[kind]) for (const call of [...calls]) call(newest[kind].get(id));
    } else if (event === "change") {
      for (const e of data[kind] ?? []) for (const call of [...(watchers[kind].get(e[key]) ?? [])]) call(e);
    }
  }
  if (event !== "beat") for (const call of [...anyone]) call(event, data);
};

const watch = (kind) => (id, call) => {
  const calls = watchers[kind].get(id) ?? new Set();
  watchers[kind].set(id, calls.add(call));
  return () => {
    calls.delete(call);
    if (calls.size === 0) watchers[kind].delete(id);
  };
};

// onTask calls with the task whenever it changes (without a task after a break); the
// result stops it. onSchedule is the same for schedules.
export const onTask = watch("tasks");
export const onSchedule = watch("schedules");
// onChange calls with each event and its data, except beats.
export const onChange = (call) => {
  anyone.add(call);
  return () => anyone.delete(call);
};

const look = () => {
  const seconds = (performance.now() - heard) / 1000;
  const feed = link.get().state;
  let state = "live";
  if (!newest.ready && feed !== "refused" && seconds < lateAfter) state = "opening";
  else if (feed === "refused" || seconds >= deadAfter) state = "dead";
  else if (feed !== "open" || seconds >= lateAfter) state = "late";
  stopClock(state === "dead" || paused.get());
  const before = age.get();
  if (before.state !== state || Math.abs(before.seconds - seconds) >= 0.1) age.set({ state, seconds });
};
setInterval(() => { if (!document.hidden) look(); }, 500);
document.addEventListener("visibilitychange", () => { look(); show(); });

// current is the newest board, for click handlers.
export const current = () => newest;
// useLive is select(board) of the shown board.
export const useLive = (select) => useStore(shown, select);
// useAge is {state: opening, live, late or dead, seconds} of the shown board.
export const useAge = () => useStore(age);
export const useLink = () => useStore(link);
// useDanger reports whether irreversible actions are allowed: only with recent data.
export const useDanger = () => useStore(age, (a) => a.state === "live" || a.state === "late");
export const usePaused = () => useStore(paused);
export const togglePause = () => {
  paused.set(!paused.get());
  look();
  show();
};
// useOnTask calls back while the component is mounted.
export const useOnTask = (id, call) => useEffect(() => onTask(id, call), [id, call]);

// connect opens the stream: that of all tabs, else one for this tab, which is closed
// while the tab is hidden.
export const connect = () => {
  try {
    share(new SharedWorker(scriptAddress("worker"), { type: "module", name: "signalbox" }));
  } catch {
    alone();
  }
};

const share = (worker) => {
  let answered = false;
  worker.port.onmessage = ({ data }) => { answered = true; hear(data); };
  worker.onerror = () => { if (!answered) alone(); };
  const join = () => {
    joined = loginKey();
    worker.port.postMessage({ join: true, key: joined });
  };
  rejoin = join;
  join();
  addEventListener("pagehide", () => worker.port.postMessage("leave"));
  addEventListener("pageshow", (e) => { if (e.persisted) join(); });
};

const alone = () => {
  let feed = null;
  joined = loginKey();
  rejoin = () => { joined = loginKey(); feed?.close(); feed = openFeed(hear); };
  const follow = () => {
    if (document.hidden) { feed?.close(); feed = null; } else feed ??= openFeed(hear);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
};
