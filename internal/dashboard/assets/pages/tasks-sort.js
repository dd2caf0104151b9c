// The orders of the list of tasks, for where its head has no room for them.
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

// SortNote says which tasks an order is of, where it is not of all.
export const SortNote = ({ sort, found }) => sort && found.approximate && html`<p class="quiet small-text sort-note">Sorted are the ${found.total.toLocaleString("en")} that were looked at: those that run or wait, and the newest that have ended. Narrow the search to have all in order.</p>`;
