// Who looks at the pages, and what they may do.
import { get } from "./api.js";
import { store, useStore } from "./dom.js";
import { useDanger } from "./live.js";

const me = store(null);
export const loadMe = async () => {
  const before = me.get(), now = await get("/api/me");
  // Another has logged in, in another tab: nothing of what the one before saw
  // is to stay.
  if (before && (before.kind !== now.kind || before.id !== now.id)) location.reload();
  else me.set(now);
};
// useMe is the answer to GET /api/me; null until it is there.
export const useMe = () => useStore(me);

// useMay says whether something can be done now: {ok, why}, why for a title.
// Without the right it never can; what cannot be undone, not by old numbers.
export const useMay = (scope) => {
  const who = useMe(), alive = useDanger();
  if (!who) return { ok: false, why: "The director has not said who you are yet." };
  if (!who.scopes.includes(scope) && !who.scopes.includes("admin")) return { ok: false, why: `You lack the right “${scope}”.` };
  if (!alive) return { ok: false, why: "The director does not answer: what is shown may be wrong by now." };
  return { ok: true, why: "" };
};

// useOwn says whether a task was asked for by who looks at the pages.
export const useOwn = (task) => {
  const who = useMe();
  const asked = { user: task.source_user_id, service: task.source_service, agent: task.source_agent }[who?.kind];
  return Boolean(asked) && asked === who.id;
};
