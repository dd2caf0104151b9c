// A draft is what was typed, until it is sent or discarded: also over a press of Esc, a
// login that is over and a reload, in this tab. draft(name) is {read, write}: what was kept,
// undefined where nothing was; write(value) keeps it, of an empty value nothing.
export const draft = (name) => {
  const key = `signalbox.draft ${name}`;
  return {
    read() { try { return JSON.parse(sessionStorage.getItem(key)) ?? undefined; } catch { return undefined; } },
    write(value) {
      try {
        if (value) sessionStorage.setItem(key, JSON.stringify(value));
        else sessionStorage.removeItem(key);
      } catch { /* not allowed here */ }
    },
  };
};
