// The dialog that makes or changes a schedule. The director checks its times while
// they are typed.
import { html, useEffect, useId, useState } from "../lib/dom.js";
import { get, post, put, query } from "../lib/api.js";
import { current } from "../lib/live.js";
import { full } from "../lib/time.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useAction } from "../parts/load.js";
import { toast } from "../parts/toast.js";
import { fulls, inZone, misses, overlaps } from "./schedule-words.js";

const pauseBefore = 300; // ms after the last key

// editSchedule opens the dialog for a schedule, or for a new one.
export const editSchedule = (schedule, then) => openDialog((close) => html`<${Edit} schedule=${schedule} then=${then} onClose=${close} />`);

const fieldsOf = (s) => ({
  name: s?.name ?? "", description: s?.description ?? "", cron_expression: s?.cron_expression ?? "0 9 * * 1-5", timezone: s ? s.timezone ?? "" : Intl.DateTimeFormat().resolvedOptions().timeZone,
  message: s?.message ?? "", whom: s?.agent_name ? `agent:${s.agent_name}` : s?.kind ? `kind:${s.kind}` : "", model: s?.model ?? "",
  timeout_seconds: s?.timeout_seconds ? String(s.timeout_seconds) : "", priority: String(s?.priority ?? 0),
  overlap: s?.overlap ?? "queue", missed: s?.missed ?? "once", window: String((s?.missed_window_seconds ?? 86400) / 3600), on_full: s?.on_full ?? "skip",
  enabled: s?.enabled ?? true,
});

// bodyOf is the request. A change sends the whole schedule, including unchanged fields
// that this dialog does not show.
const bodyOf = (f, s) => ({
  ...(s && { tier: s.tier, session_id: s.session_id, project: s.project, workspace: s.workspace, repo: s.repo, base: s.base, checks: s.checks, check_retries: s.check_retries, land: s.land, land_method: s.land_method, fast_forward: s.fast_forward, thinking: s.thinking, on_lost: s.on_lost }),
  name: f.name.trim(), description: f.description, cron_expression: f.cron_expression.trim(), timezone: f.timezone.trim(), message: f.message,
  agent_name: f.whom.startsWith("agent:") ? f.whom.slice(6) : undefined, kind: f.whom.startsWith("kind:") ? f.whom.slice(5) : undefined,
  model: f.model.trim(), timeout_seconds: Number(f.timeout_seconds) || 0, priority: Number(f.priority) || 0,
  overlap: f.overlap, missed: f.missed, missed_window_seconds: Math.round(Number(f.window) * 3600), on_full: f.on_full, enabled: f.enabled,
});

// names maps the director's field names to those of this dialog.
const names = { schedule: "cron_expression", expression: "cron_expression", prompt: "message", agent: "whom", agent_name: "whom", kind: "whom", missed_window_seconds: "window" };
const placeOf = (error) => error?.field && (names[error.field] ?? error.field);

