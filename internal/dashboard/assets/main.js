// The frame around all pages: header, keys, notes and dialogs. It loads the page
// for the path on first use.
import { html, render, useEffect, useErrorBoundary, useState, useStore, cx } from "./lib/dom.js";
import { attention, connect, link, togglePause, useAge } from "./lib/live.js";
import { go, useRoute } from "./lib/router.js";
import { useKeys } from "./lib/keys.js";
import { subject } from "./lib/place.js";
import { loadMe } from "./lib/me.js";
import { startNotifications } from "./lib/notify.js";
import { toggleTheme } from "./lib/prefs.js";
import { DialogHost } from "./parts/dialog.js";
import { ErrorBox } from "./parts/errorbox.js";
import { Toasts } from "./parts/toast.js";
import { Banner, Header, useSpoken } from "./shell/header.js";
import { loadPage, titles } from "./shell/pages.js";
import { openHelp } from "./shell/help.js";
import { find, newTask } from "./shell/actions.js";

const useShellKeys = () => useKeys({
  "g n": ["Now", () => go("/ui/")],
  "g t": ["Tasks", () => go("/ui/tasks")],
  "g a": ["Agents", () => go("/ui/agents")],
  "g c": ["Capacity", () => go("/ui/capacity")],
  "g s": ["Schedules", () => go("/ui/schedules")],
  "g u": ["Usage", () => go("/ui/usage")],
  "g l": ["Audit log", () => go("/ui/audit")],
  "/": ["search", () => find()],
  n: ["new task", () => newTask()],
  p: ["hold or resume the page", () => togglePause()],
  t: ["light or dark", toggleTheme],
  "?": ["these keys", openHelp],
}, "Everywhere");

// Page shows the page of the path. Its errors do not affect the frame.
const Page = () => {
  const route = useRoute();
  const [shown, setShown] = useState({ name: "", View: null, error: null });
  useEffect(() => {
    let left = false; // another page was requested meanwhile
    const show = (View, error) => { if (!left) setShown({ name: route.name, View, error }); };
    loadPage(route.name).then((View) => show(View, null), (error) => show(null, error));
    return () => { left = true; };
  }, [route.name]);
  if (shown.error) return html`<${ErrorBox} title="This page could not be loaded" error=${lost(shown.error)} retry=${() => location.reload()} />`;
  if (shown.name !== route.name || !shown.View) return html`<p class="quiet" aria-busy="true">Loading…</p>`;
  return html`<${Guarded} key=${route.path} View=${shown.View} route=${route} />`;
};

const lost = (error) => ({ message: "The director does not have it, or does not answer", hint: "Another version may have replaced it: reload the page", code: error.name });

const Guarded = ({ View, route }) => {
  const [error, reset] = useErrorBoundary((cause) => console.error(cause));
  if (error) return html`<${ErrorBox} title="This page has a fault" error=${{ message: error.message, hint: "The other pages still work", code: error.name }} retry=${reset} />`;
  return html`<${View} ...${route.params} query=${route.query} />`;
};

// useTitle shows in the tab whether a person is needed.
const useTitle = () => {
  const { name } = useRoute(), needs = useStore(attention), { state } = useAge(), about = useStore(subject);
  useEffect(() => {
    const mark = state === "dead" ? "(!) " : needs > 0 ? `(${needs}) ` : "";
    document.title = mark + [about || titles[name], "Signalbox"].filter(Boolean).join(" · ");
  }, [name, needs, state, about]);
};

const App = () => {
  useShellKeys();
  useTitle();
  useSpoken();
  const { state } = useAge();
  return html`<div class=${cx("app", state === "dead" && "stale")}>
    <a class="skip" href="#main">Skip to the page</a>
    <${Header} />
    <${Banner} />
    <main id="main" tabindex="-1"><${Page} /></main>
    <${Toasts} />
    <${DialogHost} />
  </div>`;
};

const askWho = () => loadMe().catch(() => {}); // without it the pages are read-only; the banner says why
let away = false; // the stream was lost
link.watch(({ state }) => {
  if (state === "open" && away) askWho();
  away = state !== "open" && state !== "opening";
});
askWho();
startNotifications();
connect();
render(html`<${App} />`, document.getElementById("app"));
