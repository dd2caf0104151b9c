// Texts about schedules: policies, outcomes, times in a zone.
import { clock, serverNow } from "../lib/time.js";

export const overlaps = {
  queue: "waits for the previous run", skip: "is skipped while the previous run goes on",
  cancel_previous: "cancels the previous run", allow: "runs in parallel",
};
export const misses = { skip: "are skipped", once: "are made up for by one run", all: "are each made up for" };
export const fulls = { skip: "it is skipped", retry: "it is tried again until its next time" };

const outcomes = {
  skipped_queue_full: "skipped: the queue was full", skipped_busy: "skipped: the previous run had not ended",
  skipped_missed: "skipped: its time had passed", skipped_no_director: "skipped: no director answered",
  skipped_error: "not submitted", firing: "being submitted", held: "waits for the previous run",
};

// outcomeText describes the outcome of a firing.
export const outcomeText = (run) => {
  const text = outcomes[run.outcome] ?? run.status;
  const missed = run.missed > 0 ? `, ${run.missed} before it skipped` : "";
  return run.outcome === "skipped_error" && run.error ? `${text}: ${run.error}${missed}` : text + missed;
};

// markOf is the icon and the tone of a firing.
export const markOf = (run) => {
  if (run.outcome?.startsWith("skipped_")) return run.outcome === "skipped_error" || run.outcome === "skipped_no_director" ? ["cross", "bad"] : ["slash", "warn"];
  return {
    completed: ["check", "good"], failed: ["cross", "bad"], timeout: ["timer", "bad"], cancelled: ["slash", "quiet"],
    running: ["play", "busy"], queued: ["clock", "busy"], held: ["pause", "warn"], firing: ["arrow", "busy"],
  }[run.status] ?? ["ring", "quiet"];
};

// failedInARow counts the newest ended firings that failed in a row.
export const failedInARow = (runs) => {
  const ended = runs.filter((run) => ["completed", "failed", "timeout"].includes(run.status) && !run.outcome?.startsWith("skipped_"));
  const good = ended.findIndex((run) => run.status === "completed");
  return good < 0 ? ended.length : good;
};

// tally counts outcomes in words: "18 completed, 2 skipped: the queue was full".
export const tally = (runs) => {
  const counts = new Map();
  for (const run of runs) {
    const text = outcomes[run.outcome] ?? run.status;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, n]) => `${n} ${text}`).join("; ");
};

const formats = new Map();

// inZone formats a time in a schedule's zone: Mon 24 Nov, 09:00; with the year if it is
// another one.
export const inZone = (at, zone, now = serverNow()) => {
  if (!formats.has(zone)) formats.set(zone, [formatOf(zone), formatOf(zone, { year: "numeric" })]);
  const [short, long] = formats.get(zone);
  if (!short) return clock(at);
  const year = (t) => long.formatToParts(t).find((part) => part.type === "year").value;
  return (year(new Date(at)) === year(new Date(now)) ? short : long).format(new Date(at));
};

const formatOf = (zone, more) => {
  const parts = { ...more, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone };
  try { return new Intl.DateTimeFormat("en-GB", parts); } catch { return null; } // a zone that the browser does not know
};
