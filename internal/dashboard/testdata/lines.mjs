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

test("the failure is the last line that speaks of one", () => {
  const lines = new Lines();
  lines.push("error: the first\nall well\npanic: the second\nbye\n");
  assert.equal(lines.failure().text, "panic: the second");
  lines.push("fatal: at the very end");
  assert.equal(lines.failure().text, "fatal: at the very end");
  assert.equal(new Lines().failure(), null);
});

test("the line that says why a program failed", () => {
  for (const [why, ...printed] of [
    ["jobs.errors.ChargeError: card_declined (code 402)", "start", "Traceback (most recent call last):", '  File "/srv/app/jobs/billing.py", line 481, in run', "    self.charge(order)", "jobs.errors.ChargeError: card_declined (code 402)"],
    ["KeyboardInterrupt", "Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "KeyboardInterrupt", "bye"],
    ["AssertionError", "Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "AssertionError"],
    ["panic: runtime error: index out of range [3] with length 3", "panic: runtime error: index out of range [3] with length 3", "", "goroutine 1 [running]:", "main.main()", "\t/tmp/a.go:5 +0x1d", "exit status 2"],
    ["--- FAIL: TestTotal (0.00s)", "=== RUN   TestTotal", "    total_test.go:9: got 3", "--- FAIL: TestTotal (0.00s)", "FAIL", "FAIL\texample.com/shop\t0.003s"],
    ["./total.go:12:3: undefined: sum", "# example.com/shop", "./total.go:12:3: undefined: sum"],
    ["TypeError: Cannot read properties of undefined (reading 'id')", "/srv/app/index.js:3", "    at run (/srv/app/index.js:3:9)", "TypeError: Cannot read properties of undefined (reading 'id')", "    at run (/srv/app/index.js:3:9)", "    at Module._compile (node:internal/modules/cjs/loader:1554:14)", "", "Node.js v22.1.0"],
    ["Caused by: java.net.ConnectException: Connection refused", 'Exception in thread "main" java.lang.IllegalStateException: no stock', "\tat shop.Main.main(Main.java:9)", "Caused by: java.net.ConnectException: Connection refused", "\t... 3 more"],
    ["error[E0382]: borrow of moved value: `order`", "error[E0382]: borrow of moved value: `order`", " --> src/main.rs:4:20", "error: could not compile `shop` (bin \"shop\") due to 1 previous error"],
    ["index out of bounds: the len is 3 but the index is 7", "thread 'main' panicked at src/main.rs:3:5:", "index out of bounds: the len is 3 but the index is 7", "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"],
    ["./build.sh: line 3: mak: command not found", "building", "./build.sh: line 3: mak: command not found"],
    ["error: the disk is full", "0 errors, 2 warnings", "error: the disk is full", "bye"],
    ["npm ERR! Missing script: \"biuld\" failed: see above", "npm ERR! code ELIFECYCLE", 'npm ERR! Missing script: "biuld" failed: see above', "npm ERR! A complete log of this run can be found in: /home/dev/x.log"],
  ]) {
    const lines = new Lines();
    lines.push(printed.join("\n") + "\n");
    assert.equal(lines.failure()?.text, why);
  }
  const quiet = new Lines();
  quiet.push("all is done\n0 errors\n");
  assert.equal(quiet.failure(), null);
});
