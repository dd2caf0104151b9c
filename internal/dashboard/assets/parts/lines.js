// What a program prints, as lines of text: of its escape sequences those that colour
// are kept, as classes, and the others taken out; a carriage return writes its line
// anew, and only the newest lines are kept, however much is printed.
import { classOf, plain, styled } from "./sgr.js";

const MAX_LINES = 2000;
const MAX_HELD = 8192; // of an escape sequence that does not end
const MAX_LINE = 4000; // characters of one line; what is longer is cut
const MAX_RUNS = 100; // colours of one line; what follows stays as it is then

// An escape sequence: CSI, then the strings (OSC, DCS, SOS, PM, APC) with their
// end, then the two and three character ones.
// eslint-disable-next-line no-control-regex
const ESCAPES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]+[0-~]|\x1b[0-Z\\^`-~]/g;
// The beginning of one whose end has not come yet.
// eslint-disable-next-line no-control-regex
const UNENDED = /(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?|[ -/]*)?|\x9b[0-?]*[ -/]*)$/;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
// eslint-disable-next-line no-control-regex
const COLOURS = /(?:\x1b\[|\x9b)([0-9;:]*)m/;

export class Lines {
  constructor(most = MAX_LINES) {
    this.most = most;
    this.lines = []; // whole ones, {n, text, runs, at}; runs: [where, class], from where on the text has it
    this.left = 0; // lines that were let go
    this.count = 0; // the number of the line that ended last, from the first line of the log; a gap lies between two
    this.held = ""; // the beginning of an escape sequence
    this.at = 0; // when what came last was printed, in ms; 0: not known
    this.style = plain; // of what comes next
    this.begin();
  }

  // begin is an empty line.
  begin() {
    this.last = ""; // the line that has not ended
    this.runs = [];
    this.returned = false; // it ends with a carriage return: a character would write it anew
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
    text.replace(ESCAPES, (code) => (COLOURS.test(code) ? code : "")).split("\n").forEach((part, i) => {
      if (i > 0) this.end();
      part.split(COLOURS).forEach((one, i) => { // text and parameters by turns
        if (i % 2) this.style = styled(this.style, one);
        else if (one) this.write(one.replace(CONTROLS, ""));
      });
    });
    const over = this.lines.length - this.most;
    if (over > 0) this.forget(over);
  }

  // write puts text without escape sequences and ends of lines behind the open line.
  write(text) {
    let end = text.length;
    while (end > 0 && text[end - 1] === "\r") end--;
    if (end > 0) {
      const from = text.lastIndexOf("\r", end - 1) + 1;
      if (from > 0 || this.returned) this.begin();
      const name = classOf(this.style), at = this.last.length;
      if (name !== (this.runs.at(-1)?.[1] ?? "") && at < MAX_LINE && this.runs.length < MAX_RUNS) this.runs.push([at, name]);
      this.last = clip(this.last + text.slice(from, end));
    }
    if (end < text.length) this.returned = true;
  }

  // end is the end of the open line.
  end() {
    this.lines.push({ n: ++this.count, text: this.last, runs: this.runs, at: this.at });
    this.begin();
  }

  // gap notes that something was left out here.
  gap() {
    this.held = "";
    this.style = plain;
    if (this.last) this.end();
    this.lines.push({ n: this.count + .5, text: "… output is missing here …", gap: true });
  }

  // goOn takes the number of the line that comes next, where it is known and lines were
  // missed.
  goOn(n) {
    if (n && this.last === "") this.count = Math.max(this.count, n - 1);
  }

  forget(n) {
    this.lines.splice(0, n);
    this.left += n;
  }

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

// named is an address of lines, "#L120" or "#L120-L140": {from, to}, or null.
export const named = (hash) => {
  const [, from, to] = /^#L(\d{1,12})(?:-L(\d{1,12}))?$/.exec(hash) ?? [];
  return from ? { from: Math.min(from, to ?? from), to: Math.max(from, to ?? from) } : null;
};

// nameOf is the other way round.
export const nameOf = ({ from, to }) => (from === to ? `#L${from}` : `#L${from}-L${to}`);

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
export const withoutEscapes = (text) => text.replace(ESCAPES, "").replaceAll("\r", "").replace(CONTROLS, "");

function clip(line) {
  return line.length > MAX_LINE ? line.slice(0, MAX_LINE - 1) + "…" : line;
}
