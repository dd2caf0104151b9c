// Tests of the user of the pages, with a fake director.
import assert from "node:assert/strict";
import { test } from "node:test";

test("another login gets the page anew", async () => {
  let reloads = 0, id = "anna";
  globalThis.location = { reload: () => { reloads++; }, pathname: "/ui/", origin: "http://127.0.0.1:8080" };
  globalThis.document = { addEventListener() {}, hidden: false };
  globalThis.self = globalThis;
  globalThis.fetch = async () => Response.json({ kind: "user", id, scopes: ["read"] });
  const { loadMe } = await import("../assets/lib/me.js");
  await loadMe();
  await loadMe();
  assert.equal(reloads, 0);
  id = "ben";
  await loadMe();
  assert.equal(reloads, 1);
});
