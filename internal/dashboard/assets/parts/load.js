import { useCallback, useEffect, useRef, useState } from "../lib/dom.js";
import { get } from "../lib/api.js";

// useLoad reads a path: {data, error, busy, again, put}. It reads again when the path
// changes, every so many ms while the page is visible, and on again(). The old data stays
// until the next answer, and beside an error. path "" reads nothing.
export const useLoad = (path, every = 0) => {
  const [state, setState] = useState({ path: "", data: null, error: null, busy: true });
  const asking = useRef(null);
  const again = useCallback(async () => {
    asking.current?.abort();
    if (!path) return;
    const mine = asking.current = new AbortController();
    setState((was) => (was.path === path ? { ...was, busy: true } : { path, data: null, error: null, busy: true }));
    try {
      const data = await get(path, { signal: mine.signal });
      if (!mine.signal.aborted) setState({ path, data, error: null, busy: false });
    } catch (error) {
      if (!mine.signal.aborted) setState((was) => ({ path, data: was.path === path ? was.data : null, error, busy: false }));
    }
  }, [path]);
  useEffect(() => {
    again();
    const timer = every > 0 && setInterval(() => { if (!document.hidden) again(); }, every);
    return () => {
      clearInterval(timer);
      asking.current?.abort();
    };
  }, [again, every]);
  const put = useCallback((data) => setState({ path, data, error: null, busy: false }), [path]);
  const fresh = state.path === path;
  return { data: fresh ? state.data : null, error: fresh ? state.error : null, busy: !fresh || state.busy, again, put };
};

// useAction returns [run, busy, error] for an action. The error stays until the next
// run.
export const useAction = (action) => {
  const [state, setState] = useState({ busy: false, error: null });
  const latest = useRef(action);
  latest.current = action;
  const run = useCallback(async (...args) => {
    setState({ busy: true, error: null });
    try {
      const result = await latest.current(...args);
      setState({ busy: false, error: null });
      return result;
    } catch (error) {
      setState({ busy: false, error });
      return undefined;
    }
  }, []);
  return [run, state.busy, state.error];
};
