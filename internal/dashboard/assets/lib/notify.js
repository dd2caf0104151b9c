// Browser notifications: a task that was submitted or is watched here has ended, or
// something needs a person. Each is shown once, in whatever number of tabs. In a visible
// tab it is a note on the page.
import { isEnded } from "./board.js";
import { attention, current, onChange } from "./live.js";
import { notifications, watched } from "./prefs.js";
import { useStore } from "./dom.js";
import { go, taskPath } from "./router.js";
import { toast } from "../parts/toast.js";

const most = 200; // tasks that are watched

const listOf = () => watched.fresh().split(" ").filter(Boolean);

// watch notifies of the end of a task; unwatch stops that, and returns whether it was watched.
export const watch = (id) => watched.set([...listOf().filter((one) => one !== id), id].slice(-most).join(" "));
export const unwatch = (id) => {
  const list = listOf();
  if (!list.includes(id)) return false;
  watched.set(list.filter((one) => one !== id).join(" "));
  return true;
};
export const useWatched = (id) => useStore(watched, (list) => list.split(" ").includes(id));

export const canNotify = () => "Notification" in window && isSecureContext;

// toggleNotifications asks the browser for permission if necessary.
export const toggleNotifications = async () => {
  if (notifications.get() === "on") return notifications.set("off");
  if (Notification.permission !== "granted" && (await Notification.requestPermission()) !== "granted") {
    return toast("The browser blocks notifications of this page: allow them in the site's settings.", "bad");
  }
  notifications.set("on");
};

const tell = (title, body, tag, path) => {
  if (document.visibilityState === "visible") return toast(`${title}: ${body}`, "");
  if (notifications.get() !== "on" || !canNotify() || Notification.permission !== "granted") return;
  const note = new Notification(title, { body, tag });
  note.onclick = () => { window.focus(); go(path); note.close(); };
};

const words = { completed: "is done", failed: "failed", timeout: "timed out", cancelled: "was cancelled" };

const tellEnd = (task) => {
  if (!task || !isEnded(task.state) || !unwatch(task.queue_id)) return;
  const name = task.prompt_preview?.split("\n", 1)[0] || task.tool || task.queue_id;
  tell(`${task.agent || "The task"} ${words[task.state] ?? task.state}`, task.state === "failed" && task.failure_line ? `${name}: ${task.failure_line}` : name, task.queue_id, taskPath(task.queue_id));
};

// startNotifications starts listening, once, in the frame.
export const startNotifications = () => {
  onChange((event, data) => {
    if (event === "change") for (const task of data.tasks ?? []) tellEnd(task);
    else for (const id of listOf()) tellEnd(current().tasks.get(id));
  });
  let before = attention.get();
  attention.watch((now) => {
    const more = now > before;
    before = now;
    const health = current().health;
    if (more && document.visibilityState !== "visible" && health) tell("Signalbox needs you", health.text, "attention", "/ui/");
  });
};
