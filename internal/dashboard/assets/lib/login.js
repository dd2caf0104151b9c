// The second half of the login. The first is the cookie, which a browser sends to
// every port of this host, and so to other programs' pages. The key stays with this
// origin, including the port, and is sent in a header.
const place = "signalbox-login"; // as in /login.js

let given = "";

const kept = () => {
  try {
    return globalThis.localStorage?.getItem(place) ?? "";
  } catch {
    return ""; // storage is off
  }
};

// loginKey is this browser's key; "" without a login.
export const loginKey = () => kept() || given;

// keepLogin stores the key of a new login; "" removes it.
export const keepLogin = (key) => {
  if (!key) return;
  given = key;
  try { globalThis.localStorage?.setItem(place, key); } catch { /* storage is off */ }
};

// useLoginKey sets the key in a worker, which has no storage.
export const useLoginKey = (key) => { given = key; };

// loginHeaders are the request headers for the login.
export const loginHeaders = () => (loginKey() ? { "Signalbox-Login": loginKey() } : {});
