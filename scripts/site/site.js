// The scripts of a page: the theme, the search and a button that copies a block.
// It loads nothing until someone searches.
(() => {
	"use strict";
	const html = document.documentElement;
	const themes = ["auto", "light", "dark"];
	const kept = { // a page opened as a file may have no storage
		get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
		set: (value) => { try { localStorage.setItem("theme", value); } catch { /* it applies to this page only */ } },
	};
	let theme = themes.includes(kept.get()) ? kept.get() : "auto";
	html.dataset.theme = theme; // before the first paint
	html.classList.add("starting");

	document.addEventListener("DOMContentLoaded", () => {
		const root = document.body.dataset.root;
		const $ = (id) => document.getElementById(`site-${id}`); // a heading may be called "search"
		document.querySelector(".tools").hidden = false;

		const button = $("theme");
		const show = () => {
			html.dataset.theme = theme;
			button.querySelector("span").textContent = theme;
		};
		button.addEventListener("click", () => {
			theme = themes[(themes.indexOf(theme) + 1) % themes.length];
			kept.set(theme);
			show();
		});
		show();

		// The list of pages is open if there is space next to the text.
		const wide = matchMedia("(min-width: 60rem)");
		const open = () => { $("pages").open = wide.matches; };
		wide.addEventListener("change", open);
		open();
		html.classList.remove("starting");
		const nav = document.querySelector(".pages"), current = nav.querySelector("[aria-current]");
		if (current && wide.matches && current.offsetTop > nav.clientHeight) nav.scrollTop = current.offsetTop - nav.clientHeight / 2;

		// Elements that scroll sideways are reachable with the keyboard.
		for (const box of document.querySelectorAll(".scroll, pre")) {
			if (box.scrollWidth <= box.clientWidth) continue;
			box.tabIndex = 0;
			box.setAttribute("role", "region");
			box.setAttribute("aria-label", box.matches("pre") ? "Code" : "Table");
		}

		for (const block of navigator.clipboard ? document.querySelectorAll("pre > code") : []) {
			const copy = document.createElement("button");
			copy.type = "button";
			copy.className = "copy";
			copy.textContent = "Copy";
			copy.addEventListener("click", async () => {
				let text = block.textContent;
				if (block.matches(".language-console")) // the commands without their output
					text = text.split("\n").filter((l) => l.startsWith("$ ")).map((l) => l.slice(2) + "\n").join("") || text;
				try {
					await navigator.clipboard.writeText(text);
					copy.textContent = "Copied";
				} catch {
					copy.textContent = "Not allowed";
				}
				setTimeout(() => { copy.textContent = "Copy"; }, 2000);
			});
			const frame = document.createElement("div");
			frame.className = "block";
			block.parentElement.replaceWith(frame);
			frame.append(block.parentElement, copy);
		}

		search(root, $);
	});

	function search(root, $) {
		const dialog = $("search"), field = $("search-words"), state = $("search-state"), results = $("search-results");
		let index, loading, shown = "";

		// A script element, because a page opened as a file cannot use fetch.
		const load = () => loading ??= new Promise((done, failed) => {
			const script = document.createElement("script");
			script.src = `${root}search.js`;
			script.onerror = () => failed(new Error("search.js"));
			script.onload = done;
			document.head.append(script);
		}).then(async () => {
			const made = new MiniSearch({ fields: ["t", "h", "x"], idField: "u" });
			await made.addAllAsync(signalboxPages.map((page, u) => ({ ...page, u })), { chunkSize: 40 });
			index = made; // never return results of an incomplete index
		});

		// First all words as typed, the last one perhaps unfinished; then with typos;
		// then only some of them.
		const options = { boost: { t: 3, h: 5 }, combineWith: "AND", prefix: (word, i, all) => i === all.length - 1, boostDocument: (u) => signalboxPages[u].w ?? 1 };
		const slips = { ...options, fuzzy: (word) => word.length > 4 ? 0.2 : false };
		const ways = [options, slips, { ...slips, combineWith: "OR" }];
		function find() {
			const words = field.value.trim();
			if (!index || words === shown) return;
			shown = words;
			let found = [];
			for (const way of words ? ways : []) if (!found.length) found = index.search(words, way);
			const once = new Set(); // at most three sections of a page
			const count = new Map();
			const picked = found.filter((f) => {
				const page = signalboxPages[f.id].u.split("#")[0], n = count.get(page) ?? 0;
				count.set(page, n + 1);
				return n < 3 && !once.has(signalboxPages[f.id].u) && once.add(signalboxPages[f.id].u);
			}).slice(0, 30);
			results.replaceChildren(...picked.map((f) => item(signalboxPages[f.id], f.terms)));
			state.textContent = !words ? "" : found.length ? `${picked.length < found.length ? `The best ${picked.length} of ${found.length}` : found.length} result${found.length === 1 ? "" : "s"}` : `Nothing has “${words}”`;
		}

		function item(page, terms) {
			const li = document.createElement("li"), a = document.createElement("a"), p = document.createElement("p");
			a.href = root + page.u;
			a.append(page.h ? `${page.t} › ${page.h}` : page.t);
			const low = page.x.toLowerCase();
			const at = Math.max(0, Math.min(...terms.map((t) => low.indexOf(t)).filter((i) => i >= 0), low.length) - 60);
			const text = page.x.slice(at === low.length - 60 ? 0 : at).slice(0, 180);
			const parts = text.split(new RegExp(`(${terms.map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "i"));
			parts.forEach((part, i) => {
				const mark = document.createElement("mark");
				mark.textContent = part;
				p.append(i % 2 ? mark : part);
			});
			li.append(a, p);
			return li;
		}

		async function open() {
			if (dialog.open) return;
			dialog.showModal();
			field.select();
			if (index) return;
			state.textContent = "Loading…";
			try {
				await load();
				state.textContent = "";
				shown = "";
				find();
			} catch {
				loading = undefined;
				state.textContent = "The search could not be loaded. Close this and try again.";
			}
		}

		$("search-open").addEventListener("click", open);
		field.addEventListener("input", find);
		document.addEventListener("keydown", (e) => {
			const typing = e.target.closest?.("input, textarea, select, [contenteditable]");
			if ((e.key === "k" && (e.ctrlKey || e.metaKey)) || (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey)) {
				e.preventDefault();
				open();
			}
		});
		dialog.addEventListener("keydown", (e) => {
			const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
			if (e.key === "ArrowDown" && links.length) {
				e.preventDefault();
				links[Math.min(at + 1, links.length - 1)].focus();
			} else if (e.key === "ArrowUp" && at >= 0) {
				e.preventDefault();
				(links[at - 1] ?? field).focus();
			} else if (e.key === "Escape") { // otherwise the first Escape would only clear the field
				e.preventDefault();
				dialog.close();
			} else if (e.key === "Enter" && e.target === field) {
				e.preventDefault();
				links[0]?.click();
			}
		});
		results.addEventListener("click", (e) => { if (e.target.closest("a")) dialog.close(); });
		dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
	}
})();
