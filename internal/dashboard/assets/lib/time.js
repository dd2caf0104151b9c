// Times and durations for people. Ages use the director's clock: this computer's may
// be minutes off.
import { store, useStore } from "./dom.js";

let skew = 0; // ms that the director's clock is ahead
// setClock sets the present time of the director's clock.
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
// stopClock freezes the shown time: growing ages would make the data of a dead
// director look live.
export const stopClock = (stop) => {
  stopped = stop;
  tick();
};
// useNow is the director's time in ms, and renders again each second.
export const useNow = () => useStore(second);

const pad = (n) => String(n).padStart(2, "0");

// span formats seconds: 12s, 2m 14s, 31m, 1h 04m, 3d 2h. From a quarter of an hour
// on it omits seconds.
export const span = (seconds) => {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}s`;
  if (s < 900) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${pad(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
};

// took is span, with 340ms for less than a second.
export const took = (seconds) => (seconds > 0 && seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))}ms` : span(seconds));

// since is the seconds since a time.
export const since = (at, now = serverNow()) => (at ? (now - Date.parse(at)) / 1000 : 0);

// age formats the time since a time.
export const age = (at, now = serverNow()) => (at ? span(since(at, now)) : "");

// range formats an ETA: "about 3–9 min"; "unknown" without enough runs.
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

// clockOf formats the time of day of a time in ms.
export const clockOf = (ms) => timeOf(new Date(ms));

// clock formats a time in this computer's zone: 14:05:09, with the day if it is
// not today.
export const clock = (at, now = serverNow()) => {
  if (!at) return "";
  const d = new Date(at);
  return dayOf(d) === dayOf(new Date(now)) ? timeOf(d) : `${dayOf(d)} ${timeOf(d)}`;
};

// ahead formats a time and the time until then: "14:00:00 (in 12m 04s)".
export const ahead = (at, now = serverNow()) => (Date.parse(at) > now ? `${clock(at, now)} (in ${span(since(at, now) * -1)})` : clock(at, now));

// local converts the UTC times in the director's sentences to this computer's zone.
export const local = (text, now = serverNow()) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (at) => clock(at, now));

// full formats a time with day and zone, for titles.
export const full = (at) => (at ? `${new Date(at).toLocaleString()} (${at})` : "");
