// A draft keeps what was typed in this tab until it is sent or discarded. It survives Esc,
// an expired login and a reload. draft(name) is {read, write}: read returns undefined if
// there is no draft; write(value) stores it, or removes it if value is empty.
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
