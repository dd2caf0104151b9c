// Lists that are here as a whole: filtered by words, and put in order.

// hasWords says that a text has all words of a filter, whatever their letters' case.
export const hasWords = (text, filter) => {
  const has = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => has.includes(word));
};

// sorted is a list in an order: key, or -key for the largest first. values[key](item) is
// what it is sorted by; items without a value come last either way, and another order
// leaves the list as it is.
export const sorted = (list, sort, values) => {
  const down = sort.startsWith("-"), key = down ? sort.slice(1) : sort;
  if (!Object.hasOwn(values, key)) return list;
  const value = values[key];
  return list.toSorted((a, b) => {
    const x = value(a), y = value(b);
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return ((x > y) - (x < y)) * (down ? -1 : 1);
  });
};
