// Tables as CSV (RFC 4180).

// A spreadsheet takes a text that begins so for a formula, and runs it. A quote
// before it makes it text.
const formula = /^[=+\-@\t\r]/;

const cell = (value) => {
  const text = String(value ?? "");
  const safe = typeof value === "string" && formula.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

// csv is a table with a head: names, and of each row what it has under them.
export const csv = (names, rows) => [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
