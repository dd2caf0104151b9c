// The changes of a task in its repository: totals, files and the patch, in one column or
// two. A comment on lines goes into the message box of its conversation.
import { cx, html, useEffect, useId, useMedia, useMemo, useState, useStore } from "../lib/dom.js";
import { file as load } from "../lib/api.js";
import { draft } from "../lib/draft.js";
import { useMay } from "../lib/me.js";
import { diffView } from "../lib/prefs.js";
import { conversationPath, go } from "../lib/router.js";
import { save } from "../lib/save.js";
import { Copy } from "../parts/copy.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useAction, useLoad } from "../parts/load.js";
import { parse, placeOf, sides, visible } from "../parts/patch.js";
import { languageOf, pieces, syntax } from "../parts/syntax.js";
import { toast } from "../parts/toast.js";

const page = 300; // lines of a file that are rendered at a time
const mostOpen = 600; // lines rendered without a click
const mostFiles = 100; // files listed without a click

const path = (task) => `/api/queue/${encodeURIComponent(task.queue_id)}/diff`;
const count = (n, what) => `${n.toLocaleString()} ${what}${n === 1 ? "" : "s"}`;

export const Changes = ({ task }) => {
  const changes = task.result.changes;
  const some = changes.files_changed > 0;
  const { data, error, again } = useLoad(some ? path(task) : "");
  const files = useMemo(() => (data ? parse(data.patch ?? "") : []), [data]);
  const view = useStore(diffView), narrow = useMedia("(max-width: 760px)"), id = useId();
  return html`
    <section class="card diff" aria-labelledby=${id}>
      <header class="card-head">
        <h2 id=${id}>Changes</h2>
        <span class="quiet">${some ? html`${count(changes.files_changed, "file")} <${Lines} of=${changes} />` : "no files"}</span>
        <span class="output-tools">
          ${some && !narrow && ["unified", "split"].map((one) => html`<button type="button" key=${one} aria-pressed=${view === one} onClick=${() => diffView.set(one)}>${one === "split" ? "Split" : "Unified"}</button>`)}
          ${some && html`<${Download} task=${task} />`}
        </span>
      </header>
      <${Where} changes=${changes} />
      <${ErrorBox} error=${error} title="The changes could not be loaded" retry=${again} />
      ${some && !data && !error && html`<p class="card-body quiet">Loading…</p>`}
      ${data && html`<${Files} list=${data.files ?? []} all=${data.files_changed} files=${files} base=${id} />`}
      ${data?.cut && html`<p class="output-bar"><strong>This is not the whole patch:</strong> <span dir="auto">${data.cut}.</span></p>`}
      ${data && html`<${Patch} files=${files} task=${task} split=${view === "split" && !narrow} base=${id} />`}
    </section>`;
};

const Lines = ({ of }) => html`<span class="diff-count"><span class="tone-good">+${of.insertions.toLocaleString()}</span> <span class="tone-bad">−${of.deletions.toLocaleString()}</span></span>`;

// Where shows the branch and the commits.
const Where = ({ changes }) => {
  const short = (hash) => html`<code title=${hash}>${hash.slice(0, 9)}</code>`;
  return html`<p class="output-bar quiet">
    ${changes.branch && html`<span>branch <code dir="auto">${visible(changes.branch)}</code> <${Copy} text=${changes.branch} label="Copy the branch" /></span>`}
    ${changes.head && html`<span>${changes.base && html`${short(changes.base)}…`}${short(changes.head)}</span>`}
    <span>${count(changes.commits, "commit")}</span>
    ${changes.uncommitted && html`<span>${changes.workspace !== "folder" ? "leftover changes were committed for it" : "not all of it is committed"}</span>`}
    <span class="cut" title=${changes.dir}>${changes.workspace !== "folder" ? "in a worktree of its own" : "in"} <code>${visible(changes.dir)}</code></span></p>`;
};

const Download = ({ task }) => {
  const [run, busy, error] = useAction(async () => {
    const { blob, headers } = await load(`${path(task)}?format=patch`);
    save(blob, `${task.queue_id}.patch`);
    const cut = headers.get("Signalbox-Patch-Cut");
    if (cut) toast(`This is not the whole patch: ${cut}.`, "bad");
  });
  return html`<button type="button" disabled=${busy} onClick=${run}>${busy ? "Loading…" : "Download"}</button>
    ${error && html`<${ErrorBox} error=${error} title="The patch could not be loaded" />`}`;
};

const words = { added: "added", modified: "", deleted: "deleted", renamed: "renamed", copied: "copied", typechange: "type changed" };

