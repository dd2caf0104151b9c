// Tests of parts/lines.js: the output of a program as lines of plain text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Lines, named, nameOf } from "../assets/parts/lines.js";

const read = (...pieces) => {
  const lines = new Lines();
  for (const piece of pieces) lines.push(piece);
  return [...lines.lines.map((line) => line.text), lines.last];
};

test("lines end where they end, whatever the pieces", () => {
  assert.deepEqual(read("a\nb"), ["a", "b"]);
  assert.deepEqual(read("a\n", "b", "c\n"), ["a", "bc", ""]);
  assert.deepEqual(read("a\r\nb\r", "\nc"), ["a", "b", "c"]);
});

test("escape sequences are taken out, in one piece or several", () => {
  assert.deepEqual(read("\x1b[31mred\x1b[0m\nx"), ["red", "x"]);
  assert.deepEqual(read("\x1b[3", "1mred\x1b", "[0m\nx"), ["red", "x"]);
  assert.deepEqual(read("\x1b]0;title\x07hi\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"), ["hi", "link", ""]);
  assert.deepEqual(read("\x1b]8;;http://x\x1b", "\\link\n"), ["link", ""]);
  assert.deepEqual(read("\x1b(Bx\x1b=y\x1bM\n"), ["xy", ""]);
});

const runs = (...pieces) => {
  const lines = new Lines();
  for (const piece of pieces) lines.push(piece);
  return lines.lines.map((line) => line.runs);
};

test("colours are kept as classes, over ends of lines and of pieces", () => {
  assert.deepEqual(runs("a\x1b[31mred\x1b[0m b\n"), [[[1, "sgr-i1"], [4, ""]]]);
  assert.deepEqual(runs("\x1b[1;3", "2mone\ntwo\x1b[22m!\n", "three\x1b", "[m\n"), [[[0, "sgr-i2 sgr-bold"]], [[0, "sgr-i2 sgr-bold"], [3, "sgr-i2"]], [[0, "sgr-i2"]]]);
  assert.deepEqual(runs("\x1b[31m\x1b[2K\x1b]0;t\x07x\x1b[0m\n"), [[[0, "sgr-i1"]]]);
  assert.deepEqual(runs("\x9b35mx\n"), [[[0, "sgr-i5"]]]);
  assert.deepEqual(runs("\x1b[31mlong gone\r\x1b[32mnew\r\n"), [[[0, "sgr-i2"]]]);
  assert.deepEqual(runs("\x1b[m\x1b[31m\n", "\x1b[39m\x1b[4;9;7;3;2mx\n"), [[], [[0, "sgr-i8 sgr-italic sgr-line-under-through sgr-inverse"]]]);
});

test("256 colours and RGB become the nearest of sixteen", () => {
  const one = (params) => runs(`\x1b[${params}mx\n`)[0][0]?.[1] ?? "";
  for (const [params, name] of Object.entries({
    91: "sgr-i9", 107: "sgr-p7", "38;5;196": "sgr-i1", "38;5;210": "sgr-i9", "38;5;22": "sgr-i2", "38;5;11": "sgr-i11", "38;5;240": "sgr-i8", "48;5;17": "sgr-p4", "38;2;200;30;30": "sgr-i1",
    "38:2::0:0:200": "sgr-i4", "38:2:0:200:200": "sgr-i6", "48:5:201": "sgr-p5", "38;2;255;255;255": "sgr-i15", "38;2;0;0;0": "sgr-i0", "1;38;5;1;4": "sgr-i1 sgr-bold sgr-line-under",
    "58;2;255;0;0;1": "sgr-bold", "4:3": "sgr-line-under", "4:0": "",
    // Invalid parameters change nothing.
    "38": "", "38;5": "", "38;5;256": "", "38;5;-1": "", "38;2;1;2": "", "38;2;999;0;0": "", "38;9;1": "sgr-bold", "999": "", ":": "", "38:2:": "", "5;8;6": "", "constructor": "",
  })) assert.equal(one(params), name, params);
});

test("hostile colours cost little and end", () => {
  const lines = new Lines(), began = performance.now();
  lines.push("\x1b[31m\x1b[0m".repeat(120_000) + "x\n"); // over 1 MB of escapes
  lines.push("\x1b[" + "1;".repeat(500_000) + "31mlong\n");
  lines.push("\x1b[31".repeat(200_000) + "\n");
  for (let i = 0; i < 3000; i++) lines.push(`\x1b[3${i % 8}my`);
  lines.push("\n\x1b[" + "4".repeat(20_000));
  lines.push("m\nend\n");
  assert.deepEqual(lines.lines[0], { n: 1, text: "x", runs: [], at: 0 });
  assert.equal(lines.lines[1].text, "long");
  assert.ok(lines.lines.every((line) => line.text.length <= 4000 && (line.runs.length <= 100)));
  assert.equal(lines.lines.at(-1).text, "end");
  assert.ok(performance.now() - began < 5000);
});

