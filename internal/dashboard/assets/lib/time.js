// Instants and spans as people say them. Ages are taken by the director's
// clock, not this computer's, which may be minutes off.
import { store, useStore } from "./dom.js";

let skew = 0; // ms that the director's clock is ahead
// setClock tells what the director's clock says now.
export const setClock = (at) => {
  const ahead = Date.parse(at) - Date.now();
  if (Math.abs(ahead - skew) > 1000) skew = ahead;
};
export const serverNow = () => Date.now() + skew;

const second = store(serverNow());
let stopped = false;
const tick = () => { if (!document.hidden && !stopped) second.set(serverNow()); };
setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);
// stopClock holds what is shown at one moment: ages that go on beside a
// director that is dead would look like news.
export const stopClock = (stop) => {
  stopped = stop;
  tick();
};
// useNow renders anew each second, and is the director's time in ms.
export const useNow = () => useStore(second);

const pad = (n) => String(n).padStart(2, "0");

// span says a length in seconds: 12s, 2m 14s, 31m, 1h 04m, 3d 2h. Seconds are
// left out from a quarter of an hour on.
export const span = (seconds) => {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}s`;
  if (s < 900) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${pad(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
};

// took says how long something took: as span, and 340ms for what took less than a
// second.
export const took = (seconds) => (seconds > 0 && seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))}ms` : span(seconds));

// since is the seconds from an instant until now.
export const since = (at, now = serverNow()) => (at ? (now - Date.parse(at)) / 1000 : 0);

// age says how long ago an instant is.
export const age = (at, now = serverNow()) => (at ? span(since(at, now)) : "");

// range says an ETA: "about 3–9 min"; "unknown" while too few runs are known.
export const range = (eta) => {
  if (!eta) return "unknown";
  const { low_seconds: low, high_seconds: high } = eta;
  if (high < 5) return "at once";
  const [unit, name] = high < 90 ? [1, "s"] : high < 5400 ? [60, "min"] : high < 172800 ? [3600, "h"] : [86400, "d"];
  const a = Math.floor(low / unit), b = Math.max(Math.ceil(high / unit), 1);
  return a === b ? `about ${b} ${name}` : `about ${a}–${b} ${name}`;
};

const dayOf = (d) => `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
const timeOf = (d) => `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;

// clockOf says the time of day of an instant in ms.
export const clockOf = (ms) => timeOf(new Date(ms));

// clock says an instant in this computer's zone: 14:05:09, with the day where
// that is not today's.
export const clock = (at, now = serverNow()) => {
  if (!at) return "";
  const d = new Date(at);
  return dayOf(d) === dayOf(new Date(now)) ? timeOf(d) : `${dayOf(d)} ${timeOf(d)}`;
};

// ahead says an instant and how far it is away: "14:00:00 (in 12m 04s)".
export const ahead = (at, now = serverNow()) => (Date.parse(at) > now ? `${clock(at, now)} (in ${span(since(at, now) * -1)})` : clock(at, now));

// local says the director's sentences with the time of this computer: they have instants in UTC.
export const local = (text, now = serverNow()) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (at) => clock(at, now));

// full is for titles: an instant with its day and zone.
export const full = (at) => (at ? `${new Date(at).toLocaleString()} (${at})` : "");
