// Syntax highlighting by Prism, which is loaded one language at a time. It only splits the
// text: what is shown stays text.

const languages = {
  bash: "sh bash zsh", c: "c h", cpp: "cc cpp cxx hh hpp", csharp: "cs", css: "css", docker: "dockerfile", go: "go", java: "java",
  "javascript": "js mjs cjs", json: "json", jsx: "jsx", kotlin: "kt kts", lua: "lua", makefile: "makefile mk", markdown: "md", markup: "html htm xml svg vue",
  php: "php", python: "py pyi", ruby: "rb gemfile rakefile", rust: "rs", sql: "sql", swift: "swift", toml: "toml", tsx: "tsx", typescript: "ts mts cts", yaml: "yaml yml",
};
// The languages that a language depends on.
const needs = {
  c: ["clike"], cpp: ["c"], csharp: ["clike"], go: ["clike"], java: ["clike"], "javascript": ["clike"], jsx: ["markup", "javascript"], kotlin: ["clike"],
  markdown: ["markup"], "markup-templating": ["markup"], php: ["clike", "markup-templating"], ruby: ["clike"], tsx: ["jsx", "typescript"], typescript: ["javascript"],
};
const byEnding = new Map(Object.entries(languages).flatMap(([name, endings]) => endings.split(" ").map((ending) => [ending, name])));

// languageOf is the language of a file, or undefined.
export const languageOf = (path) => byEnding.get(path.split("/").at(-1).split(".").at(-1).toLowerCase());

// order lists the dependencies of a language and itself, in load order.
export const order = (name, list = []) => {
  for (const other of needs[name] ?? []) order(other, list);
  if (!list.includes(name)) list.push(name);
  return list;
};

const parts = new Map(); // promises of the requested parts

// syntax loads the syntax of a language.
export const syntax = async (name) => {
  const [{ scriptAddress }, { added }] = await Promise.all([import("../lib/trusted.js"), import("./chart.js")]);
  window.Prism ??= { manual: true, disableWorkerMessageHandler: true };
  await Promise.all(["core", ...order(name)].map((one) => { // they run in this order
    if (!parts.has(one)) parts.set(one, added("script", { src: scriptAddress(`prism-${one}`), async: false }));
    return parts.get(one);
  }));
  return { tokenize: window.Prism.tokenize, grammar: window.Prism.languages[name] };
};

const kinds = {
  comment: "comment prolog doctype cdata", keyword: "keyword boolean important atrule tag null", number: "number constant symbol",
  string: "string char regex attr-value template-string url string-interpolation", name: "function class-name property attr-name key selector title builtin",
};
const kindOf = new Map(Object.entries(kinds).flatMap(([kind, types]) => types.split(" ").map((type) => [type, kind])));

const mostText = 20_000; // characters at a time: crafted text can make a syntax slow

// pieces splits lines into pieces, [kind, text]; kind is "" for plain text.
export const pieces = ({ tokenize, grammar }, lines) => {
  const text = lines.join("\n");
  if (!grammar || text.length > mostText) return lines.map((line) => [["", line]]);
  const out = [[]];
  const add = (token, kind) => {
    if (Array.isArray(token)) for (const one of token) add(one, kind);
    else if (typeof token !== "string") add(token.content, kindOf.get(token.type) ?? kind);
    else {
      for (const [i, line] of token.split("\n").entries()) {
        if (i > 0) out.push([]);
        if (line) out.at(-1).push([kind, line]);
      }
    }
  };
  add(tokenize(text, grammar), "");
  return out;
};
