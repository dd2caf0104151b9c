// The answer to a query, page by page, kept up with the live board: a row
// says at once what its task does; what would come or go is asked for anew,
// unless somebody points at the list.
import { useCallback, useEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { onChange, useLive } from "../lib/live.js";
import { useHold } from "../lib/hold.js";

const page = 200, again = 2000; // rows; ms between two searches for what came

const none = { tasks: [], next: "", total: 0, approximate: false, busy: true, error: null };

export const useSearch = (q) => {
  const [state, setState] = useState(none);
  const mine = useRef(null), shown = useRef(page), paused = useRef(false);
  const load = useCallback(async (fresh) => {
    mine.current?.abort();
    const asking = mine.current = new AbortController();
    if (fresh) shown.current = page;
    try {
      const answer = await pages(q, shown.current, asking.signal);
      if (!asking.signal.aborted) setState({ ...answer, busy: false, error: null });
    } catch (error) {
      if (!asking.signal.aborted) setState((was) => ({ ...was, ...(error.field === "q" && { tasks: [], total: 0 }), busy: false, error }));
    }
  }, [q]);
  useEffect(() => {
    setState((was) => ({ ...was, busy: true, error: null }));
    load(true);
    return () => mine.current?.abort();
  }, [load]);
  useRefresh(load, paused);
  const live = useLive((b) => b.tasks);
  const rows = useMemo(() => state.tasks.map((t) => newer(t, live.get(t.queue_id))), [state.tasks, live]);
  const hold = useHold(rows, keyOf);
  paused.current = hold.held && state.tasks.length > 5000; // so many are not fetched again under the pointer
  const more = useCallback(() => {
    if (!state.next || state.busy) return;
    shown.current = state.tasks.length + page;
    setState((was) => ({ ...was, busy: true }));
    pageOf(q, state.next).then((answer) => setState((was) => ({ ...was, ...answer, tasks: unique([...was.tasks, ...answer.tasks]), busy: false })),
      (error) => setState((was) => ({ ...was, busy: false, error })));
  }, [q, state]);
  const tasks = useMemo(() => hold.items.map((e) => e.item), [hold.items.map((e) => e.key).join(), rows]);
  return { ...state, tasks, more, changes: hold.changes, refresh: () => { hold.release(); load(false); }, props: hold.props };
};

const keyOf = (t) => t.queue_id;

// newer is a row as the board has it, which says more often how it goes; what
// the board does not tell of it stays.
const newer = (row, live) => (live && live !== row ? { ...row, ...live } : row);

const pageOf = async (q, after, signal) => {
  const { tasks, next = "", total, approximate = false } = await get("/api/search" + query({ q, limit: page, after }), { signal });
  return { tasks: tasks ?? [], next, total, approximate };
};

// pages asks for as many rows as are shown.
const pages = async (q, count, signal) => {
  let answer = await pageOf(q, "", signal);
  while (answer.next && answer.tasks.length < count) {
    const more = await pageOf(q, answer.next, signal);
    answer = { ...more, tasks: unique([...answer.tasks, ...more.tasks]) };
  }
  return answer;
};

// unique drops rows that moved from one page to the next while they were read.
const unique = (tasks) => [...new Map(tasks.map((t) => [t.queue_id, t])).values()];

// useRefresh searches anew when tasks changed, at most every two seconds.
const useRefresh = (load, paused) => useEffect(() => {
  let timer = 0;
  const stop = onChange((event, data) => {
    if (!data.tasks?.length && !data.gone?.length && event === "change") return;
    timer ||= setTimeout(() => { timer = 0; if (!document.hidden && !paused.current) load(false); }, again);
  });
  return () => { stop(); clearTimeout(timer); };
}, [load, paused]);
