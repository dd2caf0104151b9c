// Configuration of Eleventy, which builds the site: see scripts/build-site.sh.
import fs from "node:fs";
import path from "node:path";
import { amend, sections } from "./markdown.mjs";
import { decisionsIndex, decisionsText, hrefIn, llms, outline, rootPages, stems, textOf, titleOf, twin } from "./pages.mjs";

const out = process.env.SITE_OUT;
const modules = process.env.SITE_MODULES;
const base = process.env.SITE_URL ? process.env.SITE_URL.replace(/\/*$/, "/") : "";

// words of the pages, section by section, for the search in the browser. What
// users look up comes first, and last what contributors have written for each other.
function words(site) {
	const few = new Set(site.sections.at(-1).pages.map((p) => p.source));
	const reference = new Set(site.sections.find((s) => s.name === "Reference").pages.map((p) => p.source));
	const evidence = new Set(["seeds", "benchmarks", "threat-model"].map((p) => `docs/${p}.md`));
	const weight = (source) => (few.has(source) || source.startsWith("docs/decisions/") ? 0.3 : evidence.has(source) ? 0.5 : reference.has(source) ? 1.5 : 1);
	const all = [];
	for (const [source, parts] of sections) {
		if (source === decisionsIndex || source === "docs/index.md") continue;
		for (const part of parts) {
			const text = part.words.join(" ").replace(/\s+/g, " ").trim();
			if (!text) continue;
			all.push({ t: titleOf(source), h: part.level === 1 ? "" : part.heading, u: `${stems.get(source)}.html${part.level > 1 ? `#${part.id}` : ""}`, x: text, w: weight(source) });
		}
	}
	return all;
}

export default function (eleventy) {
	const site = outline();
	eleventy.setUseGitIgnore(false);
	eleventy.setQuietMode(true);
	eleventy.amendLibrary("md", amend);
	eleventy.addGlobalData("site", site);
	eleventy.addGlobalData("layout", "layout.11ty.mjs");
	eleventy.addGlobalData("eleventyComputed", {
		source: (data) => data.from ?? path.posix.normalize(data.page.inputPath),
		permalink: (data) => `${stems.get(data.from ?? path.posix.normalize(data.page.inputPath))}.html`,
	});
	eleventy.addPreprocessor("comments", "md", (data, content) => content.replace(/<!--[^]*?-->\n*/g, ""));
	for (const source of rootPages) eleventy.addTemplate(`${stems.get(source)}.md`, textOf(source), { from: source });
	eleventy.addTemplate("decisions/index.md", decisionsText(), { from: decisionsIndex });

	eleventy.addPassthroughCopy({ "docs/pages": "pages", "internal/dashboard/assets/icon.svg": "icon.svg", "scripts/site/style.css": "style.css", "scripts/site/site.js": "site.js" });

	eleventy.on("eleventy.after", () => {
		const write = (name, text) => {
			fs.mkdirSync(path.dirname(path.join(out, name)), { recursive: true });
			fs.writeFileSync(path.join(out, name), text);
		};
		for (const [source, stem] of stems) write(`${stem}.md`, twin(source));
		write("llms.txt", llms(site, base));
		const engine = fs.readFileSync(path.join(modules, "minisearch/dist/umd/index.js"), "utf8").replace(/^\/\/# sourceMappingURL.*$/m, "");
		const licence = fs.readFileSync(path.join(modules, "minisearch/LICENSE.txt"), "utf8");
		write("search.js", `/*! MiniSearch\n${licence}*/\n${engine}\nglobalThis.signalboxPages = ${JSON.stringify(words(site))};\n`);
	});

	return { dir: { input: "docs", includes: "../scripts/site", output: path.relative(".", out) }, markdownTemplateEngine: false, templateFormats: ["md"] };
}
