// The searches above the task list, each with its number of matches: built-in ones, and
// the views saved in this browser.
import { html, cx, useEffect, useId, useState, useStore } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { onChange, useLive } from "../lib/live.js";
import { useMe } from "../lib/me.js";
import { views as kept } from "../lib/prefs.js";
import { go, searchPath } from "../lib/router.js";
import { longestName, mostViews, nameOf, putView, readViews, sameView } from "../lib/views.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";
import { toast } from "../parts/toast.js";

const waiting = "state:waiting", running = "state:working,dispatching,cancelling";
const samples = [["all", ""], ["waiting", waiting], ["running", running], ["done", "state:completed"], ["failed today", "state:failed,timeout since:24h"], ["schedules", "source:scheduler"]];

const again = 10_000; // ms between two counts while tasks change

// useCounts returns the counts of queries. Those of waiting and running tasks are live; the
// others are read now and then, with one request.
const useCounts = (queries) => {
  const [counts, setCounts] = useState({});
  const list = JSON.stringify(queries);
  useEffect(() => {
    const over = new AbortController();
    let timer = 0;
    const count = async () => {
      timer = 0;
      if (document.hidden) return;
      try {
        const answer = await post("/api/search/counts", { queries }, { signal: over.signal });
        setCounts(Object.fromEntries(answer.counts.map((c, i) => [queries[i], c])));
      } catch { /* a chip without a count works too */ }
    };
    count();
    const stop = onChange((event, data) => {
      if (event !== "change" || data.tasks?.length || data.gone?.length) timer ||= setTimeout(count, again);
    });
    return () => { over.abort(); clearTimeout(timer); stop(); };
  }, [list]);
  const limited = useMe()?.agents?.length > 0; // lengths of lines include tasks that the user may not see
  const live = useLive(inFlight), [waits, runs] = live.split(" ");
  if (live && !limited) return { ...counts, [waiting]: { total: Number(waits) }, [running]: { total: Number(runs) } };
  return counts;
};

// inFlight is the number of waiting and running tasks on the board, as one text, so that
// an unchanged value renders nothing.
const inFlight = (b) => {
  if (!b.ready) return "";
  let waits = 0, runs = 0;
  for (const line of [...b.agents.values(), ...b.queues.values()]) waits += line.waiting;
  for (const t of b.tasks.values()) runs += t.state === "working" || t.state === "dispatching" || t.state === "cancelling" ? 1 : 0;
  return `${waits} ${runs}`;
};

// countText marks a count that may be too low with a plus.
const countText = (count) => count && (count.total > 0 || !count.approximate) && `${count.total.toLocaleString("en")}${count.approximate ? "+" : ""}`;

// Views: shown is the present list as a view without a name.
export const Views = ({ shown, sort }) => {
  const saved = readViews(useStore(kept)), current = saved.find((v) => sameView(v, shown));
  const counts = useCounts([...new Set([...samples.map(([, q]) => q), ...saved.map((v) => v.q)])].slice(0, 40));
  const chip = (key, name, path, q, picked) => html`<a key=${key} class=${cx("chip", picked && "chip-picked")} href=${path} title=${q || undefined} aria-current=${picked ? "true" : undefined}><span class="cut" dir="auto">${name}</span> <b>${countText(counts[q])}</b></a>`;
  return html`<div class="chips searches">
    ${samples.map(([name, q]) => chip(`sample ${name}`, name, searchPath(q, { sort }), q, !current && shown.q === q))}
    ${saved.map((v) => chip(`view ${v.name}`, v.name, pathOf(v), v.q, v === current))}
    <${Menu} label="Views" name="views" items=${[
      { text: current ? "Save as another view…" : "Save as a view…", act: () => ask(shown), off: saved.length >= mostViews && `There are ${mostViews} already: delete one first.` },
      current && { text: "Rename…", act: () => ask(current, current.name) },
      current && { text: "Delete", danger: true, act: () => drop(current) },
    ]}>Views</${Menu}></div>`;
};

const pathOf = ({ q, sort, group, hide }) => searchPath(q, { sort, group, hide });

const ask = (view, was) => openDialog((close) => html`<${Name} view=${view} was=${was} onClose=${close} />`);

// Name is the dialog for the name of a view: a new one, or the one called was.
const Name = ({ view, was, onClose }) => {
  const [text, setText] = useState(was ?? ""), id = useId();
  const name = nameOf(text), taken = name !== was && readViews(kept.get()).some((v) => v.name === name);
  const save = () => {
    if (!name) return;
    const next = putView(readViews(kept.fresh()), { ...view, name }, was);
    onClose();
    if (!next) return toast(`There are ${mostViews} views already: delete one first.`, "bad");
    kept.set(JSON.stringify(next));
    go(pathOf(view), { replace: true });
    toast(was ? `The view is now called ${name}.` : `The view ${name} is saved in this browser.`);
  };
  return html`<${Dialog} title=${was ? "Rename the view" : "Save as a view"} onClose=${onClose} onSubmit=${save}
    foot=${html`<button type="button" onClick=${onClose}>Go back</button><button type="submit" class="primary" disabled=${!name}>Save</button>`}>
    <div class="field"><label for=${id}>Name</label>
      <input id=${id} data-first="" dir="auto" value=${text} maxlength=${longestName} onInput=${(e) => setText(e.target.value)} autocomplete="off" aria-describedby=${`${id}-hint`} />
      <p class="hint" id=${`${id}-hint`}>${taken ? "It replaces the view with that name." : "Search, order, grouping and columns, as they are now. Its address shows the same to others."}</p></div>
  </${Dialog}>`;
};

const drop = ({ name }) => {
  kept.set(JSON.stringify(readViews(kept.fresh()).filter((v) => v.name !== name)));
  toast(`The view ${name} is deleted.`);
};
