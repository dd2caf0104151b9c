// The names of the pages, and their modules. A page's default export is its
// component; it gets the parts of its path, and query.
const modules = {
  now: () => import("../pages/now.js"),
  tasks: () => import("../pages/tasks.js"),
  task: () => import("../pages/task.js"),
  agents: () => import("../pages/agents.js"),
  agent: () => import("../pages/agent.js"),
  conversation: () => import("../pages/conversation.js"),
  capacity: () => import("../pages/capacity.js"),
  schedules: () => import("../pages/schedules.js"),
  usage: () => import("../pages/usage.js"),
  audit: () => import("../pages/audit.js"),
  users: () => import("../pages/users.js"),
  tokens: () => import("../pages/tokens.js"),
  missing: () => import("../pages/missing.js"),
};

// titles are for the tabs; the first page is just Signalbox.
export const titles = {
  tasks: "Tasks", task: "Task", agents: "Agents", agent: "Agent", conversation: "Conversation", capacity: "Capacity", schedules: "Schedules", usage: "Usage", audit: "Audit", users: "Users", tokens: "Tokens", missing: "Not found",
};

const styled = new Map();

// styleOf loads a page's style once. A page works without its style, too.
const styleOf = (name) => {
  if (!styled.has(name)) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL(`../pages/${name}.css`, import.meta.url).href;
    styled.set(name, new Promise((resume) => { style.onload = style.onerror = resume; }));
    document.head.append(style);
  }
  return styled.get(name);
};

export const loadPage = async (name) => {
  const [module] = await Promise.all([modules[name](), styleOf(name)]);
  return module.default;
};
