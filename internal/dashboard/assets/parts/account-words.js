// Texts about accounts. Pure functions.
import { ahead, local } from "../lib/time.js";

// stateText describes the state of an account.
export const stateText = (a, now) => ({
  open: "open", trying: "being tried, one task goes first", signed_out: "signed out, a person must log in",
  closed: a.until ? `closed until ${ahead(a.until, now)}` : "closed until someone opens it",
})[a.state] ?? a.state;

const sources = { event: "as its agent reported", header: "by the provider's headers", text: "by what the run printed", guess: "the reset time is unknown: it is tried then" };

// whyText is the state with its cause, if known.
export const whyText = (a, now) => {
  const said = stateText(a, now), by = a.source && (sources[a.source] ?? `by ${a.source}`);
  const known = [a.window, a.reason, by].filter(Boolean).join(" · ");
  return `${said[0].toUpperCase()}${said.slice(1)}${known && `: ${known}`}`;
};

// gateText describes a gate, and what waits there.
export const gateText = (g, now) => [local(g.text.charAt(0).toUpperCase() + g.text.slice(1), now), g.kind === "time" ? "" : waitsText(g, g.kind === "tool" ? "call" : "task")].filter(Boolean).join(": ");

// waitsText says what waits at a gate; "" for nothing.
export const waitsText = (a, noun = "task") => {
  const n = a.parked + a.waiting;
  if (n === 0) return "";
  return `${n} ${n === 1 ? `${noun} waits` : `${noun}s wait`}${a.parked > 0 ? `, ${a.parked} of them parked` : ""}`;
};
