// A patch in git's format, as files with hunks and lines. Other content is shown as text or
// left out; nothing throws.

const MAX_SHOWN = 4000; // characters of one line; longer lines are cut

// parse returns the files of a patch: {path, from, notes, binary, hunks, lines}, lines is their
// number. A hunk is {head, lines}, a line {kind, old, now, text}. kind is "add", "del", "same" or
// "note"; old and now are the line numbers, 0 on a side without the line.
export const parse = (patch) => {
  const files = [];
  let file = null, hunk = null, old = 0, now = 0, leftOld = 0, leftNow = 0;
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const sign = line[0] ?? " ";
    if (hunk && (leftOld > 0 || leftNow > 0) && " +-".includes(sign)) {
      const kind = sign === "+" ? "add" : sign === "-" ? "del" : "same";
      if (kind !== "add") leftOld--;
      if (kind !== "del") leftNow--;
      hunk.lines.push({ kind, old: kind === "add" ? 0 : old++, now: kind === "del" ? 0 : now++, text: line.slice(1) });
      file.lines++;
    } else if (hunk && sign === "\\") {
      hunk.lines.push({ kind: "note", old: 0, now: 0, text: "no line end at the end of the file" });
      file.lines++;
    } else if (line.startsWith("diff --git ")) {
      hunk = null;
      file = { path: pathOf(line), from: "", notes: [], binary: false, hunks: [], lines: 0 };
      files.push(file);
    } else if (file) {
      const at = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/.exec(line);
      if (at && !file.binary) {
        [old, leftOld, now, leftNow] = [Number(at[1]), Number(at[2] ?? 1), Number(at[3]), Number(at[4] ?? 1)];
        hunk = { head: line, lines: [] };
        file.hunks.push(hunk);
      } else if (!file.binary) {
        extended(file, line);
      }
    }
  }
  return files;
};

// extended parses a line between the head of a file and its first hunk.
const extended = (file, line) => {
  const [, word, rest] = /^(rename from|rename to|copy from|copy to|\+\+\+|old mode|new mode|new file mode|deleted file mode|similarity index|GIT binary patch|Binary files) ?(.*)$/.exec(line) ?? [];
  if (!word) return;
  if (word === "rename from" || word === "copy from") file.from = unquoted(rest);
  else if (word === "rename to" || word === "copy to") file.path = unquoted(rest);
  else if (word === "+++") { if (rest !== "/dev/null") file.path = unquoted(rest.replace(/\t$/, "")).replace(/^b\//, ""); }
  else if (word === "GIT binary patch" || word === "Binary files") file.binary = true;
  else file.notes.push(line);
};

// pathOf is the path in the head of a file, which has it twice.
const pathOf = (line) => {
  const rest = line.slice("diff --git ".length);
  const quoted = /^("(?:[^"\\]|\\.)*") /.exec(rest);
  if (quoted) return unquoted(quoted[1]).replace(/^a\//, "");
  return rest.slice(0, (rest.length - 1) / 2).replace(/^a\//, "");
};

const escapes = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

// unquoted returns a path without git's quoting.
const unquoted = (text) => {
  if (!/^".*"$/.test(text)) return text;
  const bytes = [];
  const encode = new TextEncoder();
  for (const [one, octal, named] of text.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gsu)) {
    if (octal) bytes.push(parseInt(octal, 8) & 255);
    else if (named) bytes.push(escapes[named] ?? 63);
    else bytes.push(...encode.encode(one));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
};

// sides pairs the lines of a hunk for two columns: [{old, now}], each a line or null.
export const sides = (lines) => {
  const rows = [];
  let free = 0; // the first row without a line on the right
  for (const line of lines) {
    if (line.kind === "add" && free < rows.length) rows[free++].now = line;
    else if (line.kind === "add") { rows.push({ old: null, now: line }); free = rows.length; }
    else if (line.kind === "del") rows.push({ old: line, now: null });
    else { rows.push({ old: line, now: line }); free = rows.length; }
  }
  return rows;
};

// eslint-disable-next-line no-control-regex
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

// visible replaces characters that would hide or reorder text by their names.
export const visible = (text) => {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN).replace(/[\ud800-\udbff]$/, "")} … (${(text.length - MAX_SHOWN).toLocaleString()} more characters)` : text;
  return cut.replace(/\r$/, "").replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
};

// placeOf names lines for a message to an agent: the path with the present line numbers, or the
// old ones for removed lines.
export const placeOf = (path, lines) => {
  const there = lines.filter((line) => line.now > 0);
  const numbers = there.length > 0 ? there.map((line) => line.now) : lines.map((line) => line.old);
  const [from, to] = [Math.min(...numbers), Math.max(...numbers)];
  return `${path}:${from === to ? from : `${from}-${to}`}${there.length > 0 ? "" : " (removed)"}`;
};