// Files lists the changed files, with links to their parts of the patch.
const Files = ({ list, all, files, base }) => {
  const [most, setMost] = useState(mostFiles);
  const known = useMemo(() => new Map(files.map((file, i) => [file.path, i])), [files]);
  const show = (e, i) => {
    e.preventDefault();
    const there = document.getElementById(`${base}-${i}`);
    there.open = true;
    there.querySelector("summary").focus();
    there.scrollIntoView({ block: "start" });
  };
  return html`<ul class="diff-files" aria-label="Changed files">
    ${list.slice(0, most).map((f) => {
      const at = known.get(f.path), name = visible(f.from ? `${f.from} → ${f.path}` : f.path);
      return html`<li key=${f.path}>${at === undefined ? html`<code>${name}</code>` : html`<a href=${`#${base}-${at}`} onClick=${(e) => show(e, at)}><code>${name}</code></a>`}
        ${words[f.status] && html`<span class="quiet">${words[f.status]}</span>`}
        ${f.binary ? html`<span class="quiet">binary</span>` : html`<${Lines} of=${f} />`}</li>`;
    })}
    ${list.length > most && html`<li><button type="button" class="small" onClick=${() => setMost((n) => n + 10 * mostFiles)}>Show more files (${(list.length - most).toLocaleString()})</button></li>`}
    ${all > list.length && html`<li class="quiet">… and ${count(all - list.length, "file")}</li>`}
  </ul>`;
};

const Patch = ({ files, task, split, base }) => {
  let lines = 0;
  return files.map((file, i) => {
    lines += file.lines;
    return html`<${File} key=${i} file=${file} task=${task} split=${split} id=${`${base}-${i}`} first=${lines <= mostOpen} />`;
  });
};

// File is the patch of one file. While folded it renders nothing.
const File = ({ file, task, split, id, first }) => {
  const [open, setOpen] = useState(first), [most, setMost] = useState(page);
  const name = visible(file.path);
  return html`
    <details class="diff-file" id=${id} open=${open} onToggle=${(e) => { if (e.currentTarget.open !== open) setOpen(e.currentTarget.open); }}>
      <summary><code>${file.from ? `${visible(file.from)} → ${name}` : name}</code> <span class="quiet">${file.binary ? "binary" : file.lines > 0 ? count(file.lines, "line") : ""}</span></summary>
      ${open && html`
        ${file.notes.map((note, i) => html`<p key=${i} class="diff-note quiet">${visible(note)}</p>`)}
        ${file.binary && html`<p class="diff-note quiet">A binary file is not shown.</p>`}
        ${file.lines > 0 && html`<${Hunks} file=${file} task=${task} split=${split} most=${most} name=${name} />`}
        ${file.lines > most && html`<p class="diff-note"><button type="button" class="small" onClick=${() => setMost((n) => n + page)}>Show more lines (${(file.lines - most).toLocaleString()})</button></p>`}`}
    </details>`;
};

// useColours returns the coloured pieces of each line of a file, once its syntax is loaded.
const useColours = (file) => {
  const language = languageOf(file.path);
  const [known, setKnown] = useState(null);
  useEffect(() => {
    let gone = false;
    if (language) syntax(language).then((one) => { if (!gone) setKnown(one); }, () => {}); // without it there are no colours
    return () => { gone = true; };
  }, [language]);
  return useMemo(() => {
    const colours = new Map();
    for (const { lines } of known ? file.hunks : []) {
      for (const without of ["add", "del"]) { // the old text, then the new text
        const side = lines.filter((line) => line.kind !== without && line.kind !== "note");
        for (const [i, one] of pieces(known, side.map((line) => visible(line.text))).entries()) colours.set(side[i], one);
      }
    }
    return colours;
  }, [file, known]);
};

// Hunks shows the lines. The numbers are buttons for comments; Shift extends to the last
// pressed one. Arrow keys move between lines, with Shift they select.
const Hunks = ({ file, task, split, most, name }) => {
  const may = useMay("submit");
  const [marked, setMarked] = useState(null); // {from, to}: places in all
  const all = useMemo(() => file.hunks.flatMap((hunk) => hunk.lines), [file]);
  const [at, setAt] = useState(() => all.findIndex((line) => line.kind !== "note"));
  const colours = useColours(file);
  const talks = Boolean(task.session_id && task.agent && may.ok);
  const span = (to, keep) => ({ from: keep ? (marked?.from ?? at) : to, to });
  const comment = (to, keep) => {
    const lines = span(to, keep);
    setMarked(lines);
    setAt(to);
    const [from, end] = [Math.min(lines.from, lines.to), Math.max(lines.from, lines.to)];
    const place = placeOf(name, all.slice(from, end + 1).filter((line) => line.kind !== "note"));
    openDialog((close) => html`<${Comment} task=${task} place=${place} onClose=${() => { close(); setMarked(null); }} />`);
  };
  const key = (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key], button = e.target.closest("button[data-at]");
    if (!by || !button || e.altKey || e.ctrlKey || e.metaKey) return;
    const buttons = [...e.currentTarget.querySelectorAll("button[data-at]")];
    const next = buttons[buttons.indexOf(button) + by];
    if (!next) return;
    e.preventDefault();
    const to = Number(next.dataset.at);
    setMarked(e.shiftKey ? span(to, true) : null);
    setAt(to);
    next.focus();
  };
  const isMarked = (i) => marked && Number.isInteger(i) && i >= Math.min(marked.from, marked.to) && i <= Math.max(marked.from, marked.to);
  const number = (line, i, side) => {
    const n = line?.[side];
    if (!n) return html`<td class="diff-n"></td>`;
    if (!talks || (side === "old" && line.kind === "same")) return html`<td class="diff-n">${n}</td>`;
    return html`<td class="diff-n"><button type="button" class="plain" data-at=${i} tabindex=${i === at ? 0 : -1} aria-label=${`Comment on line ${n}${line.kind === "del" ? ", which was removed" : ""}`} title="Comment (Shift: up to here)"
      onClick=${(e) => comment(i, e.shiftKey)}>${n}</button></td>`;
  };
  const signs = { add: "+", del: "-", same: " ", note: "\\" };
  const code = (line) => colours.get(line)?.map(([kind, part]) => (kind ? html`<span class=${`code-${kind}`}>${part}</span>` : part)) ?? visible(line.text);
  const text = (line) => (line ? html`<td class=${cx("diff-text", `is-${line.kind}`)}><code>${signs[line.kind]}${code(line)}</code></td>` : html`<td class="diff-text is-none"></td>`);
  let i = 0;
  const rows = [];
  for (const [h, hunk] of file.hunks.entries()) {
    if (i >= most) break;
    rows.push(html`<tr key=${`h${h}`} class="diff-hunk"><td colspan=${split ? 4 : 3}><code>${visible(hunk.head)}</code></td></tr>`);
    const lines = hunk.lines.slice(0, most - i), begin = i, places = new Map(lines.map((line, k) => [line, begin + k]));
    i += hunk.lines.length;
    if (split) {
      for (const [k, row] of sides(lines).entries()) {
        const was = row.old && places.get(row.old), is = row.now && places.get(row.now);
        rows.push(html`<tr key=${`s${h}-${k}`} class=${cx((isMarked(was) || isMarked(is)) && "is-marked")}>${number(row.old, was, "old")}${text(row.old)}${number(row.now, is, "now")}${text(row.now)}</tr>`);
      }
    } else {
      for (const line of lines) {
        const k = places.get(line);
        rows.push(html`<tr key=${k} class=${cx(isMarked(k) && "is-marked")}>${number(line, k, "old")}${number(line, k, "now")}${text(line)}</tr>`);
      }
    }
  }
  return html`<div class="diff-scroll" role="region" tabindex="0" aria-label=${`Changes of ${name}`} dir="ltr" onKeyDown=${key}>
    <table class=${cx("diff-table", split && "is-split")}>${split && html`<colgroup><col class="diff-side" /><col /><col class="diff-side" /><col /></colgroup>`}<tbody>${rows}</tbody></table></div>`;
};

