// Tests of parts/syntax.js: lines of code as pieces, with the real Prism.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { languageOf, order, pieces } from "../assets/parts/syntax.js";

// of loads the syntax of a language as a page does.
const of = (language) => {
  const page = { Prism: { manual: true } };
  page.window = page.self = page;
  vm.createContext(page);
  for (const name of ["core", ...order(language)]) vm.runInContext(readFileSync(new URL(`../assets/vendor/prism/prism-${name}.min.js`, import.meta.url), "utf8"), page);
  return { tokenize: page.Prism.tokenize, grammar: page.Prism.languages[language] };
};

test("a file's language goes by the end of its name", () => {
  for (const [path, want] of [["a/b.go", "go"], ["x.test.TSX", "tsx"], ["Dockerfile", "docker"], ["src/Makefile", "makefile"], ["LICENSE", undefined], ["a.go/b", undefined], ["", undefined], ["constructor", undefined]]) {
    assert.equal(languageOf(path), want, path);
  }
});

test("pieces are those of each line, also of what goes over several", () => {
  assert.deepEqual(pieces(of("go"), ["/* one", "two */ var x = \"s\" + 1"]), [
    [["comment", "/* one"]],
    [["comment", "two */"], ["", " "], ["keyword", "var"], ["", " x "], ["", "="], ["", " "], ["string", "\"s\""], ["", " "], ["", "+"], ["", " "], ["number", "1"]],
  ]);
});

test("every language is there, and loses no character", () => {
  const lines = ["<a href=\"x\">${y}</a> // # -- /*", "", "def f(x): return 'a' + \"b\" # <script>", "key: [1, true] \t", "```js", "*/ }"];
  for (const path of ["bash.sh", "c.c", "c.cpp", "c.cs", "a.css", "dockerfile", "a.go", "a.java", "a.js", "a.json", "a.jsx", "a.kt", "a.lua", "makefile", "a.md", "a.html", "a.php", "a.py", "a.rb", "a.rs", "a.sql", "a.swift", "a.toml", "a.tsx", "a.ts", "a.yaml"]) {
    const one = of(languageOf(path));
    assert.ok(one.grammar, path);
    assert.deepEqual(pieces(one, lines).map((line) => line.map(([, text]) => text).join("")), lines, path);
  }
});

test("what is large stays plain", () => {
  const lines = ["x".repeat(30_000), "var x"];
  assert.deepEqual(pieces(of("go"), lines), lines.map((line) => [["", line]]));
});
