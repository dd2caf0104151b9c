// The second half of the login. The cookie is the first: a browser sends it to
// every port of this host, so other programs' pages get it too. The key stays
// with this origin, port included, and goes along in a header.
const place = "signalbox-login"; // as in /login.js

let given = "";

const kept = () => {
  try {
    return globalThis.localStorage?.getItem(place) ?? "";
  } catch {
    return ""; // storage is off
  }
};

// loginKey is the key of this browser; "" without a login.
export const loginKey = () => kept() || given;

// keepLogin keeps the key of a new login; "" is none.
export const keepLogin = (key) => {
  if (!key) return;
  given = key;
  try { globalThis.localStorage?.setItem(place, key); } catch { /* storage is off */ }
};

// useLoginKey gives the key to a worker, which has no storage of its own.
export const useLoginKey = (key) => { given = key; };

// loginHeaders are the headers that show the login.
export const loginHeaders = () => (loginKey() ? { "Signalbox-Login": loginKey() } : {});
