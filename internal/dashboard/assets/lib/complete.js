// Completion of a query at the caret. Pure functions; the keys and their values
// come from the director (GET /api/search/keys).

const most = 12; // options at once

// complete completes the word before the caret. keys are {key, text, values, examples};
// more(key) returns additional values, texts or [text, note]. The result has options
// {text, note}, which replace the text between from and to.
export const complete = (text, caret, keys, more) => {
  const begin = wordBegin(text, caret), from = begin + (text[begin] === "-" ? 1 : 0);
  const word = text.slice(from, caret), colon = word.indexOf(":");
  if (word.startsWith('"')) return none;
  if (colon < 0) {
    const options = keys.filter((k) => k.key.startsWith(word.toLowerCase())).map((k) => ({ text: `${k.key}:`, note: k.text }));
    return { from, to: caret, word, options };
  }
  const key = keys.find((k) => k.key === word.slice(0, colon).toLowerCase());
  if (!key) return none;
  const values = splitValues(word.slice(colon + 1)), typed = values.pop();
  const given = new Set(values.map(plain)), wanted = plain(typed).toLowerCase();
  const seen = new Set();
  const options = [...(key.values ?? []), ...more(key.key), ...(key.examples ?? [])].map((v) => (Array.isArray(v) ? v : [v, ""]))
    .filter(([v]) => v && !given.has(v) && !seen.has(v) && seen.add(v) && v.toLowerCase().includes(wanted))
    .sort(([a], [b]) => Number(b.toLowerCase().startsWith(wanted)) - Number(a.toLowerCase().startsWith(wanted)));
  const at = caret - typed.length, end = caret + /^[^\s,]*/.exec(text.slice(caret))[0].length;
  if (options.length === 1 && options[0][0] === plain(typed)) return none;
  return { from: at, to: end, word: typed, options: options.slice(0, most).map(([v, note]) => ({ text: bare(v), note })) };
};

const none = { from: 0, to: 0, word: "", options: [] };

// wordBegin is the start of the word at a position of a query. Blanks in quotes do not end
// a word.
const wordBegin = (text, caret) => {
  let begin = 0, quoted = false;
  for (let i = 0; i < caret; i++) {
    if (text[i] === "\\" && quoted) i++;
    else if (text[i] === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(text[i])) begin = i + 1;
  }
  return begin;
};

// splitValues splits values at commas outside of quotes.
const splitValues = (text) => {
  const values = [""];
  let quoted = false;
  for (const c of text) {
    if (c === '"') quoted = !quoted;
    if (c === "," && !quoted) values.push("");
    else values[values.length - 1] += c;
  }
  return values;
};

const plain = (value) => value.replace(/^"|"$/g, "").replace(/\\(["\\])/g, "$1");

// bare quotes a value for a query if necessary.
const bare = (value) => (/["\s,]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);

// unfinished reports that a value is missing: the director would refuse the query.
export const unfinished = (text) => /[^\s"][:,]$/.test(text);
