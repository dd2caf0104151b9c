// The user of the pages, and their rights.
import { get } from "./api.js";
import { store, useStore } from "./dom.js";
import { useDanger } from "./live.js";

const me = store(null);
export const loadMe = async () => {
  const before = me.get(), now = await get("/api/me");
  // Another user has logged in, in another tab: drop everything that the
  // previous one saw.
  if (before && (before.kind !== now.kind || before.id !== now.id)) location.reload();
  else me.set(now);
};
// useMe is the answer to GET /api/me; null before it.
export const useMe = () => useStore(me);

// useMay reports whether an action is allowed now: {ok, why}, why for a title. It
// needs the scope and, if irreversible, recent data.
export const useMay = (scope) => {
  const who = useMe(), alive = useDanger();
  if (!who) return { ok: false, why: "The director has not identified you yet." };
  if (!who.scopes.includes(scope) && !who.scopes.includes("admin")) return { ok: false, why: `You lack the scope “${scope}”.` };
  if (!alive) return { ok: false, why: "The director does not answer: the data may be outdated." };
  return { ok: true, why: "" };
};

// useOwn reports whether a task belongs to the user of the pages.
export const useOwn = (task) => {
  const who = useMe();
  const asked = { user: task.source_user_id, service: task.source_service, agent: task.source_agent }[who?.kind];
  return Boolean(asked) && asked === who.id;
};
