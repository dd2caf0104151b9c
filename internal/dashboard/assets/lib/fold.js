// Equal failures that stand together in a list, folded into one entry.

// fold returns the entries of a list: a task, or {cause, tasks} of two or more that failed
// for the same cause. Those of a cause in open follow their entry.
export const fold = (tasks, open) => {
  const entries = [];
  for (let i = 0; i < tasks.length;) {
    const { cause } = tasks[i];
    let end = i + 1;
    while (cause && end < tasks.length && tasks[end].cause === cause) end++;
    const alike = tasks.slice(i, end);
    if (alike.length > 1) entries.push({ key: `${cause} ${alike.at(-1).queue_id}`, cause, tasks: alike });
    if (alike.length === 1 || open.has(cause)) entries.push(...alike);
    i = end;
  }
  return entries;
};
