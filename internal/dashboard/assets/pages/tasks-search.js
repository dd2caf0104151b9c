// The answer to a query, page by page, kept up with the live board: a row
// says at once what its task does; what would come or go is asked for anew,
// unless somebody points at the list.
import { useCallback, useEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { current, onChange, useLive } from "../lib/live.js";
import { useHold } from "../lib/hold.js";
import { kept } from "../lib/place.js";

const page = 200, again = 2000; // rows; ms between two searches for what came

const none = { tasks: [], first: [], next: "", total: 0, approximate: false, busy: true, error: null, of: "" }; // of: the query and order that the tasks are of

export const useSearch = (q, sort) => {
  const [state, setState] = useState(() => kept()?.found ?? none);
  const came = useRef(state !== none); // with what it showed when it was left
  const asking = useRef(null), of = `${sort} ${q}`, asked = useRef(q);
  const load = useCallback(async () => {
    asking.current?.abort();
    const { signal } = asking.current = new AbortController();
    try {
      const answer = await pageOf(q, sort, "", signal);
      if (!signal.aborted) setState((was) => ({ ...renewed(was, answer, of), busy: false, error: null, of }));
    } catch (error) {
      if (!signal.aborted) setState((was) => ({ ...(error.field === "q" ? none : was), busy: false, error }));
    }
  }, [q, sort]);
  useEffect(() => {
    // In another order the rows stay until it is there, and the focus in the head of the table.
    if (!came.current) setState((was) => (asked.current === q ? { ...was, busy: true } : { ...none, total: was.total, approximate: was.approximate }));
    asked.current = q;
    came.current = false;
    load();
    return () => asking.current?.abort();
  }, [load]);
  useRefresh(load);
  const live = useLive((b) => b.tasks);
  const rows = useMemo(() => state.tasks.map((t) => newer(t, live.get(t.queue_id))), [state.tasks, live]);
  const hold = useHold(rows, keyOf, false, state.of);
  const after = state.next;
  const fetchMore = async () => {
    setState((was) => ({ ...was, busy: true }));
    try {
      const answer = await pageOf(q, sort, after, asking.current?.signal);
      setState((was) => ({ ...(was.next === after ? { ...was, ...answer, tasks: unique([...was.tasks, ...answer.tasks]) } : was), busy: false }));
    } catch (error) {
      setState((was) => ({ ...was, busy: false, error: error.name === "AbortError" ? null : error }));
    }
  };
  // While there is none it cannot be asked for. An answer that a new first page
  // ended, or that joins on to nothing any more, is asked for again by that.
  const more = after && !state.busy && !state.error ? fetchMore : undefined;
  return { ...state, state, tasks: hold.items.map((e) => e.item), more, changes: hold.changes, refresh: () => { hold.release(); load(); }, props: hold.props };
};

// renewed puts a new first page before what was fetched after it: the whole of
// a long list is not fetched again for each change. What the first page had and
// has no more moved down, unless it is in another state: then it matches no
// more.
const renewed = (was, first, of) => {
  if (was.tasks.length <= page || was.of !== of) return first;
  const old = new Map(was.first?.map((t) => [t.queue_id, t.state]));
  const there = new Set(first.tasks.map(keyOf));
  const kept = was.tasks.filter((t) => there.has(t.queue_id) || !old.has(t.queue_id) || old.get(t.queue_id) === current().tasks.get(t.queue_id)?.state);
  return { ...first, tasks: unique([...first.tasks, ...kept]), next: was.next };
};

const keyOf = (t) => t.queue_id;

// newer is a row as the board has it, which says more often how it goes; what
// the board does not tell of it stays.
const newer = (row, live) => (live && live !== row ? { ...row, ...live } : row);

// pageOf goes on until there is a row: an answer looks at so many tasks and no
// further, and may have found none among them.
export const pageOf = async (q, sort, after, signal) => {
  let answer = { next: after };
  do {
    answer = await get("/api/search" + query({ q, sort, limit: page, after: answer.next }), { signal });
  } while (!answer.tasks?.length && answer.next);
  const { tasks, next = "", total, approximate = false } = answer;
  return { tasks: tasks ?? [], next, total, approximate, ...(after ? {} : { first: tasks ?? [] }) };
};

// unique drops rows that moved from one page to the next while they were read.
const unique = (tasks) => [...new Map(tasks.map((t) => [t.queue_id, t])).values()];

// useRefresh searches anew when tasks changed, at most every two seconds.
const useRefresh = (load) => useEffect(() => {
  let timer = 0;
  const stop = onChange((event, data) => {
    if (!data.tasks?.length && !data.gone?.length && event === "change") return;
    timer ||= setTimeout(() => { timer = 0; if (!document.hidden) load(); }, again);
  });
  return () => { stop(); clearTimeout(timer); };
}, [load]);
