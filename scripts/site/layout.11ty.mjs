// The frame around each page.
import { repository, stems, textOf, up } from "./pages.mjs";
import { sections } from "./markdown.mjs";

const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

export default function ({ content, source, site }) {
	const stem = stems.get(source);
	const root = up(stem);
	const all = site.sections.flatMap((s) => s.pages);
	const at = all.findIndex((p) => p.source === source);
	const section = stem.startsWith("decisions/") ? "docs/decisions/index.md" : source; // the marked entry of the page list
	const title = /^# +(.+)$/m.exec(textOf(source))[1].replaceAll("`", "");
	const said = all[at]?.description ?? site.summary;
	const description = said[0].toUpperCase() + said.slice(1);

	const list = site.sections.map((s) => `
<section><h2>${escape(s.name)}</h2><ul>${s.pages.map((p) =>
		`<li><a href="${root}${p.stem}.html"${p.source === section ? ' aria-current="page"' : ""}>${escape(p.title)}</a></li>`).join("")}</ul></section>`).join("");

	const headings = (sections.get(source) ?? []).filter((h) => h.level === 2 || h.level === 3);
	const contents = headings.length < 2 ? "" : `
<nav class="contents" aria-labelledby="site-contents"><h2 id="site-contents">On this page</h2><ul>${headings.filter((h) => headings.length < 40 || h.level === 2).map((h) =>
		`<li class="level-${h.level}"><a href="#${escape(h.id)}">${escape(h.heading)}</a></li>`).join("")}</ul></nav>`;

	const step = (page, word, rel) => page ? `<a rel="${rel}" href="${root}${page.stem}.html"><span>${word}</span> ${escape(page.title)}</a>` : "<span></span>";
	const around = at < 0 ? "" : `<nav class="around" aria-label="Neighbouring pages">${step(all[at - 1], "Previous:", "prev")}${step(all[at + 1], "Next:", "next")}</nav>`;
	const made = source === "docs/decisions/index.md"; // generated, without a source file

	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'">
<title>${escape(stem === "index" ? title : `${title} · Signalbox`)}</title>
<meta name="description" content="${escape(description.replace(/[`*]|\[([^\]]*)\]\([^)]*\)/g, "$1"))}">
<meta name="color-scheme" content="light dark">
<script src="${root}site.js"></script>
<link rel="stylesheet" href="${root}style.css">
<link rel="icon" href="${root}icon.svg" type="image/svg+xml">
<link rel="alternate" type="text/markdown" title="This page as Markdown" href="${stem.split("/").at(-1)}.md">
</head>
<body data-root="${root}">
<a class="skip" href="#site-main">Skip to the text</a>
<header class="top">
<a class="brand" href="${root}index.html"><img src="${root}icon.svg" alt="" width="22" height="22"> Signalbox</a>
<div class="tools" hidden>
<button type="button" id="site-search-open" aria-keyshortcuts="/ Control+K">Search <kbd aria-hidden="true">/</kbd></button>
<button type="button" id="site-theme">Theme: <span></span></button>
</div>
</header>
<div class="frame">
<nav class="pages" aria-label="All pages"><details id="site-pages" open><summary>All pages</summary>${list}</details></nav>
<main id="site-main" tabindex="-1">
<article>
${content}
</article>
${around}
<footer><a href="${stem.split("/").at(-1)}.md">This page as Markdown</a>${made ? "" : ` · <a href="${repository}/blob/main/${source}">Its source</a>`}</footer>
</main>
${contents}
</div>
<dialog id="site-search" aria-label="Search">
<form method="dialog" role="search">
<label for="site-search-words">Search the documentation</label>
<div class="row"><input id="site-search-words" type="search" autocomplete="off" spellcheck="false" aria-describedby="site-search-state"><button type="submit" value="close" formnovalidate>Close</button></div>
<p id="site-search-state" role="status"></p>
</form>
<ol id="site-search-results"></ol>
</dialog>
</body>
</html>
`;
}
