import assert from "node:assert";
import test from "node:test";
import { inline, parse, safe } from "../assets/parts/markdown.js";

const kinds = (text) => parse(text).map((b) => b.kind);

test("blocks", () => {
  assert.deepEqual(kinds("# Summary\nAll is well.\n\n- one\n- two\n\n> said\n\n---\n```go\nfunc main() {}\n```\n"), ["heading", "text", "list", "quote", "rule", "code"]);
  assert.deepEqual(parse("```\na\n\n# b\n```")[0], { kind: "code", text: "a\n\n# b" });
  assert.deepEqual(parse("| a | b |\n|---|:-:|\n| 1 | 2 | 3 |"), [{ kind: "table", head: ["a", "b"], rows: [["1", "2"]] }]);
});

test("lists keep their numbers and what is in them", () => {
  const [list] = parse("3. three\n   more\n   - deep\n\n4. four");
  assert.equal(list.start, 3);
  assert.equal(list.items.length, 2);
  assert.deepEqual(list.items[0].blocks.map((b) => b.kind), ["text", "list"]);
});

test("a fence that does not end takes the rest", () => {
  assert.deepEqual(parse("```\nrm -rf /\n"), [{ kind: "code", text: "rm -rf /\n" }]);
});

test("only links to the web and to mail", () => {
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "/ui/", " https://a", "vbscript:x"]) assert.equal(safe(bad), false, bad);
  for (const good of ["https://example.com/a?b=c", "http://localhost:1", "mailto:a@example.com"]) assert.equal(safe(good), true, good);
});

test("hostile text takes little time", () => {
  for (const text of ["*".repeat(20_000), "[".repeat(20_000), "`".repeat(20_000), "> ".repeat(5000) + "x", "- ".repeat(5000), "_a".repeat(10_000), "**a".repeat(7000), "|".repeat(5000) + "\n" + "|-".repeat(3000), "# ".repeat(10_000), " \n".repeat(20_000) + "- a", "``a` ".repeat(1000), "**a *b ".repeat(700), "_a *b `c [d ".repeat(400)]) {
    const began = performance.now();
    parse(text);
    inline(text.slice(0, 5000));
    inline(text.slice(0, 4999));
    assert.ok(performance.now() - began < 5000, `${text.slice(0, 12)}… took ${Math.round(performance.now() - began)} ms`);
  }
});