// Comment adds a comment to the next message to the agent.
const Comment = ({ task, place, onClose }) => {
  const [text, setText] = useState(""), id = useId();
  const kept = draft(`message ${task.agent} ${task.session_id}`);
  const add = (leave) => {
    if (!text.trim()) return;
    kept.write([kept.read(), `${place} ${text.trim()}`].filter(Boolean).join("\n"));
    onClose();
    if (leave) go(conversationPath(task.agent, task.session_id));
    else toast(`The comment is in the message to ${task.agent}. Send it with Open conversation.`);
  };
  const foot = html`<button type="button" onClick=${onClose}>Discard</button>
    <button type="button" disabled=${!text.trim()} onClick=${() => add(false)}>Add, and comment more</button>
    <button type="submit" class="primary" disabled=${!text.trim()}>Continue with ${task.agent}</button>`;
  return html`<${Dialog} title="Comment" wide onClose=${onClose} onSubmit=${() => add(true)} foot=${foot}>
    <p class="quiet">It becomes part of the next message of the conversation, which you see before it is sent.</p>
    <p><label for=${id}><code>${place}</code></label><textarea id=${id} data-first="" dir="auto" rows="4" maxlength="20000" value=${text} onInput=${(e) => setText(e.target.value)}
      onKeyDown=${(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) add(true); }}></textarea></p>
  </${Dialog}>`;
};
