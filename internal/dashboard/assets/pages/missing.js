// The page for unknown paths.
import { html } from "../lib/dom.js";
import { Empty } from "../parts/empty.js";

export default () => html`<div class="page-head"><h1>There is no such page</h1></div>
  <${Empty} title="The address may be mistyped, or from another version." text="The pages are Now, Tasks, Agents, Capacity, Schedules and Audit." command="signalbox status" />`;
