// What is on the board now, how old that is, and whether it may be acted on.
import { emptyBoard, apply } from "./board.js";
import { openFeed } from "./feed.js";
import { loginKey } from "./login.js";
import { store, useStore, useEffect } from "./dom.js";
import { setClock, stopClock } from "./time.js";
import { scriptAddress } from "./trusted.js";
import { passwordChange, toLogin } from "./api.js";

const lateAfter = 5, deadAfter = 15; // seconds without news

let newest = emptyBoard(); // what the stream has told
const shown = store(newest); // what the pages show: the same, unless they are held
const age = store({ state: "opening", seconds: 0 });
const paused = store(false);
export const link = store({ state: "opening" }); // of the stream itself
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

// A login that has ended may have been replaced by a new one, here or in another tab, as a
// change of the password does: its key comes with the answer, a moment after the end of the
// stream.
const grace = 1000; // ms
let rejoin = null, joined = "";
const loggedOut = () => setTimeout(async () => {
  await passwordChange();
  if (rejoin && loginKey() !== joined) rejoin();
  else toLogin();
}, grace);

const take = (board, message) => {
  newest = board;
  // News is what was looked at anew: a director that goes on saying the same
  // moment stands still.
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

// tellWatchers calls those who wait for one task or schedule. After a break
// all are called: what they wait for may have happened meanwhile.
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

// onTask calls with the task each time it changes (without one after a break);
// the result stops that. onSchedule is the same for schedules.
export const onTask = watch("tasks");
export const onSchedule = watch("schedules");
// onChange calls with each event of the stream and its data, beats apart.
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

// current is the newest board, for what happens at a click.
export const current = () => newest;
// useLive is select(board) of what is shown.
export const useLive = (select) => useStore(shown, select);
// useAge is {state: opening, live, late or dead, seconds} of what is shown.
export const useAge = () => useStore(age);
export const useLink = () => useStore(link);
// useDanger is whether what cannot be undone may be done: only by what is
// true now.
export const useDanger = () => useStore(age, (a) => a.state === "live" || a.state === "late");
export const usePaused = () => useStore(paused);
export const togglePause = () => {
  paused.set(!paused.get());
  look();
  show();
};
// useOnTask calls back as long as the component is there.
export const useOnTask = (id, call) => useEffect(() => onTask(id, call), [id, call]);

// connect opens the stream: the one of all tabs, else one of this tab, which
// is closed while nobody looks.
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
