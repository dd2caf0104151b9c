// Tables as CSV (RFC 4180).

// Spreadsheets run texts that begin like this as formulas. A quote in front makes
// them text.
const formula = /^[=+\-@\t\r]/;

const cell = (value) => {
  const text = String(value ?? "");
  const safe = typeof value === "string" && formula.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

// csv returns a table: a head with the names, then for each row its values of these names.
export const csv = (names, rows) => [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
