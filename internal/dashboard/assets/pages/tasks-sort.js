// The sort menu of the task list, for narrow windows.
import { html } from "../lib/dom.js";
import { go } from "../lib/router.js";
import { Menu } from "../parts/menu.js";

const orders = [
  ["", "Running, waiting, ended"], ["-ended", "Ended last"], ["-created", "Submitted last"], ["created", "Submitted first"],
  ["-duration", "Longest run"], ["duration", "Shortest run"], ["-wait", "Longest wait"], ["-priority", "Highest priority"], ["agent", "Agent"],
];

export const SortMenu = ({ sort, pathOf }) => html`<${Menu} label="Sort" items=${orders.map(([value, text]) => ({
  text, checked: sort === value, act: () => go(pathOf({ sort: value })),
}))}>Sort</${Menu}>`;

// SortNote says which tasks are sorted, if not all are.
export const SortNote = ({ sort, found }) => sort && found.approximate && html`<p class="quiet small-text sort-note">Sorted are the ${found.total.toLocaleString("en")} tasks that were searched: those that run or wait, and the newest ended ones. Narrow the search to have all in order.</p>`;
