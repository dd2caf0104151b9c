// money says an amount in US dollars: $1.62, and $0.0031 of less than one; "" of none.
export const money = (usd) => (usd > 0 ? `$${usd.toFixed(usd < 1 ? 4 : 2)}` : "");

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// tokens says a number of tokens: 940, 12.4K, 5.1M.
export const tokens = (n) => compact.format(n);
