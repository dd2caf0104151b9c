// The words of schedules: policies, outcomes, instants in a zone.
import { clock, serverNow } from "../lib/time.js";

export const overlaps = {
  queue: "waits for the one before", skip: "is left out while the one before goes on",
  cancel_previous: "cancels the one before", allow: "runs beside the one before",
};
export const misses = { skip: "are left out", once: "are made up for by one run", all: "are each made up for" };
export const fulls = { skip: "it is left out", retry: "it is tried again until its next time" };

const outcomes = {
  skipped_queue_full: "left out: the queue was full", skipped_busy: "left out: the one before had not ended",
  skipped_missed: "left out: its time had passed", skipped_no_director: "left out: no director answered",
  skipped_error: "not submitted", firing: "being submitted", held: "waits for the one before",
};

// outcomeText says what a firing came to.
export const outcomeText = (run) => {
  const text = outcomes[run.outcome] ?? run.status;
  const missed = run.missed > 0 ? `, ${run.missed} before it left out` : "";
  return run.outcome === "skipped_error" && run.error ? `${text}: ${run.error}${missed}` : text + missed;
};

// markOf is the picture and the tone of a firing.
export const markOf = (run) => {
  if (run.outcome?.startsWith("skipped_")) return run.outcome === "skipped_error" || run.outcome === "skipped_no_director" ? ["cross", "bad"] : ["slash", "warn"];
  return {
    completed: ["check", "good"], failed: ["cross", "bad"], timeout: ["timer", "bad"], cancelled: ["slash", "quiet"],
    running: ["play", "busy"], queued: ["clock", "busy"], held: ["pause", "warn"], firing: ["arrow", "busy"],
  }[run.status] ?? ["ring", "quiet"];
};

// failedInARow is how many of the newest firings whose task has ended ended badly.
export const failedInARow = (runs) => {
  const ended = runs.filter((run) => ["completed", "failed", "timeout"].includes(run.status) && !run.outcome?.startsWith("skipped_"));
  const good = ended.findIndex((run) => run.status === "completed");
  return good < 0 ? ended.length : good;
};

// tally counts outcomes in words: "18 completed, 2 left out: the queue was full".
export const tally = (runs) => {
  const counts = new Map();
  for (const run of runs) {
    const text = outcomes[run.outcome] ?? run.status;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, n]) => `${n} ${text}`).join("; ");
};

const formats = new Map();

// inZone says an instant in a schedule's own zone: Mon 24 Nov, 09:00; with the year
// where that is not this one.
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
