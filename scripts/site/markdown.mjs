// Converts the site's Markdown to HTML: anchors as on GitHub, links to pages of
// the site, scrollable tables. It also collects the data for the search and the
// list of headings.
import { hrefIn } from "./pages.mjs";

// slug is the anchor of a heading, as in docs_test.go.
const slug = (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");

const plain = (inline) => inline.children.map((t) => (t.type === "softbreak" ? " " : t.type === "text" || t.type === "code_inline" ? t.content : "")).join("");

// sections of each page, by its source: heading, anchor, level and words.
export const sections = new Map();

export function amend(md) {
	md.set({ html: true, linkify: false, typographer: false });
	md.enable("code"); // indented blocks, which Eleventy disables
	md.core.ruler.push("signalbox", (state) => {
		const source = state.env.source;
		if (!source) return;
		// What an <a id> of the page calls itself is not a heading's name as well.
		const seen = new Map([...state.src.matchAll(/<a (?:id|name)="([^"]+)"/g)].map((m) => [m[1], 1]));
		let here = { heading: "", id: "", level: 1, words: [] };
		const all = [here];
		state.tokens.forEach((token, i) => {
			if (token.type === "heading_open") {
				const heading = plain(state.tokens[i + 1]);
				const name = slug(heading);
				const n = seen.get(name) ?? 0;
				seen.set(name, n + 1);
				const id = n ? `${name}-${n}` : name;
				token.attrSet("id", id);
				here = { heading, id, level: Number(token.tag[1]), words: [] };
				all.push(here);
			} else if (token.type === "inline") {
				if (state.tokens[i - 1].type !== "heading_open") here.words.push(plain(token));
				for (const t of token.children) {
					if (t.type === "link_open") t.attrSet("href", hrefIn(source, t.attrGet("href"), ".html"));
					if (t.type === "image") {
						t.attrSet("src", hrefIn(source, t.attrGet("src"), ""));
						t.attrSet("loading", "lazy");
					}
				}
			} else if (token.type === "fence" || token.type === "code_block") {
				here.words.push(token.content);
			}
		});
		sections.set(source, all);
	});
	const heading = (tokens, i, options, env, self) => self.renderToken(tokens, i, options);
	md.renderer.rules.heading_close = (tokens, i, options, env, self) => {
		const id = tokens[i - 2].attrGet("id");
		const link = tokens[i].tag === "h1" || !id ? "" : ` <a class="anchor" href="#${md.utils.escapeHtml(id)}" aria-hidden="true" tabindex="-1">#</a>`;
		return link + heading(tokens, i, options, env, self);
	};
	md.renderer.rules.table_open = () => '<div class="scroll"><table>\n';
	md.renderer.rules.table_close = () => "</table></div>\n";
}
