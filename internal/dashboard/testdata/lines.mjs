// Tests of parts/lines.js: what a program prints, as lines of plain text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lines } from "../assets/parts/lines.js";

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

test("a carriage return writes the line anew", () => {
  assert.deepEqual(read("10%\r20%\r30%\ndone"), ["30%", "done"]);
  assert.deepEqual(read("10%\r20%", "\r30%"), ["30%"]);
  assert.deepEqual(read("10%\r"), ["10%"]);
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
