// A waiting task in a line: place, first words, age.
import { html, cx } from "../lib/dom.js";
import { Icon } from "./icon.js";
import { taskPath } from "../lib/router.js";
import { age, local } from "../lib/time.js";

// onPick gets plain clicks; otherwise the chip is a link.
export const Chip = ({ task, place, now, picked, gone, onPick }) => {
  const click = onPick && ((e) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); onPick(task); } });
  return html`<a class=${cx("chip", picked && "chip-picked", gone && "gone")} href=${taskPath(task.queue_id)} onClick=${click}
    aria-current=${picked ? "true" : undefined} title=${[task.prompt_preview, task.queue_id, task.waiting_for && local(task.waiting_for.text)].filter(Boolean).join("\n")}>
    ${place ? html`<b>${place}</b> ` : null}${task.state === "parked" && html`<span class="tone-warn"><${Icon} name="clock" /><span class="unseen">parked: </span></span> `}<span class="cut" dir="auto">${task.tool && task.mode === "tool" ? `${task.tool} ` : ""}${task.prompt_preview}</span> <span class="quiet chip-age">${gone ? "gone" : age(task.created_at, now)}</span></a>`;
};
