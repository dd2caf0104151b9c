// The results of a query, page by page, updated from the live board. Rows change at
// once; a new search adds and removes rows, unless the list is held.
import { useCallback, useEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { current, onChange, useLive } from "../lib/live.js";
import { useHold } from "../lib/hold.js";
import { kept } from "../lib/place.js";

const page = 200, again = 2000; // rows; ms between two searches

const none = { tasks: [], first: [], next: "", total: 0, approximate: false, busy: true, error: null, of: "" }; // of: the query and order of the tasks

export const useSearch = (q, sort) => {
  const [state, setState] = useState(() => kept()?.found ?? none);
  const came = useRef(state !== none); // with the state from before it was left
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
    // While another order loads, the rows stay, and so does the focus in the table's head.
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
  // undefined while there is no next page, or while a search is in progress. A page that a
  // new first page made obsolete is read again later.
  const more = after && !state.busy && !state.error ? fetchMore : undefined;
  return { ...state, state, tasks: hold.items.map((e) => e.item), more, changes: hold.changes, refresh: () => { hold.release(); load(); }, props: hold.props };
};

// renewed puts a new first page before the later pages, so that a change does not reload
// a long list. Rows that left the first page have moved down, unless their state has
// changed: then they no longer match.
const renewed = (was, first, of) => {
  if (was.tasks.length <= page || was.of !== of) return first;
  const old = new Map(was.first?.map((t) => [t.queue_id, t.state]));
  const there = new Set(first.tasks.map(keyOf));
  const kept = was.tasks.filter((t) => there.has(t.queue_id) || !old.has(t.queue_id) || old.get(t.queue_id) === current().tasks.get(t.queue_id)?.state);
  return { ...first, tasks: unique([...first.tasks, ...kept]), next: was.next };
};

const keyOf = (t) => t.queue_id;

// newer merges the board's state into a row, because it is more recent; fields that the
// board does not have stay.
const newer = (row, live) => (live && live !== row ? { ...row, ...live } : row);

// pageOf continues until there is a row: an answer covers a limited number of tasks, and
// may have found none among them.
export const pageOf = async (q, sort, after, signal) => {
  let answer = { next: after };
  do {
    answer = await get("/api/search" + query({ q, sort, limit: page, after: answer.next }), { signal });
  } while (!answer.tasks?.length && answer.next);
  const { tasks, next = "", total, approximate = false } = answer;
  return { tasks: tasks ?? [], next, total, approximate, ...(after ? {} : { first: tasks ?? [] }) };
};

// unique drops duplicate rows, which moved to the next page between two reads.
const unique = (tasks) => [...new Map(tasks.map((t) => [t.queue_id, t])).values()];

// useRefresh searches again when tasks have changed, at most every two seconds.
const useRefresh = (load) => useEffect(() => {
  let timer = 0;
  const stop = onChange((event, data) => {
    if (!data.tasks?.length && !data.gone?.length && event === "change") return;
    timer ||= setTimeout(() => { timer = 0; if (!document.hidden) load(); }, again);
  });
  return () => { stop(); clearTimeout(timer); };
}, [load]);
