// Terminal is a shell on an agent: xterm.js over the director's WebSocket. The library
// is loaded when a terminal is opened.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { strictStyles } from "./xterm-styles.js";

const vendor = new URL("../vendor/xterm/", import.meta.url);
const maxPiece = 32 << 10; // bytes of one message; the director takes 64 KiB
const leaveKey = "Ctrl+Shift+X";

const colours = {
  background: "#0d1117", foreground: "#e6e9ee", cursor: "#e6e9ee", selectionBackground: "#33507c",
  black: "#3b434f", brightBlack: "#8b96a5", red: "#ff8a80", brightRed: "#ffb4ab", green: "#6fd08c", brightGreen: "#9be8b0",
  yellow: "#e8b84a", brightYellow: "#ffd479", blue: "#7fb0ff", brightBlue: "#a9caff", magenta: "#d69cff", brightMagenta: "#e7c3ff",
  cyan: "#6fd3dc", brightCyan: "#a0eaf0", white: "#d5dae1", brightWhite: "#ffffff",
};

// Only a click opens a terminal, never an address: a foreign link must not open a
// shell.
let asked = "";
export const askTerminal = (agent) => { asked = agent; };
// takeAsked reports once whether a terminal of an agent was requested.
export const takeAsked = (agent) => {
  const mine = asked === agent;
  asked = "";
  return mine;
};

// Terminal opens a terminal when it is mounted, and closes it when it is removed.
// onClose closes the view.
export const Terminal = ({ agent, onClose }) => {
  const [round, setRound] = useState(0);
  const [state, setState] = useState({ text: "connecting…", over: false });
  const host = useRef(null), close = useRef(null);
  useEffect(() => open(agent, host.current, setState, () => close.current?.focus()), [agent, round]);
  return html`
    <section class="card terminal" aria-labelledby="terminal-head">
      <header class="card-head">
        <h2 id="terminal-head">Terminal of ${agent}</h2>
        <span class="quiet">${state.text}</span>
        <span class="terminal-tools">
          ${state.over && html`<button type="button" onClick=${() => setRound(round + 1)}>Open again</button>`}
          <button type="button" ref=${close} onClick=${onClose}>Close terminal</button>
        </span>
      </header>
      <div class="terminal-screen" ref=${host}></div>
      <p class="terminal-note quiet">The terminal runs outside the queue and holds no slot. ${leaveKey} moves the keyboard focus out of it. The audit log records that you opened it, not what you type.</p>
    </section>`;
};

// open returns a function that closes it.
const open = (agent, host, tell, leave) => {
  let over = false, end = () => {};
  tell({ text: "connecting…", over: false });
  connect(agent, host, tell, leave, () => over).then((stop) => { over ? stop() : end = stop; }, (cause) => {
    if (!over) tell({ text: cause.hint ? `${cause.message}. ${cause.hint}.` : cause.message, over: true });
  });
  return () => { over = true; end(); };
};

const connect = async (agent, host, tell, leave, gone) => {
  const Screen = await library();
  if (gone()) return () => {};
  const ticket = await post(`/api/agents/${encodeURIComponent(agent)}/terminal`);
  if (gone()) return () => {}; // the ticket expires by itself
  const unstrict = strictStyles();
  const screen = new Screen({
    theme: colours, fontSize: 14, scrollback: 5000, cursorBlink: false,
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    linkHandler: { activate() {} }, // links in the output are not followed
  });
  screen.open(host);
  screen.attachCustomKeyEventHandler((e) => {
    if (!(e.ctrlKey && e.shiftKey && e.code === "KeyX")) return true;
    if (e.type === "keydown") { e.preventDefault(); leave(); }
    return false;
  });
  const unfit = fit(screen, host);
  const hangUp = talk(screen, ticket, tell);
  return () => { hangUp(); unfit(); screen.dispose(); unstrict(); };
};

let loading = null;

const library = () => {
  loading ??= load().catch((cause) => {
    loading = null; // a retry may succeed
    throw cause;
  });
  return loading;
};

const load = async () => {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("xterm.css", vendor).href;
  const styled = new Promise((done, failed) => { link.onload = done; link.onerror = () => failed(new Error("the terminal's style was not loaded; reload the page")); });
  document.head.append(link);
  const [library] = await Promise.all([import("../vendor/xterm/xterm.mjs"), styled]);
  return library.Terminal;
};

// fit adapts columns and rows to the size of the element.
const fit = (screen, host) => {
  const look = () => {
    const cells = host.querySelector(".xterm-screen");
    const width = cells?.offsetWidth / screen.cols, height = cells?.offsetHeight / screen.rows;
    if (!width || !height) return;
    const { paddingTop, paddingBottom } = getComputedStyle(host); // only whole rows
    const cols = clamp((host.clientWidth - 16) / width), rows = clamp((host.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom)) / height);
    if (cols !== screen.cols || rows !== screen.rows) screen.resize(cols, rows);
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(host);
  look();
  return () => watcher.disconnect();
};

const clamp = (n) => Math.max(2, Math.min(1000, Math.floor(n)));

// talk copies bytes both ways until one side ends.
const talk = (screen, ticket, tell) => {
  const address = new URL(ticket.url, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  let ended = false, ready = false;
  const finish = (text) => {
    if (ended) return;
    ended = true;
    tell({ text, over: true });
    screen.options.disableStdin = true;
    screen.write(`\r\n\x1b[0m[${text}]\r\n`);
    socket.close();
  };
  const say = (message) => { if (socket.readyState === WebSocket.OPEN) socket.send(message); };
  const type = (bytes) => {
    for (let at = 0; ready && at < bytes.length; at += maxPiece) say(bytes.subarray(at, at + maxPiece));
  };
  socket.onopen = () => say(JSON.stringify({ type: "auth", token: ticket.ticket, cols: screen.cols, rows: screen.rows }));
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") { screen.write(new Uint8Array(data)); return; }
    const message = JSON.parse(data);
    switch (message.type) {
      case "ready":
        ready = true;
        tell({ text: "open", over: false });
        say(JSON.stringify({ type: "resize", cols: screen.cols, rows: screen.rows }));
        screen.focus();
        break;
      case "exit":
        finish(`the program ended: ${message.reason || `exit status ${message.code ?? 0}`}`);
        break;
      case "error":
        finish(message.reason || "the terminal ended");
    }
  };
  socket.onclose = () => finish(ready ? "the connection to the director was lost; the agent ends the shell" : "the terminal could not be opened");
  screen.onData((text) => type(new TextEncoder().encode(text)));
  screen.onBinary((text) => type(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  screen.onResize(({ cols, rows }) => { if (ready) say(JSON.stringify({ type: "resize", cols, rows })); });
  return () => { ended = true; socket.close(); };
};
