import assert from "node:assert";
import test from "node:test";
import { timed } from "../assets/parts/lines.js";

test("a piece of a log is split where its times say", () => {
  assert.deepEqual(timed({ text: "añb\nc", seq: 10, times: [[4, 1000], [14, 2000]] }), [["añb", 1000], ["\nc", 2000]]);
  assert.deepEqual(timed({ text: "a", seq: 0 }), [["a", 0]]);
});
