// Tests of lib/csv.js: a table as CSV.
import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "../assets/lib/csv.js";

const cellOf = (value) => csv(["a"], [{ a: value }]).slice("a\r\n".length, -"\r\n".length);

test("a head, a line for each row, and nothing where there is no value", () => {
  assert.equal(csv(["a", "b"], [{ a: "x", b: 1 }, { b: null }]), "a,b\r\nx,1\r\n,\r\n");
});

test("commas, quotes and line breaks are quoted", () => {
  assert.equal(cellOf("a,b"), '"a,b"');
  assert.equal(cellOf('say "hi"'), '"say ""hi"""');
  assert.equal(cellOf("a\nb"), '"a\nb"');
  assert.equal(cellOf("a\r\nb"), '"a\r\nb"');
});

test("what looks like a formula becomes text", () => {
  for (const begin of ["=", "+", "-", "@", "\t"]) assert.equal(cellOf(`${begin}1+1`), `'${begin}1+1`);
  assert.equal(cellOf('=HYPERLINK("http://x","y")'), `"'=HYPERLINK(""http://x"",""y"")"`);
  assert.equal(cellOf("a=1"), "a=1");
});

test("a number is no formula", () => {
  assert.equal(cellOf(-5), "-5");
  assert.equal(cellOf(0), "0");
});
