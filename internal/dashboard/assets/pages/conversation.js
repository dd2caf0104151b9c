// A conversation with an agent: its turns, and a box for the next message, which waits
// in line like any other task.
import { html, useCallback, useEffect, useRef, useState } from "../lib/dom.js";
import { draft } from "../lib/draft.js";
import { get, newKey, post, query } from "../lib/api.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { onChange, useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { money } from "../lib/money.js";
import { watch } from "../lib/notify.js";
import { useSubject } from "../lib/place.js";
import { conversationPath, go, taskPath } from "../lib/router.js";
import { clock, full, local, took } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { Card } from "../parts/card.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useAction, useLoad } from "../parts/load.js";
import { Markdown } from "../parts/markdown.js";
import { Output } from "../parts/output.js";
import { State } from "../parts/state.js";
import { Text } from "../parts/text.js";
import { startsIn } from "../parts/why.js";

const page = 20; // turns that are shown first, the latest
const pause = 1000; // ms between two reads after a change

export default ({ name, id }) => html`<${Conversation} key=${`${name} ${id}`} name=${name} id=${id === "new" ? "" : id} />`;

const Conversation = ({ name, id }) => {
  const { turns, more, showMore, error, again } = useTurns(name, id);
  const agent = useLive((board) => board.agents.get(name));
  const title = turns?.[0] ? turns[0].prompt_preview.split("\n", 1)[0] : "New conversation";
  useSubject(`${title.slice(0, 60)} · ${name}`);
  return html`
    <header class="page-head">
      <div class="head-title">
        <h1 class="cut" dir="auto" title=${title}>${title}</h1>
        <p class="quiet">with <${AgentLink} name=${name} />${turns?.length > 0 && ` · ${sumOf(turns)}`}</p>
      </div>
      ${id && html`<div><a class="button" href=${conversationPath(name, "new")}>New conversation</a></div>`}
    </header>
    <div class="columns">
      <section class="card conversation" aria-label="Turns">
        <${ErrorBox} error=${error} retry=${again} />
        ${id && !turns && !error && html`<p class="card-body quiet">Loading…</p>`}
        ${id && turns?.length === 0 && html`<p class="card-body quiet">This conversation has no turns here: it is new, or its turns have been pruned.</p>`}
        ${more && html`<p class="card-body"><button type="button" onClick=${showMore}>Earlier turns</button></p>`}
        <ol class="turns">${turns?.map((task) => html`<${Turn} key=${task.queue_id} task=${task} name=${name} />`)}</ol>
        <${Message} name=${name} id=${id} agent=${agent} sent=${again} />
      </section>
      <aside class="stack" aria-label="Other conversations"><${Others} name=${name} id=${id} /></aside>
    </div>`;
};

const sumOf = (turns) => {
  const cost = money(turns.reduce((sum, t) => sum + (t.result?.cost_usd ?? 0), 0));
  return [`${turns.length} ${turns.length === 1 ? "turn" : "turns"}`, cost].filter(Boolean).join(" · ");
};

// useTurns returns the turns of a conversation, oldest first, in full. Ended turns are
// read once.
const useTurns = (name, id) => {
  const [state, setState] = useState({ turns: null, more: false, error: null });
  const [most, setMost] = useState(page);
  const ended = useRef(new Map()), asking = useRef(null);
  const again = useCallback(async () => {
    if (!id) return;
    asking.current?.abort();
    const { signal } = asking.current = new AbortController();
    try {
      const found = await get("/api/search" + query({ q: `session:"${id}"`, limit: most }), { signal });
      const turns = await Promise.all(found.tasks.map(async (t) => {
        const have = ended.current.get(t.queue_id) ?? await get(`/api/queue/${encodeURIComponent(t.queue_id)}`, { signal });
        if (isEnded(have.state)) ended.current.set(t.queue_id, have);
        return have;
      }));
      turns.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
      if (!signal.aborted) setState({ turns, more: Boolean(found.next), error: null });
    } catch (error) {
      if (!signal.aborted) setState((was) => ({ ...was, error }));
    }
  }, [id, most]);
  useEffect(() => {
    again();
    let timer = 0;
    const stop = onChange((event, data) => {
      if (event === "change" && !data.tasks?.some((t) => t.agent === name || t.queue === `agent:${name}`)) return;
      timer ||= setTimeout(() => { timer = 0; again(); }, pause);
    });
    return () => { stop(); clearTimeout(timer); asking.current?.abort(); };
  }, [again, name]);
  return { ...state, again, showMore: () => setMost((n) => n + page) };
};

