// A bar that stays below the header while the list under it scrolls. Its height
// is told to the style as --bar: what sticks under it, and what is scrolled to,
// begins there.
import { html, cx, useLayoutEffect, useRef } from "../lib/dom.js";

const root = document.documentElement;

export const Sticky = ({ name, children }) => {
  const box = useRef(null);
  useLayoutEffect(() => {
    const tell = () => root.style.setProperty("--bar", `${box.current.offsetHeight}px`);
    const watch = new ResizeObserver(tell);
    watch.observe(box.current);
    tell();
    return () => { watch.disconnect(); root.style.removeProperty("--bar"); };
  }, []);
  return html`<div ref=${box} class=${cx("sticky", name)}>${children}</div>`;
};
