// A bar that stays below the header while its list scrolls. Its height is the style
// property --bar: sticky content and scroll targets start below it.
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