// contrast is the contrast of two colours by WCAG 2.
const contrast = (a, b) => {
  const light = (colour) => {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => (c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
  return (bright + .05) / (dark + .05);
};

test("every colour of output can be read, in light and dark", () => {
  const css = ["style", "parts"].map((name) => readFileSync(new URL(`../assets/${name}.css`, import.meta.url), "utf8")).join("\n");
  const all = (pattern) => [...css.matchAll(pattern)].map((m) => [m[2], m[3]]);
  const inks = all(/\.(sgr-i\d+) \{ --ink: light-dark\((#\w{6}), (#\w{6})\)/g), papers = all(/\.(sgr-p\d+) \{ background: light-dark\((#\w{6}), (#\w{6})\)/g);
  const grounds = all(/--(ground|card|warn-soft|bad-soft): light-dark\((#\w{6}), (#\w{6})\)/g), text = all(/--(text): light-dark\((#\w{6}), (#\w{6})\)/g);
  assert.deepEqual([inks.length, papers.length, grounds.length, text.length], [16, 8, 4, 1]);
  for (const scheme of [0, 1]) {
    for (const ink of [...inks, ...text]) for (const under of [...papers, ...grounds]) assert.ok(contrast(ink[scheme], under[scheme]) >= 4.5, `${ink[scheme]} on ${under[scheme]}`);
  }
});

test("a carriage return writes the line anew", () => {
  assert.deepEqual(read("10%\r20%\r30%\ndone"), ["30%", "done"]);
  assert.deepEqual(read("10%\r20%", "\r30%"), ["30%"]);
  assert.deepEqual(read("10%\r"), ["10%"]);
  assert.deepEqual(read("10%\r", "\x1b[K", "done\n"), ["done", ""]);
});

test("markup stays text, and control characters go", () => {
  assert.deepEqual(read("<script>alert(1)</script>\n"), ["<script>alert(1)</script>", ""]);
  assert.deepEqual(read("a\tb\x07c\x08\n"), ["a\tbc", ""]);
});

test("only the newest lines are kept, and none is endless", () => {
  const lines = new Lines();
  for (let i = 0; i < 5000; i++) lines.push(`line ${i}\n`);
  assert.equal(lines.lines.length, 2000);
  assert.equal(lines.left, 3000);
  assert.equal(lines.lines[0].text, "line 3000");
  lines.push("y".repeat(1e6));
  lines.push("z\n");
  assert.equal(lines.lines.at(-1).text.length, 4000);
});

test("a sequence that never ends holds nothing back for ever", () => {
  const lines = new Lines();
  for (let i = 0; i < 100; i++) lines.push("\x1b[" + "1".repeat(1000));
  assert.ok(lines.held.length <= 8192);
  lines.push("\nend\n");
  assert.equal(lines.lines.at(-1).text, "end");
});

test("a gap is said where it is", () => {
  const lines = new Lines();
  lines.push("half a line");
  lines.gap();
  lines.push("after\n");
  assert.deepEqual(lines.lines.map((line) => line.text), ["half a line", "… output is missing here …", "after"]);
});

test("lines have the numbers of the whole log", () => {
  const lines = new Lines();
  lines.goOn(41);
  lines.push("a\nhal");
  lines.goOn(42);
  lines.push("f\n");
  lines.goOn(0); // not known
  lines.push("c\n");
  lines.gap();
  lines.goOn(100);
  lines.push("z\n");
  assert.deepEqual(lines.lines.map((line) => [line.n, line.text.slice(0, 4)]), [[41, "a"], [42, "half"], [43, "c"], [43.5, "… ou"], [100, "z"]]);
});

test("lines have addresses", () => {
  for (const [hash, lines] of [["#L120", { from: 120, to: 120 }], ["#L7-L12", { from: 7, to: 12 }], ["#L12-L7", { from: 7, to: 12 }]]) assert.deepEqual(named(hash), lines);
  for (const other of ["", "#", "#L", "#Lx", "#L1-", "#L1-2", "#L1e9", "#L" + "1".repeat(13), "#main"]) assert.equal(named(other), null, other);
  assert.equal(nameOf({ from: 3, to: 3 }), "#L3");
  assert.equal(nameOf({ from: 3, to: 9 }), "#L3-L9");
});

test("a line is found by its text, the newest of several", () => {
  const lines = new Lines();
  lines.push("error: no disk\nall well\n  error: no disk\nbye\n" + "x".repeat(400) + "\n");
  assert.deepEqual(lines.find("error: no disk"), { n: 3, text: "error: no disk" });
  assert.equal(lines.find("x".repeat(297) + "…").n, 5);
  assert.equal(lines.find("error"), null);
  assert.equal(lines.find(undefined), null);
  lines.push("error: no disk");
  assert.equal(lines.find("error: no disk").n, 6);
});
