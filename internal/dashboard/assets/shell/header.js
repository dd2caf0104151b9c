// The header: the page, the queue depth, and the age of the data.
import { html, cx, useEffect, useRef, useStore } from "../lib/dom.js";
import { togglePause, useAge, useLink, useLive, usePaused } from "../lib/live.js";
import { go, searchPath, useRoute } from "../lib/router.js";
import { useMay, useMe } from "../lib/me.js";
import { clock, span } from "../lib/time.js";
import { canNotify, toggleNotifications } from "../lib/notify.js";
import { notifications, theme, useTheme } from "../lib/prefs.js";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { say } from "../parts/toast.js";
import { find, newTask } from "./actions.js";
import { openHelp } from "./help.js";

const places = [["Now", "/ui/", ["now"]], ["Tasks", "/ui/tasks", ["tasks", "task"]], ["Agents", "/ui/agents", ["agents", "agent", "conversation"]],
  ["Capacity", "/ui/capacity", ["capacity"]], ["Schedules", "/ui/schedules", ["schedules"]], ["Usage", "/ui/usage", ["usage"]], ["Audit", "/ui/audit", ["audit"]]];

export const Header = () => {
  const { name } = useRoute();
  const may = useMay("submit");
  return html`<header class="top">
    <a class="brand" href="/ui/" aria-label="Signalbox"><${Mark} /><span>Signalbox</span></a>
    <nav class="nav" aria-label="Pages">${places.map(([text, to, names]) => html`<a key=${to} href=${to} aria-current=${names.includes(name) ? "page" : undefined}>${text}</a>`)}</nav>
    <div class="top-side">
      <${Depth} />
      <${Pill} />
      <button type="button" class="find" aria-label="Search" onClick=${find}><${Icon} name="search" /><span>Search <kbd aria-hidden="true">/</kbd></span></button>
      <button type="button" class="primary new" onClick=${() => newTask()} disabled=${!may.ok} title=${may.why || undefined}>New <span>task</span><kbd aria-hidden="true">n</kbd></button>
      <${User} />
    </div>
  </header>`;
};

// Mark is the signal of the tab's icon.
const Mark = () => html`<svg class="brand-mark" viewBox="9 1 14 30" aria-hidden="true" focusable="false"><rect x="9" y="1" width="14" height="30" rx="7" fill="#1f2937" /><circle cx="16" cy="9" r="4" fill="#4b5563" /><circle cx="16" cy="23" r="4" fill="#34d399" /></svg>`;

const colours = [["system", "Colours of the system"], ["light", "Light"], ["dark", "Dark"]];

// User is the menu of the user: colours, keys, logout.
const User = () => {
  const me = useMe(), chosen = useTheme(), told = useStore(notifications);
  if (!me) return null;
  const who = me.kind === "user" ? me.email || me.id : me.kind === "anonymous" ? "everyone" : "owner";
  return html`<${Menu} name="user" label=${who} items=${[
    ...colours.map(([value, text]) => ({ text, checked: chosen === value, act: () => theme.set(value) })),
    canNotify() && { text: "Notify me when my tasks end", checked: told === "on", act: toggleNotifications },
    { text: "Keys…", act: openHelp },
    me.scopes.includes("admin") && { text: "Users", act: () => go("/ui/users") },
    me.scopes.includes("admin") && { text: "Tokens", act: () => go("/ui/tokens") },
    me.kind === "user" && { text: "Change password…", act: async () => (await import("../parts/password.js")).changePassword() },
    me.kind !== "anonymous" && { text: "Log out…", act: () => location.assign("/login") },
  ]}><span aria-hidden="true">${who[0].toUpperCase()}</span><span class="unseen">${who}</span></${Menu}>`;
};

// Depth shows how many tasks wait, and the maximum.
const Depth = () => {
  const totals = useLive((b) => b.totals);
  if (!totals) return null;
  const { pending, max_size: most } = totals;
  const full = most > 0 && pending >= most;
  return html`<a class=${cx("depth", full && "depth-full")} href=${searchPath("state:waiting")} title="waiting tasks, of the maximum">Queue ${pending}${most ? `/${most}` : ""}${full ? " full" : ""}</a>`;
};

// Pill shows the age of the data. A press holds the page.
const Pill = () => {
  const { state, seconds } = useAge(), held = usePaused();
  const shown = held && state === "live" ? "held" : state;
  const text = {
    opening: "connecting", live: `live · ${seconds.toFixed(1)}s`, held: "held, press p to resume",
    late: `reconnecting, data ${Math.floor(seconds)} s old`, dead: `no connection, data ${span(seconds)} old`,
  }[shown];
  return html`<button type="button" class=${`pill pill-${shown}`} aria-pressed=${held ? "true" : "false"} title=${`${text}. Press to ${held ? "resume" : "hold the page"} (p)`} onClick=${togglePause}>${text}</button>`;
};

// Banner shows problems of the connection.
export const Banner = () => {
  const { state } = useAge(), { state: link, error } = useLink(), at = useLive((b) => b.at);
  if (link === "denied") return html`<div class="banner" role="alert"><${Icon} name="lock" />You may not see the board: ${error?.message}.</div>`;
  if (state === "dead") {
    return html`<div class="banner" role="alert"><${Icon} name="warn" />The director does not answer. ${at ? `What you see is from ${clock(at)} and may be outdated` : "There is nothing to show yet"}; irreversible actions are disabled. Trying again.</div>`;
  }
  if (state === "late" && error) return html`<div class="banner banner-late"><${Icon} name="warn" />The live stream is broken: ${error.message}${error.request_id ? ` (request ${error.request_id})` : ""}. Trying again.</div>`;
  return null;
};

// useSpoken announces important changes to a screen reader.
export const useSpoken = () => {
  const { state } = useAge(), health = useLive((b) => b.health?.text);
  const before = useRef({ dead: false, health: undefined });
  useEffect(() => {
    const was = before.current; // dead may become late before live
    before.current = { dead: state === "dead" || was.dead && state !== "live", health };
    if (state === "dead" && !was.dead) say("The director does not answer");
    else if (state === "live" && was.dead) say("The director answers again");
    else if (health && was.health && health !== was.health) say(health);
  }, [state, health]);
};
