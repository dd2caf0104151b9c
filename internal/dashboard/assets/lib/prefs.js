// Preferences of this browser. Without storage a choice lasts as long as the page.
import { store, useStore } from "./dom.js";

const keep = (name, fallback) => {
  const key = `signalbox.${name}`;
  let first = fallback;
  try { first = localStorage.getItem(key) ?? fallback; } catch { /* not allowed here */ }
  const kept = store(first);
  kept.watch((value) => {
    try { localStorage.setItem(key, value); } catch { /* not allowed here */ }
  });
  // fresh reads what another tab may have chosen meanwhile.
  kept.fresh = () => {
    try { kept.set(localStorage.getItem(key) ?? kept.get()); } catch { /* not allowed here */ }
    return kept.get();
  };
  return kept;
};

export const theme = keep("theme", "system"); // system, light or dark
export const keysOn = keep("keys", "on"); // on or off
export const notifications = keep("notifications", "off"); // on or off
export const watched = keep("watched", ""); // ids of watched tasks
export const lanesOpen = keep("lanes", ""); // unfolded groups of agents
export const hiddenColumns = keep("tasks.hidden", ""); // names of hidden columns of the task list
export const grouped = keep("tasks.grouped", "off"); // whether equal failures are folded there: on, off
export const diffView = keep("diff", "unified"); // unified or split patches
export const views = keep("tasks.views", "[]"); // of the task list, see views.js

const apply = (value) => {
  if (value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
};
apply(theme.get());
theme.watch(apply);

// isDark reports whether the screen is dark, by choice or by the system.
export const isDark = () => {
  const chosen = theme.get();
  return chosen === "dark" || (chosen === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
};

// onTheme calls when the colours change.
export const onTheme = (call) => {
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", call);
  const stop = theme.watch(call);
  return () => { media.removeEventListener("change", call); stop(); };
};

export const useTheme = () => useStore(theme);
export const toggleTheme = () => theme.set(isDark() ? "light" : "dark");
