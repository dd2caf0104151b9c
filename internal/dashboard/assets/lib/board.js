// The board is the state from the live stream. Pure functions, used by the worker
// that holds the stream and by the pages. An update makes a new board; objects
// that did not change stay the same.

export const emptyBoard = () => ({
  ready: false, revision: 0, at: "", epoch: "", totals: null, health: null,
  agents: new Map(), queues: new Map(), capacity: new Map(), accounts: new Map(), tasks: new Map(),
  schedules: new Map(), pauses: [], gates: [], pressure: [],
});

const keys = { agents: "name", queues: "name", capacity: "name", accounts: "name", tasks: "queue_id", schedules: "id" };
const goneKinds = { agent: "agents", queue: "queues", capacity: "capacity", account: "accounts", schedule: "schedules", task: "tasks" };
const pressureSpan = 30 * 60 * 1000;
// Ended tasks stay for a while, so that a page can show how they ended; else the
// board has only what is in flight.
const maxEnded = 500;
const ended = new Set(["completed", "failed", "cancelled", "timeout"]);
export const isEnded = (state) => ended.has(state);
// isWaiting: the task is in line, or parked at a gate.
export const isWaiting = (state) => state === "pending" || state === "parked";

// apply returns the board after an event, given by its name and data.
export const apply = (board, event, data) => {
  switch (event) {
    case "snapshot":
    case "resync":
      return merge(emptyBoard(), data);
    case "change":
      return merge(board, data);
    case "beat":
      return { ...board, revision: data.revision, at: data.at, epoch: data.epoch };
  }
  return board;
};

const merge = (board, data) => {
  const next = { ...board, ready: true, revision: data.revision, at: data.at, epoch: data.epoch };
  if (data.totals) next.totals = data.totals;
  if (data.health) next.health = data.health;
  if (data.paused) next.pauses = data.paused;
  if (data.gates) next.gates = data.gates;
  for (const [kind, key] of Object.entries(keys)) {
    if (data[kind]?.length) next[kind] = put(next[kind], data[kind], key);
  }
  for (const gone of data.gone ?? []) remove(next, gone);
  if (next.tasks !== board.tasks) next.tasks = prune(next.tasks);
  if (data.pressure?.length) next.pressure = append(next.pressure, data.pressure);
  return next;
};

const put = (map, entities, key) => {
  const next = new Map(map);
  for (const e of entities) next.set(e[key], e);
  return next;
};

const remove = (board, gone) => {
  const at = gone.indexOf(":");
  const kind = goneKinds[gone.slice(0, at)], key = gone.slice(at + 1);
  if (!kind || !board[kind].has(key)) return;
  board[kind] = new Map(board[kind]);
  board[kind].delete(key);
};

// prune drops the oldest ended tasks if there are many.
const prune = (tasks) => {
  const over = [...tasks.values()].filter((t) => isEnded(t.state));
  if (over.length <= maxEnded) return tasks;
  const next = new Map(tasks);
  for (const t of over.slice(0, over.length - maxEnded)) next.delete(t.queue_id);
  return next;
};

const append = (samples, more) => {
  const last = samples.at(-1)?.at ?? "";
  const all = [...samples, ...more.filter((s) => s.at > last)];
  const from = Date.parse(all.at(-1).at) - pressureSpan;
  return all.filter((s) => Date.parse(s.at) >= from);
};