const Edit = ({ schedule, then, onClose }) => {
  const [f, setF] = useState(() => fieldsOf(schedule));
  const change = (name) => (e) => setF({ ...f, [name]: e.target.type === "checkbox" ? e.target.checked : e.target.value });
  const check = useCheck(f.cron_expression, f.timezone);
  const [run, busy, error] = useAction(async () => {
    const saved = schedule ? await put(`/api/schedules/${encodeURIComponent(schedule.id)}`, bodyOf(f, schedule)) : await post("/api/schedules", bodyOf(f, null));
    toast(`${saved.name} is ${schedule ? "changed" : "made"}.`);
    onClose();
    then();
  });
  const wrong = error && placeOf(error) in f ? { [placeOf(error)]: sentence(error) } : {};
  const said = { ...(check.error && { [placeOf(check.error) ?? "cron_expression"]: sentence(check.error) }), ...wrong };
  const field = (props) => html`<${Field} ...${props} value=${f[props.name]} onInput=${change(props.name)} wrong=${said[props.name]} />`;
  const foot = html`<button type="button" onClick=${onClose}>Discard</button><button type="submit" class="primary" disabled=${busy}>${busy ? "Working…" : schedule ? "Save" : "Create schedule"}</button>`;
  return html`<${Dialog} title=${schedule ? `Edit ${schedule.name}` : "New schedule"} wide onClose=${onClose} onSubmit=${run} foot=${foot}>
    <div class="fields">
      ${field({ name: "name", label: "Name", first: !schedule, max: 64, hint: "letters, digits, dots, underscores, hyphens" })}
      ${field({ name: "cron_expression", label: "When", max: 256, mono: true, hint: "minute hour day month weekday, or @daily" })}
      ${field({ name: "timezone", label: "Time zone", max: 64, list: zones(), hint: "such as Europe/Berlin; empty: the director’s" })}
    </div>
    <${Checked} check=${check} />
    ${field({ name: "message", label: "Prompt", rows: 4 })}
    <div class="fields fields-wide">
      ${field({ name: "whom", label: "For", options: whoms(f.whom) })}
      ${field({ name: "overlap", label: "If it overlaps, it", options: Object.entries(overlaps) })}
      ${field({ name: "missed", label: "Missed times", options: Object.entries(misses) })}
      ${field({ name: "on_full", label: "If the queue is full", options: Object.entries(fulls) })}
    </div>
    <details class="more"><summary>More: description, model, limits</summary>
      ${field({ name: "description", label: "Description", max: 1000 })}
      <div class="fields">
        ${field({ name: "model", label: "Model", hint: "empty: the agent’s own" })}
        ${field({ name: "timeout_seconds", label: "Time limit, seconds", number: [0, 604800], hint: "empty: the agent’s own" })}
        ${field({ name: "priority", label: "Priority", number: [-10, 10] })}
        ${field({ name: "window", label: "Missed times count for, hours", number: [0.1, 8784] })}
      </div>
    </details>
    <label class="check"><input type="checkbox" checked=${f.enabled} onChange=${change("enabled")} />Enabled: it fires at its times</label>
    ${!Object.keys(wrong).length && html`<${ErrorBox} error=${error} />`}
    ${Object.keys(wrong).length > 0 && html`<p class="wrong" role="alert">It was not ${schedule ? "changed" : "made"}: ${Object.values(wrong)[0]}${error.request_id ? ` (request ${error.request_id})` : ""}</p>`}
  </${Dialog}>`;
};

const sentence = (error) => `${error.message}.${error.hint ? ` ${error.hint}.` : ""}`;

// useCheck has the director explain an expression: {data, error}.
const useCheck = (expression, timezone) => {
  const [state, setState] = useState({ data: null, error: null });
  useEffect(() => {
    const over = new AbortController();
    const timer = setTimeout(() => {
      get(`/api/cron${query({ expression: expression.trim(), timezone: timezone.trim(), n: 3 })}`, { signal: over.signal })
        .then((data) => setState({ data, error: null }), (error) => { if (!over.signal.aborted) setState({ data: null, error }); });
    }, pauseBefore);
    return () => { clearTimeout(timer); over.abort(); };
  }, [expression, timezone]);
  return state;
};

const Checked = ({ check }) => html`<p class="checked" aria-live="polite">${check.data
  ? html`<strong>${check.data.words}</strong> <span class="quiet">${check.data.timezone}</span> Next: ${check.data.next_runs.map((at) => html`<span key=${at} class="next" title=${full(at)}>${inZone(at, check.data.timezone)}</span>`)}`
  : check.error ? html`<span class="quiet">It would never fire like this.</span>` : html`<span class="quiet">Checking…</span>`}</p>`;

const Field = ({ name, label, value, onInput, wrong, hint, first, max, mono, list, rows, options, number }) => {
  const id = useId();
  const props = {
    id, name, value, onInput, "aria-invalid": wrong ? "true" : undefined, "aria-describedby": wrong || hint ? `${id}-hint` : undefined,
    ...(first && { "data-first": "" }), maxlength: max, class: mono ? "mono" : undefined, autocomplete: "off", spellcheck: Boolean(rows),
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    ${rows ? html`<textarea ...${props} rows=${rows}></textarea>`
      : options ? html`<select ...${props} onInput=${undefined} onChange=${onInput}>${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select>`
      : html`<input ...${props} ...${number && { type: "number", min: number[0], max: number[1], step: "any" }} list=${list && `${id}-list`} />`}
    ${list && html`<datalist id=${`${id}-list`}>${list.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}
    ${wrong ? html`<p class="wrong" id=${`${id}-hint`}>${wrong}</p>` : hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}</div>`;
};

const zones = () => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];

// whoms lists the known agents, their kinds, and the present choice.
const whoms = (chosen) => {
  const agents = [...current().agents.values()];
  const list = [["", "any agent"], ...agents.map((a) => [`agent:${a.name}`, a.name]).sort(), ...[...new Set(agents.map((a) => a.kind))].sort().map((k) => [`kind:${k}`, `any ${k} agent`])];
  return list.some(([key]) => key === chosen) ? list : [...list, [chosen, `${chosen.split(":")[1]} (not connected)`]];
};
