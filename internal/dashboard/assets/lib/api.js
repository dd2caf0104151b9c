// The director's HTTP API. Without a login it leads to the login page; all
// other errors are thrown as Refused, with the director's message.
import { keepLogin, loginHeaders } from "./login.js";
import { plain, readEvents } from "./sse.js";

// Refused is an unsuccessful answer. The code "unreachable" is set here: there
// was no answer.
export class Refused extends Error {
  constructor(fields) {
    super(fields.message);
    Object.assign(this, { code: "", hint: "", field: "", request_id: "", retryable: false, retry_after: 0, status: 0 }, fields);
  }
}

const unreachable = () => new Refused({
  code: "unreachable", retryable: true, message: "The director does not answer",
  hint: "It may be restarting. Check it with: signalbox status",
});

// refused reads the director's error from an answer.
const refused = async (answer) => {
  const body = await answer.json().catch(() => ({}));
  return new Refused({
    code: body.error || `http_${answer.status}`,
    message: body.message || `the director answered ${answer.status}`,
    hint: body.hint || "", field: body.field || "", retryable: Boolean(body.retryable), retry_after: body.retry_after || 0,
    request_id: body.request_id || answer.headers.get("X-Request-Id") || "", status: answer.status,
  });
};

// toLogin goes to the login page, which leads back here.
export const toLogin = () => {
  location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search + location.hash));
};

// changing is a password change in progress: it replaces the login that other
// requests used.
let changing = null;

// passwordChange resolves when no password change is in progress.
export const passwordChange = async () => { await changing?.catch(() => null); };

const ask = async (path, options = {}) => {
  const login = loginHeaders();
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options, headers: { ...options.headers, ...login } });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw unreachable();
  }
  if (answer.status === 401) {
    if (path !== passwordPath) await passwordChange();
    if (JSON.stringify(loginHeaders()) !== JSON.stringify(login)) return ask(path, options);
    toLogin();
  }
  if (!answer.ok) throw await refused(answer);
  return answer;
};

const passwordPath = "/api/me/password";

// changePassword resolves once the new login is stored.
export const changePassword = async (password, next) => {
  changing = post(passwordPath, { password, new_password: next }).then((login) => keepLogin(login.key));
  try {
    await changing;
  } finally {
    changing = null;
  }
};

const read = async (answer) => (answer.status === 204 ? null : JSON.parse(plain(await answer.text())));

const send = (method) => async (path, body, { headers = {}, signal } = {}) => {
  const options = { method, headers: { ...headers }, signal };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  return read(await ask(path, options));
};

export const get = async (path, { signal } = {}) => read(await ask(path, { signal }));
// file reads an answer that is not JSON: {blob, headers}.
export const file = async (path) => {
  const answer = await ask(path);
  return { blob: await answer.blob(), headers: answer.headers };
};
export const post = send("POST");
export const put = send("PUT");
export const patch = send("PATCH");
export const del = send("DELETE");

// query returns the part of an address after the ?, without empty values.
export const query = (values) => {
  const set = Object.entries(values).filter(([, v]) => v !== undefined && v !== null && v !== "");
  return set.length ? "?" + new URLSearchParams(set) : "";
};

// stream reads server-sent events of a path: onEvent gets {event, id, data}
// with parsed data. After a break it reconnects from the last id. onState gets
// "open", "waiting" (with the error) and "ended" (reconnecting is useless).
// onEvent returns false to end the stream; so does calling the result.
export const stream = (path, onEvent, onState = () => {}) => {
  const over = new AbortController();
  let last = "";
  const follow = async () => {
    const headers = { Accept: "text/event-stream" };
    if (last) headers["Last-Event-ID"] = last;
    const answer = await ask(path, { headers, signal: over.signal });
    onState("open");
    await readEvents(answer.body, (e) => {
      if (e.id) last = e.id;
      if (onEvent({ ...e, data: JSON.parse(e.data) }) === false) over.abort();
    });
  };
  (async () => {
    for (let wait = 500; !over.signal.aborted; wait = Math.min(wait * 2, 5000)) {
      try {
        await follow();
        wait = 500;
        onState("waiting", null);
      } catch (cause) {
        if (over.signal.aborted) return;
        if (cause.status >= 400 && cause.status < 500 && cause.status !== 429) return onState("ended", cause);
        onState("waiting", cause);
      }
      await new Promise((resume) => setTimeout(resume, wait));
    }
  })();
  return () => over.abort();
};

// newKey returns an idempotency key: a request sent twice with it makes one
// task. crypto.randomUUID exists only on secure origins.
export const newKey = () => "ui-" + [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
