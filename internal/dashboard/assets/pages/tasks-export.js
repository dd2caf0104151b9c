// The export of a search's tasks.
import { html } from "../lib/dom.js";
import { serverNow } from "../lib/time.js";
import { ExportMenu } from "../parts/export.js";
import { secondsOf } from "./tasks-row.js";
import { pageOf } from "./tasks-search.js";

const fields = ["queue_id", "state", "reason", "message", "prompt_preview", "agent", "queue", "source", "source_job", "model", "priority", "attempts", "created_at", "started_at", "ended_at", "duration_seconds", "cost_usd", "tokens"];

export const ExportTasks = ({ q, sort }) => html`<${ExportMenu} list=${{
  name: "tasks", fields, keyOf: (t) => t.queue_id, rowOf: (t) => ({ ...t, duration_seconds: secondsOf(t, serverNow()) }),
  page: async (after, signal) => {
    const { tasks, next, total } = await pageOf(q, sort, after, signal);
    return { items: tasks, next, total };
  },
}} />`;
