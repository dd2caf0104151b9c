// The keys that work here, and a switch for them.
import { html, useStore } from "../lib/dom.js";
import { listed } from "../lib/keys.js";
import { keysOn, theme } from "../lib/prefs.js";
import { Dialog, openDialog } from "../parts/dialog.js";

const Help = ({ groups, onClose }) => {
  const on = useStore(keysOn) === "on", chosen = useStore(theme);
  return html`<${Dialog} title="Keys" wide onClose=${onClose} foot=${html`<button type="button" class="primary" onClick=${onClose}>Close</button>`}>
    <div class="keys">${groups.map(([group, keys]) => html`<section key=${group}><h3>${group}</h3>
      <dl>${keys.map(([key, text]) => [html`<dt>${key.split(" ").map((k) => html`<kbd>${k}</kbd> `)}</dt>`, html`<dd>${text}</dd>`])}</dl></section>`)}</div>
    <label class="check"><input type="checkbox" data-first="" checked=${on} onChange=${(e) => keysOn.set(e.target.checked ? "on" : "off")} />Single-key shortcuts are on</label>
    <fieldset class="themes"><legend>Colours</legend>${[["system", "like the system"], ["light", "light"], ["dark", "dark"]].map(([value, text]) => html`<label key=${value} class="check">
      <input type="radio" name="theme" checked=${chosen === value} onChange=${() => theme.set(value)} />${text}</label>`)}</fieldset>
  </${Dialog}>`;
};

let open = false;
export const openHelp = () => {
  if (open) return;
  open = true;
  const groups = listed();
  openDialog((close) => html`<${Help} groups=${groups} onClose=${() => { open = false; close(); }} />`);
};
