// Form fields of dialogs.
import { html, useId } from "../lib/dom.js";
import { useLive } from "../lib/live.js";

// Field is a labelled input with the director's error below it.
export const Field = ({ label, hint, error, name, children }) => {
  const id = useId();
  const wrong = error?.field === name || (name === "agent" && error?.field === "kind");
  const note = wrong ? error.message : hint;
  return html`<div class="field"><label for=${id}>${label}</label>
    ${children({ id, name, "aria-invalid": wrong ? "true" : undefined, "aria-describedby": note ? `${id}-note` : undefined })}
    ${note && html`<p id=${`${id}-note`} class=${wrong ? "wrong" : "hint"} role=${wrong ? "alert" : undefined}>${note}</p>`}</div>`;
};

// Who selects who may take a task: "", "agent:NAME" or "kind:KIND".
export const Who = ({ props, value, onChange }) => {
  const agents = useLive((b) => b.agents);
  const list = [...agents.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const kinds = [...new Set(list.map((a) => a.kind))].sort();
  const [sort, name] = value.split(/:(.*)/s), absent = name && !(sort === "agent" ? agents.has(name) : kinds.includes(name));
  return html`<select ...${props} value=${value} onChange=${onChange}>
    <option value="">any agent</option>
    ${absent && html`<option value=${value}>${name} (unknown)</option>`}
    ${list.length > 0 && html`<optgroup label="one agent">${list.map((a) => html`<option key=${a.name} value=${`agent:${a.name}`}>${a.name}${a.waiting > 0 ? ` (${a.waiting} waiting)` : ""}${a.face === "down" ? " (down)" : ""}</option>`)}</optgroup>`}
    ${kinds.length > 0 && html`<optgroup label="a kind of agent">${kinds.map((k) => html`<option key=${k} value=${`kind:${k}`}>any ${k}</option>`)}</optgroup>`}
  </select>`;
};

// routeOf converts a choice of Who to the API's {agent} or {kind}; neither for any agent.
export const routeOf = (who) => {
  const [kind, name] = who.split(/:(.*)/s);
  return name ? { [kind]: name } : {};
};

// whoOfQueue is the choice of Who for the queue of a task.
export const whoOfQueue = (queue) => (queue === "work" ? "" : queue.replace(/^pool:/, "kind:"));
