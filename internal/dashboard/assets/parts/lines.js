// What a program prints, as lines of plain text: escape sequences are taken
// out, a carriage return writes its line anew, and only the newest lines are
// kept, however much is printed.

const MAX_LINES = 2000;
const MAX_HELD = 8192; // of an escape sequence that does not end
const MAX_LINE = 4000; // characters of one line; what is longer is cut

// An escape sequence: CSI, then the strings (OSC, DCS, SOS, PM, APC) with their
// end, then the two and three character ones.
// eslint-disable-next-line no-control-regex
const ESCAPES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]+[0-~]|\x1b[0-Z\\^`-~]/g;
// The beginning of one whose end has not come yet.
// eslint-disable-next-line no-control-regex
const UNENDED = /(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?|[ -/]*)?|\x9b[0-?]*[ -/]*)$/;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

export class Lines {
  constructor() {
    this.lines = []; // whole ones, {n, text}
    this.open = ""; // the line that has not ended
    this.left = 0; // lines that were let go
    this.count = 0; // lines that ended, ever
    this.held = ""; // the beginning of an escape sequence
    this.at = 0; // when what came last was printed, in ms; 0: not known
  }

  // push takes what was printed next, at a time in ms where it is known.
  push(text, at) {
    if (at) this.at = at;
    text = this.held + text;
    this.held = "";
    const cut = UNENDED.exec(text);
    if (cut && cut[0] && cut[0].length <= MAX_HELD) {
      this.held = cut[0];
      text = text.slice(0, cut.index);
    }
    const parts = (this.open + text.replace(ESCAPES, "")).replaceAll("\r\n", "\n").split("\n");
    // A carriage return at the very end may be half of a line's end: it stays.
    this.open = clip(overwrite(parts.pop(), true));
    for (const part of parts) this.lines.push({ n: ++this.count, text: clip(plain(overwrite(part))), at: this.at });
    const over = this.lines.length - MAX_LINES;
    if (over > 0) this.forget(over);
  }

  // gap notes that something was left out here.
  gap() {
    this.held = "";
    if (this.open) this.push("\n");
    this.lines.push({ n: ++this.count, text: "… output is missing here …", gap: true });
  }

  forget(n) {
    this.lines.splice(0, n);
    this.left += n;
  }

  get last() { return plain(this.open); }

  // find is the newest line with a text, {n, text}; null where there is none. A text that
  // ends with … was cut.
  find(text) {
    if (!text) return null;
    const same = text.endsWith("…") ? (line) => line.trim().startsWith(text.slice(0, -1)) : (line) => line.trim() === text;
    if (same(this.last)) return { n: this.count + 1, text };
    const found = this.lines.findLast((line) => same(line.text));
    return found ? { n: found.n, text } : null;
  }
}

// timed splits a piece of a log by the times at which it came: [text, at]. Positions
// count bytes.
export const timed = ({ text, seq, times }) => {
  if (!times?.length) return [[text, 0]];
  const bytes = new TextEncoder().encode(text), decoder = new TextDecoder();
  return times.map(([from, at], i) => {
    const end = i + 1 < times.length ? times[i + 1][0] - seq : bytes.length;
    return [decoder.decode(bytes.subarray(Math.max(0, from - seq), Math.max(0, end))), at];
  });
};

// withoutEscapes is a text that is no log: without escape sequences and control
// characters, but for tabs and the ends of lines.
export const withoutEscapes = (text) => text.replace(ESCAPES, "").replaceAll("\r\n", "\n").replace(CONTROLS, "");

// overwrite keeps what stands behind the last carriage return.
function overwrite(line, open) {
  const end = open && line.endsWith("\r") ? line.length - 1 : line.length;
  const from = line.lastIndexOf("\r", end - 1);
  return from < 0 ? line : line.slice(from + 1);
}

function plain(line) { return line.replace(CONTROLS, ""); }

function clip(line) {
  return line.length > MAX_LINE ? line.slice(0, MAX_LINE - 1) + "…" : line;
}
