// The pages of the site, their order, and the targets of links. The order, the
// titles and the descriptions come from docs/index.md.
import fs from "node:fs";
import path from "node:path";

export const repository = "https://github.com/signalbox-ai/signalbox";

// Pages in the repository's root that the documentation links to. The site
// contains them next to those of docs/.
const outside = { "README.md": "readme", "SECURITY.md": "security", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog" };

// source → stem: "docs/how-to/backup.md" is "how-to/backup", which is
// how-to/backup.html and its twin how-to/backup.md.
export const stems = new Map(Object.entries(outside));
for (const name of fs.readdirSync("docs", { recursive: true })) {
	const file = name.split(path.sep).join("/");
	if (file.endsWith(".md")) stems.set(`docs/${file}`, file.slice(0, -3));
}
export const decisionsIndex = "docs/decisions/index.md"; // made from the titles
stems.set(decisionsIndex, "decisions/index");

export const rootPages = Object.keys(outside);

const read = (source) => fs.readFileSync(source, "utf8");
export const titleOf = (source) => /^# +(.+)$/m.exec(read(source))[1].replaceAll("`", "");

export const decisionsText = () =>
	"# Decisions\n\nWhy Signalbox is built as it is: context, choice and what was given up.\n\n" +
	[...stems.keys()]
		.filter((s) => /^docs\/decisions\/\d/.test(s))
		.sort()
		.map((s) => `- [${s.slice(15, 19)}: ${titleOf(s)}](${path.basename(s)})`)
		.join("\n") + "\n";

export const textOf = (source) => (source === decisionsIndex ? decisionsText() : read(source)).replace(/<!--[^]*?-->\n*/g, "");

// resolve returns the target of a link: a page of the site, a picture of the
// site, or a file of the repository.
function resolve(source, href) {
	const [, to, rest] = /^([^?#]*)(.*)$/.exec(href);
	if (/^[a-z][a-z0-9+.-]*:/i.test(href)) return { away: href };
	if (to === "") return { source, rest };
	const target = path.posix.normalize(path.posix.join(path.posix.dirname(source), to));
	if (target.replace(/\/$/, "") === "docs/decisions") return { source: decisionsIndex, rest };
	if (stems.has(target)) return { source: target, rest };
	if (/^docs\/pages\/[\w-]+\.png$/.test(target)) return { asset: target.slice("docs/".length), rest };
	return { away: `${repository}/${target.endsWith("/") || !path.posix.extname(target) ? "tree" : "blob"}/main/${target.replace(/\/$/, "")}${rest}` };
}

const relative = (fromStem, file) => path.posix.relative(path.posix.dirname(fromStem), file);

// hrefIn returns a link of a page for the site, in its HTML or in its twin.
export function hrefIn(source, href, ending) {
	const to = resolve(source, href);
	if (to.away) return to.away;
	if (to.asset) return relative(stems.get(source), to.asset) + to.rest;
	if (to.source === source && href.startsWith("#")) return href;
	return relative(stems.get(source), stems.get(to.source) + ending) + to.rest;
}

// up returns the path from a page to the site's root: "", "../".
export const up = (stem) => "../".repeat(stem.split("/").length - 1);

// twin returns the Markdown of a page: its source, with links adapted to the
// site.
export function twin(source) {
	let fence = "";
	return textOf(source).split("\n").map((line) => {
		const mark = /^\s*(`{3,})/.exec(line)?.[1] ?? "";
		if (fence ? line.trim() === fence : mark) fence = fence ? "" : mark;
		else if (!fence) return line.replace(/(`[^`]*`)|\]\(([^()\s]+)\)/g, (all, code, href) => (code ? all : `](${hrefIn(source, href, ".md")})`));
		return line;
	}).join("\n");
}

// outline returns docs/index.md as data: the title, the summary, and the sections
// with their pages. An entry with links to two pages gives two pages with the same
// description.
export function outline() {
	const text = read("docs/index.md");
	const [, title, summary, about] = /^# (.+)\n\n(.+)\n\n(.+)\n/.exec(text);
	const sections = text.split(/^## /m).slice(1).map((part) => {
		const [name] = part.split("\n");
		const pages = [...part.matchAll(/^- (.+)$/gm)].flatMap(([, entry]) => {
			const links = [...entry.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)];
			const colon = entry.indexOf("): ");
			if (!links.length || colon < 0) throw new Error(`docs/index.md: "${entry}" is not "[title](page.md): description"`);
			return links.filter((l) => l.index < colon).map(([, title, href]) => {
				const to = resolve("docs/index.md", href);
				if (!to.source) throw new Error(`docs/index.md: ${href} is not a page`);
				return { title: title[0].toUpperCase() + title.slice(1), source: to.source, stem: stems.get(to.source), description: entry.slice(colon + 3) };
			});
		});
		return { name, pages };
	});
	return { title, summary, about, sections };
}

// llms returns llms.txt: a list of the pages for readers that want Markdown.
export function llms({ summary, about, sections }, base) {
	const list = (pages) => pages.map((p) => `- [${p.title}](${base}${p.stem}.md): ${p.description}`).join("\n");
	const optional = sections.at(-1);
	return `# Signalbox\n\n> ${summary}\n\n${about} Each link leads to the Markdown of a page; the same address with .html is the page for people.\n\n` +
		sections.slice(0, -1).map((s) => `## ${s.name}\n\n${list(s.pages)}\n`).join("\n") + `\n## Optional\n\n${list(optional.pages)}\n`;
}
