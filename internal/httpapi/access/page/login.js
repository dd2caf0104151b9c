// The login page. It needs nothing but GET /api/me and POST /api/login and
// /api/logout.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const place = "signalbox-login"; // as in the pages' lib/login.js
  const form = at("login"), said = at("said"), wrong = at("wrong"), logout = at("logout");
  const help = at("help"), onward = at("onward");

  // ask sends a request with the key of the login, without which the cookie is
  // useless. The key is stored only for this origin, including the port.
  const ask = (path, options = {}) => {
    const key = localStorage.getItem(place);
    return fetch(path, { ...options, headers: { ...options.headers, ...(key ? { "Signalbox-Login": key } : {}) } });
  };

  // logIn sends the proof of a login, and stores the returned key.
  const logIn = async (path, proof) => {
    const answer = await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(proof) });
    const body = await answer.json();
    if (answer.ok) localStorage.setItem(place, body.key);
    return { ok: answer.ok, body };
  };

  // next is where to go after the login: an address of this site, or "". It is a
  // full address with this origin, because a browser reads "//host", "/\host" and
  // the normalized "/.//host" as another site.
  const next = () => {
    const asked = new URLSearchParams(location.search).get("next");
    if (!asked || !/^\/(?![\/\\])/.test(asked)) return "";
    const url = new URL(asked, location.origin);
    return url.origin === location.origin ? url.href : "";
  };

  // goOn goes to next, or to the pages of the director if it has some.
  const goOn = async (me) => {
    if (next()) { location.assign(next()); return; }
    if (await hasPages()) { location.assign("/"); return; }
    show(me);
  };

  // hasPages reports whether this director serves pages.
  const hasPages = async () => {
    const root = await fetch("/", { method: "HEAD" }).catch(() => null);
    return Boolean(root && root.ok);
  };

  const show = (me) => {
    const known = me && me.kind !== "anonymous";
    form.hidden = help.hidden = Boolean(me);
    logout.hidden = !known;
    onward.hidden = true;
    if (me) hasPages().then((yes) => { onward.hidden = !yes; });
    said.textContent = known ? `You are logged in as ${me.kind === "user" ? me.email || me.id : "the owner"}.`
      : me ? "This director is open: it requires no login." : "";
    if (!me) at("user").focus();
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const { ok, body } = await logIn("/api/login", { user: at("user").value, password: at("password").value });
      at("password").value = "";
      if (ok) { await goOn(body); return; }
      wrong.textContent = `${body.message}.`;
      at("password").focus();
    } catch {
      wrong.textContent = "The director does not answer. Try again.";
    } finally {
      button.disabled = false;
    }
  });

  logout.addEventListener("click", async () => {
    await ask("/api/logout", { method: "POST" }).catch(() => null);
    localStorage.removeItem(place);
    show(null);
  });

  // A login link has its code in the fragment. It is removed from the address first,
  // so that it is not in the history.
  const once = new URLSearchParams(location.hash.slice(1)).get("once");
  const begin = async () => {
    if (once) {
      history.replaceState(null, "", location.search || "/login");
      const { ok, body } = await logIn("/api/login/once", { code: once });
      if (ok) { await goOn(body); return; }
      show(null);
      wrong.textContent = `${body.message}.`;
      return;
    }
    const answer = await ask("/api/me");
    show(answer.ok ? await answer.json() : null);
  };
  begin().catch(() => show(null));
})();
