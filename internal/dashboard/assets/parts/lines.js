// The output of a program as lines of text. Escape sequences for colours become
// classes, the others are removed. A carriage return overwrites its line. Only the
// newest lines are kept.
import { classOf, plain, styled } from "./sgr.js";

const MAX_LINES = 2000;
const MAX_HELD = 8192; // characters of an incomplete escape sequence
const MAX_LINE = 4000; // characters of one line; longer lines are cut
const MAX_RUNS = 100; // colours of one line; the rest has the last one

// An escape sequence: CSI, then the strings (OSC, DCS, SOS, PM, APC) with their
// end, then the two and three character ones.
// eslint-disable-next-line no-control-regex
const ESCAPES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]+[0-~]|\x1b[0-Z\\^`-~]/g;
// The beginning of an incomplete escape sequence.
// eslint-disable-next-line no-control-regex
const UNENDED = /(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?|[ -/]*)?|\x9b[0-?]*[ -/]*)$/;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
// eslint-disable-next-line no-control-regex
const COLOURS = /(?:\x1b\[|\x9b)([0-9;:]*)m/;

export class Lines {
  constructor(most = MAX_LINES) {
    this.most = most;
    this.lines = []; // complete lines, {n, text, runs, at}; runs: [start, class]
    this.left = 0; // dropped lines
    this.count = 0; // the number of the last complete line, from the start of the log; a gap is between two numbers
    this.held = ""; // an incomplete escape sequence
    this.at = 0; // time of the last text, in ms; 0: unknown
    this.style = plain; // style of the next text
    this.begin();
  }

  // begin starts an empty line.
  begin() {
    this.last = ""; // the open line
    this.runs = [];
    this.returned = false; // after a carriage return: the next character overwrites the line
  }

  // push adds the next output, with its time in ms, if known.
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
      part.split(COLOURS).forEach((one, i) => { // text and parameters alternate
        if (i % 2) this.style = styled(this.style, one);
        else if (one) this.write(one.replace(CONTROLS, ""));
      });
    });
    const over = this.lines.length - this.most;
    if (over > 0) this.forget(over);
  }

  // write appends text without escape sequences and line ends to the open line.
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

  // end ends the open line.
  end() {
    this.lines.push({ n: ++this.count, text: this.last, runs: this.runs, at: this.at });
    this.begin();
  }

  // gap marks missing output.
  gap() {
    this.held = "";
    this.style = plain;
    if (this.last) this.end();
    this.lines.push({ n: this.count + .5, text: "… output is missing here …", gap: true });
  }

  // goOn sets the number of the next line, if lines were missed.
  goOn(n) {
    if (n && this.last === "") this.count = Math.max(this.count, n - 1);
  }

  forget(n) {
    this.lines.splice(0, n);
    this.left += n;
  }

// find returns the newest line with a text, {n, text}, or null. A text that ends with … was
  // cut.
  find(text) {
    if (!text) return null;
    const same = text.endsWith("…") ? (line) => line.trim().startsWith(text.slice(0, -1)) : (line) => line.trim() === text;
    if (same(this.last)) return { n: this.count + 1, text };
    const found = this.lines.findLast((line) => same(line.text));
    return found ? { n: found.n, text } : null;
  }
}

// named parses an address of lines, "#L120" or "#L120-L140": {from, to}, or null.
export const named = (hash) => {
  const [, from, to] = /^#L(\d{1,12})(?:-L(\d{1,12}))?$/.exec(hash) ?? [];
  return from ? { from: Math.min(from, to ?? from), to: Math.max(from, to ?? from) } : null;
};

// nameOf is the inverse of named.
export const nameOf = ({ from, to }) => (from === to ? `#L${from}` : `#L${from}-L${to}`);

// timed splits a piece of a log by the times of its parts: [text, at]. Positions are in
// bytes.
export const timed = ({ text, seq, times }) => {
  if (!times?.length) return [[text, 0]];
  const bytes = new TextEncoder().encode(text), decoder = new TextDecoder();
  return times.map(([from, at], i) => {
    const end = i + 1 < times.length ? times[i + 1][0] - seq : bytes.length;
    return [decoder.decode(bytes.subarray(Math.max(0, from - seq), Math.max(0, end))), at];
  });
};

// withoutEscapes removes escape sequences and control characters, except tabs and line
// ends.
export const withoutEscapes = (text) => text.replace(ESCAPES, "").replaceAll("\r", "").replace(CONTROLS, "");

function clip(line) {
  return line.length > MAX_LINE ? line.slice(0, MAX_LINE - 1) + "…" : line;
}
