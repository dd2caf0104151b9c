// Adjacent failures with the same cause in a list, folded into one entry.

// fold returns the entries of a list: a task, or {cause, tasks} for two or more that failed
// with the same cause. The tasks of causes in open follow their entry.
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
