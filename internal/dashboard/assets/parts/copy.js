// A button that copies a text.
import { html, useState } from "../lib/dom.js";
import { toast } from "./toast.js";

const copy = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  throw new Error("no clipboard"); // only secure origins have one
};

export const Copy = ({ text, label = "Copy" }) => {
  const [done, setDone] = useState(false);
  const press = async () => {
    try {
      await copy(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      toast("This browser does not let the page copy: select and copy the text yourself.");
    }
  };
  return html`<button type="button" class="small" onClick=${press} aria-label=${`${label}: ${text.slice(0, 80)}`}>${done ? "Copied" : label}</button>`;
};
