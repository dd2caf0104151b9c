// A chart over time. The library is loaded only when a chart is shown and the page is
// idle. Screen readers get its content as text.
import { html, useEffect, useRef } from "../lib/dom.js";
import { onTheme } from "../lib/prefs.js";
import { scriptAddress } from "../lib/trusted.js";

let library = null;
// fetchLibrary loads the script and its style. The script is not a module: it sets a
// global.
const fetchLibrary = async () => {
  if (!library) await idle();
  library ??= Promise.all([added("script", { src: scriptAddress("chart") }),
    added("link", { rel: "stylesheet", href: new URL("../vendor/uplot/uPlot.min.css", import.meta.url).href })]).then(() => window.uPlot);
  return library;
};

// idle waits until the browser is idle, at most for a second. Not all browsers
// support it.
const idle = () => new Promise((resume) => (window.requestIdleCallback ? requestIdleCallback(resume, { timeout: 1000 }) : setTimeout(resume, 200)));

export const added = (name, properties) => new Promise((resume, fail) => {
  const element = Object.assign(document.createElement(name), properties, { onload: resume, onerror: fail });
  document.head.append(element);
});

const shortest = 300; // minimum seconds of the axis

const pad = (n) => String(n).padStart(2, "0");
const hourMinute = (s) => { const d = new Date(s * 1000); return `${pad(d.getHours())}:${pad(d.getMinutes())}`; };

// Chart: data is [[seconds…], [values…], …], series has {label, tone, fill} for each row
// of values. onSelect(from, to) gets the range of a drag, in ms; onPoint(index) gets the
// value under the pointer, null for none. With days, a function that formats a value, each
// value is a column for a UTC day.
export const Chart = ({ data, series, label, height = 130, days, onSelect, onPoint }) => {
  const box = useRef(null), plot = useRef(null), newest = useRef(data), hear = useRef({});
  newest.current = data;
  hear.current = { onSelect, onPoint };
  useEffect(() => {
    let over = false;
    const make = async () => {
      const UPlot = await fetchLibrary();
      if (over) return;
      plot.current?.destroy();
      plot.current = new UPlot(options(box.current, series, height, hear, days && columns(UPlot, days)), newest.current, box.current);
    };
    make().catch(() => {}); // without the library the text says it all
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: box.current.clientWidth, height }));
    sized.observe(box.current);
    const stop = onTheme(make);
    return () => { over = true; stop(); sized.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<div class="chart" role="img" aria-label=${label} ref=${box}></div>`;
};

const dayMonth = (s) => new Date(s * 1000).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
const aDay = 24 * 3600;

// columns returns the axes and the drawing of a chart of days.
const columns = (UPlot, text) => ({
  x: (_, from, to) => [from - aDay / 2, to + aDay / 2], y: (_, low, high) => [0, high > 0 ? high * 1.1 : 1],
  xAxis: { incrs: [1, 2, 7, 14, 30].map((n) => n * aDay), values: (_, ticks) => ticks.map(dayMonth) },
  yAxis: { incrs: undefined, size: 60, values: (_, ticks) => ticks.map(text) },
  series: { paths: UPlot.paths.bars({ size: [0.7, 40] }), width: 0 },
});

const options = (box, series, height, hear, days) => {
  const css = getComputedStyle(box);
  const colour = (name) => css.getPropertyValue(`--${name}`) && resolve(box, name);
  const quiet = colour("quiet"), line = colour("line");
  const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: box.clientWidth, height, legend: { show: false }, padding: [8, 16, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: !days, y: false, setScale: false } },
    scales: { x: { range: days?.x ?? ((_, from, to) => [Math.min(from, to - shortest), to]) }, y: { range: days?.y ?? ((_, low, high) => [0, Math.max(4, Math.ceil((high ?? 0) * 1.1))]) } },
    axes: [{ ...axis, grid: { show: false }, size: 24, space: 60, incrs: [60, 120, 300, 600, 1800, 3600], values: (_, ticks) => ticks.map(hourMinute), ...days?.xAxis }, { ...axis, size: 44, space: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], ...days?.yAxis }],
    series: [{}, ...series.map((s) => ({ label: s.label, stroke: colour(s.tone), width: 1.5, fill: s.fill && colour(s.fill), points: { show: false }, ...days?.series }))],
    hooks: { setSelect: [(u) => {
      if (u.select.width < 4) return;
      hear.current.onSelect?.(u.posToVal(u.select.left, "x") * 1000, u.posToVal(u.select.left + u.select.width, "x") * 1000);
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }], setCursor: [(u) => hear.current.onPoint?.(u.cursor.idx ?? null)] },
  };
};

// resolve returns the colour of a custom property here: a canvas does not support
// light-dark().
const resolve = (box, name) => {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  box.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};
