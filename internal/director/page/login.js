// The login page. It needs nothing but GET /api/me and POST /api/login and
// /api/logout.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const form = at("login"), said = at("said"), wrong = at("wrong"), logout = at("logout");
  const help = at("help"), onward = at("onward");

  // next is where to go after the login: a path of this site, or nothing. It
  // is a whole address with this origin: a browser reads "//host", "/\host" and
  // what comes of "/.//host" as another site.
  const next = () => {
    const asked = new URLSearchParams(location.search).get("next");
    if (!asked || !/^\/(?![\/\\])/.test(asked)) return "";
    const url = new URL(asked, location.origin);
    return url.origin === location.origin ? url.href : "";
  };

  // goOn leaves for next, or for the pages of the director where it has some.
  const goOn = async (me) => {
    if (next()) { location.assign(next()); return; }
    if (await hasPages()) { location.assign("/"); return; }
    show(me);
  };

  // hasPages tells whether this director serves pages.
  const hasPages = async () => {
    const root = await fetch("/", { method: "HEAD" }).catch(() => null);
    return Boolean(root && root.ok);
  };

  const show = (me) => {
    const known = me && me.kind === "user";
    form.hidden = help.hidden = Boolean(me);
    logout.hidden = !known;
    onward.hidden = true;
    if (me) hasPages().then((yes) => { onward.hidden = !yes; });
    said.textContent = known ? `You are logged in as ${me.email || me.id}.`
      : me ? "This director is open: it asks nobody to log in." : "";
    if (!me) at("user").focus();
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const answer = await fetch("/api/login", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ user: at("user").value, password: at("password").value }),
      });
      const body = await answer.json();
      at("password").value = "";
      if (answer.ok) { await goOn(body); return; }
      wrong.textContent = `${body.message}.`;
      at("password").focus();
    } catch {
      wrong.textContent = "The director does not answer. Try again.";
    } finally {
      button.disabled = false;
    }
  });

  logout.addEventListener("click", async () => {
    await fetch("/api/logout", { method: "POST" }).catch(() => null);
    show(null);
  });

  fetch("/api/me").then((answer) => (answer.ok ? answer.json() : null)).then(show, () => show(null));
})();
