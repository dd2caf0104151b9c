// Pages import the vendored library from here, so that its address is in one place.
import { h, html, render, Component, createContext, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useErrorBoundary } from "../vendor/htm/standalone.module.js";

export { h, html, render, Component, createContext, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext, useErrorBoundary };

// cx joins the class names that are not empty.
export const cx = (...names) => names.filter(Boolean).join(" ");

// useMedia reports whether a media query matches.
export const useMedia = (query) => {
  const media = useMemo(() => matchMedia(query), [query]);
  const [is, setIs] = useState(media.matches);
  useEffect(() => {
    const look = () => setIs(media.matches);
    look();
    media.addEventListener("change", look);
    return () => media.removeEventListener("change", look);
  }, [media]);
  return is;
};

let ids = 0;
// useId returns an id that is unique on the page.
export const useId = () => useMemo(() => `id${++ids}`, []);

// store is a value with watchers: get, set and watch, which returns a function
// to stop.
export const store = (value) => {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(value, next)) return;
      value = next;
      for (const tell of [...watchers]) tell(value);
    },
    watch(tell) {
      watchers.add(tell);
      return () => watchers.delete(tell);
    },
  };
};

// useStore renders again when select(value) changes.
export const useStore = (from, select = (value) => value) => {
  const [, again] = useReducer((n) => n + 1, 0);
  const pick = useRef(select);
  pick.current = select;
  const chosen = select(from.get());
  const last = useRef(chosen);
  last.current = chosen;
  useEffect(() => {
    const look = () => {
      if (!Object.is(pick.current(from.get()), last.current)) again();
    };
    look(); // the value may have changed since the rendering
    return from.watch(look);
  }, [from]);
  return chosen;
};