const Turn = ({ task, name }) => {
  const ended = isEnded(task.state), answer = task.result?.output;
  return html`
    <li class="turn">
      <div class="turn-asked">
        <p class="turn-head"><strong>${task.source_user_email || task.source_agent || task.source_job || "You"}</strong>
          <a class="quiet" href=${taskPath(task.queue_id)} title=${full(task.created_at)}>${clock(task.created_at)}</a>
          ${isWaiting(task.state) && html`<span class="turn-place">${placeOf(task)}</span>`}</p>
        <${Text} text=${task.prompt ?? task.prompt_preview} />
      </div>
      ${task.state !== "pending" && html`<div class="turn-answer">
        <p class="turn-head"><strong>${task.agent || name}</strong> <span class="quiet">${figuresOf(task)}</span> ${task.state !== "completed" && html`<${State} state=${task.state} />`}</p>
        ${task.calls?.length > 0 && html`<details class="turn-calls"><summary>${task.calls.length} tool ${task.calls.length === 1 ? "call" : "calls"}</summary>
          <ul>${task.calls.map((call, i) => html`<li key=${i}><code>${call.tool}</code> <span class="quiet">${call.waited_seconds > 0 && `waited ${took(call.waited_seconds)} · `}${took(call.took_seconds - call.waited_seconds)}${call.outcome !== "ok" && ` · ${call.outcome}`}</span></li>`)}</ul></details>`}
        ${answer && html`<${Markdown} text=${answer} />`}
        ${ended && task.state !== "completed" && html`<p class="note is-bad">${task.message || "It did not complete."}</p>`}
        ${ended && !answer && task.state === "completed" && html`<p class="quiet">It gave no answer.</p>`}
        ${!ended && html`<${Output} id=${task.queue_id} state=${task.state} />`}
      </div>`}
    </li>`;
};

const placeOf = (task) => [task.waiting_for && local(task.waiting_for.text), task.position > 0 && `${task.position_approximate ? "about " : ""}number ${task.position} in line`, task.eta && `starts ${startsIn(task.eta)}`].filter(Boolean).join(" · ") || "waiting";

const figuresOf = (task) => [
  task.ended_at && clock(task.ended_at),
  task.started_at && task.ended_at && took((Date.parse(task.ended_at) - Date.parse(task.started_at)) / 1000),
  money(task.result?.cost_usd),
].filter(Boolean).join(" · ");

// Message sends the next turn. Each text has one idempotency key, so that it is sent
// only once, however often the button is pressed.
const Message = ({ name, id, agent, sent }) => {
  const may = useMay("submit");
  const kept = draft(`message ${name} ${id}`);
  const [text, setText] = useState(() => kept.read() ?? "");
  const key = useRef({ text: "", key: "" });
  const type = (value) => { setText(value); kept.write(value); };
  const [send, busy, error] = useAction(async () => {
    if (!text.trim()) return;
    if (key.current.text !== text) key.current = { text, key: newKey() };
    const body = { message: text, overflow: "persist", ...(id ? { session_id: id } : { new_session: true }) };
    const made = await post(`/api/agents/${encodeURIComponent(name)}/chat`, body, { headers: { Prefer: "respond-async", "Idempotency-Key": key.current.key } });
    type("");
    watch(made.execution.id);
    if (!id && made.session_id) go(conversationPath(name, made.session_id), { replace: true });
    else if (!id) go(taskPath(made.execution.id));
    else sent();
  });
  const running = agent?.current.find((t) => t.mode !== "bypass");
  return html`
    <form class="message" onSubmit=${(e) => { e.preventDefault(); if (!busy) send(); }}>
      <${ErrorBox} error=${error} title="The message was not sent" />
      <label class="unseen" for="message">Message to ${name}</label>
      <textarea id="message" rows="3" dir="auto" maxlength="1000000" value=${text} onInput=${(e) => type(e.target.value)} placeholder=${`Message ${name}…`}
        onKeyDown=${(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); if (!busy) send(); } }}></textarea>
      <p class="message-foot"><span class="quiet">${!agent ? "This agent is not known here." : running && agent.in_use >= agent.slots ? `It is running ${running.prompt_preview.slice(0, 60)}: this waits its turn.` : "Ctrl+Enter sends it."}</span>
        <button type="submit" class="primary" disabled=${!may.ok || busy || !text.trim()} title=${may.why || undefined}>${busy ? "Sending…" : "Send"}</button></p>
    </form>`;
};

const Others = ({ name, id }) => {
  const { data, error, again } = useLoad(`/api/sessions${query({ agent: name, limit: 20 })}`, 15_000);
  return html`
    <${Card} title=${`Conversations with ${name}`}>
      <${ErrorBox} error=${error} retry=${again} />
      ${data?.sessions.length === 0 && html`<p class="card-body quiet">There is none yet.</p>`}
      <ul class="list">${data?.sessions.map((s) => html`
        <li key=${s.session_id} class="run-row"><p>${s.session_id === id ? html`<strong class="cut">${s.title || s.session_id}</strong>` : html`<a class="cut" href=${conversationPath(name, s.session_id)}>${s.title || s.session_id}</a>`}</p>
          <p class="quiet">${s.turns} ${s.turns === 1 ? "turn" : "turns"}, <span title=${full(s.last_used_at)}>${clock(s.last_used_at)}</span></p></li>`)}</ul>
    </${Card}>`;
};
