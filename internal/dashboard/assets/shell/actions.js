// What a key, the header and a page all can ask for.
import { go, route } from "../lib/router.js";

// newTask opens the dialog, which is only fetched then.
export const newTask = (given) => import("./newtask.js").then((m) => m.openNewTask(given));

// find leads to the search box.
export const find = () => {
  if (route.get().name !== "tasks") go("/ui/tasks");
  const focus = (tries) => {
    const box = document.getElementById("search");
    if (box) { box.focus(); box.select(); } else if (tries > 0) setTimeout(() => focus(tries - 1), 50);
  };
  setTimeout(() => focus(40), 0); // the page may have to be fetched first
};
