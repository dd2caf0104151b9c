// Calculations of the page Usage: the days of a range, the search for the tasks of a row.

const day = 24 * 3600 * 1000;

// dayBefore is the day a number of days before another, in UTC: 2026-01-31.
export const dayBefore = (to, days) => new Date(Date.parse(to) - days * day).toISOString().slice(0, 10);

// columnsOf returns all days of an answer of GET /api/usage, including those without
// runs: [[seconds…], [values…]]. value(row) is a row's value.
export const columnsOf = ({ from, to, rows }, value) => {
  const known = new Map(rows.map((row) => [row.name, value(row)]));
  const seconds = [], values = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += day) {
    seconds.push(at / 1000);
    values.push(known.get(new Date(at).toISOString().slice(0, 10)) ?? 0);
  }
  return [seconds, values];
};

const other = "(other)";

// word quotes a text that a search would read as several words.
const word = (value) => (/[\s,"\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, "\\$&")}"` : value);

const conditions = {
  agent: (name) => name && `agent:${word(name)}`,
  schedule: (name) => (name ? `source:scheduler job:${word(name)}` : "-source:scheduler"),
  user: (name) => name && `by:${word(name)}`,
};

// searchOf is the search for the ended tasks of a row; "" if there is none.
export const searchOf = ({ from, to }, by, name, filters) => {
  const parts = { ...filters, [by]: name };
  const said = Object.entries(parts).map(([key, value]) => (value === other ? "" : conditions[key]?.(value)));
  if (said.some((text) => !text)) return "";
  return [...said, "state:ended", `since:${from}`, `until:${dayBefore(to, -1)}`].join(" ");
};
