// Actions for keys, the header and pages.
import { go, route } from "../lib/router.js";

// newTask loads and opens the dialog.
export const newTask = (given) => import("./newtask.js").then((m) => m.openNewTask(given));

const patience = 2000; // ms to wait for the search box

// find goes to the search box. Text typed before it exists goes into it.
export const find = () => {
  const here = document.getElementById("search");
  if (here) { here.focus(); here.select(); return; }
  let typed = "", timer = 0;
  const hear = (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || (e.key.length !== 1 && e.key !== "Backspace")) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    if (e.type === "keydown") typed = e.key === "Backspace" ? typed.slice(0, -1) : typed + e.key;
  };
  const until = performance.now() + patience;
  const look = () => {
    const box = document.getElementById("search");
    if (!box && performance.now() < until) return;
    clearInterval(timer);
    removeEventListener("keydown", hear, true);
    removeEventListener("keypress", hear, true);
    if (!box) return;
    box.focus();
    if (!typed) return box.select();
    box.value = typed;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  addEventListener("keydown", hear, true);
  addEventListener("keypress", hear, true);
  timer = setInterval(look, 16);
  if (route.get().name !== "tasks") go("/ui/tasks");
};
