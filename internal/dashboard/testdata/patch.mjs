// Tests of parts/patch.js: a patch as files, hunks and lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, placeOf, sides, visible } from "../assets/parts/patch.js";

const simple = `diff --git a/a b.txt b/a b.txt
index 111..222 100644
--- a/a b.txt\t
+++ b/a b.txt\t
@@ -1,3 +1,4 @@ func main
 one
-two
+2
+2.5
 three
\\ No newline at end of file
`;

test("lines have their numbers on both sides", () => {
  const [file] = parse(simple);
  assert.equal(file.path, "a b.txt");
  assert.deepEqual(file.hunks[0].lines.map((l) => [l.kind, l.old, l.now, l.text]), [
    ["same", 1, 1, "one"], ["del", 2, 0, "two"], ["add", 0, 2, "2"], ["add", 0, 3, "2.5"], ["same", 3, 4, "three"],
    ["note", 0, 0, "no line end at the end of the file"],
  ]);
  assert.equal(file.lines, 6);
});

test("lines that look like heads are lines", () => {
  const [file, other] = parse("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n-diff --git a/z b/z\n+@@ -1 +1 @@\ndiff --git a/w b/w\nnew file mode 100644\n");
  assert.deepEqual(file.hunks[0].lines.map((l) => [l.kind, l.text]), [["del", "-- a/y"], ["add", "++ b/y"], ["del", "diff --git a/z b/z"], ["add", "@@ -1 +1 @@"]]);
  assert.equal(file.path, "x");
  assert.equal(other.path, "w");
  assert.deepEqual(other.notes, ["new file mode 100644"]);
});

test("renamed, binary and removed files, and names that git quotes", () => {
  const files = parse(`diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
diff --git a/logo.png b/logo.png
index 111..222 100644
GIT binary patch
literal 5
@@ -1 +1 @@
zzzz
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git "a/\\303\\244 \\"\\t.txt" "b/\\303\\244 \\"\\t.txt"
`);
  assert.deepEqual(files.map((f) => [f.path, f.from, f.binary, f.lines]), [["new.txt", "old.txt", false, 0], ["logo.png", "", true, 0], ["gone", "", false, 1], ["ä \"\t.txt", "", false, 0]]);
});

test("what is no patch has no files, and a broken one does not throw", () => {
  for (const text of ["", "\n\n", "hello\n@@ -1 +1 @@\n+x", "diff --git \ndiff --git \"\n@@ -9999999999 +1 @@\n+x\n+++ \"\\\n"]) {
    assert.ok(parse(text).every((f) => f.lines === 0));
  }
});

test("two columns pair what was with what is", () => {
  const rows = sides(parse(simple)[0].hunks[0].lines);
  assert.deepEqual(rows.map((r) => [r.old?.text, r.now?.text]), [["one", "one"], ["two", "2"], [undefined, "2.5"], ["three", "three"], ["no line end at the end of the file", "no line end at the end of the file"]]);
  const two = sides([{ kind: "del", text: "a" }, { kind: "del", text: "b" }, { kind: "add", text: "c" }, { kind: "add", text: "d" }]);
  assert.deepEqual(two.map((r) => [r.old.text, r.now.text]), [["a", "c"], ["b", "d"]]);
});

test("characters that hide are named, and long lines cut", () => {
  assert.equal(visible("a\u202eb\x1b[2J\tc\r"), "a⟨U+202E⟩b⟨U+001B⟩[2J\tc");
  assert.equal(visible("<b>&amp;"), "<b>&amp;");
  const long = visible("x".repeat(262144));
  assert.ok(long.length < 4100 && long.endsWith("(258,144 more characters)"), long.slice(-60));
});

test("places name the lines as they are now", () => {
  assert.equal(placeOf("a", [{ old: 3, now: 4 }]), "a:4");
  assert.equal(placeOf("a", [{ old: 3, now: 0 }, { old: 0, now: 3 }, { old: 0, now: 4 }]), "a:3-4");
  assert.equal(placeOf("a", [{ old: 7, now: 0 }, { old: 8, now: 0 }]), "a:7-8 (removed)");
});
