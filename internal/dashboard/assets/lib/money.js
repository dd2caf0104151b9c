// money formats US dollars: $1.62, $0.0031 if less than one, "" for none.
export const money = (usd) => (usd > 0 ? `$${usd.toFixed(usd < 1 ? 4 : 2)}` : "");

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// tokens formats a number of tokens: 940, 12.4K, 5.1M.
export const tokens = (n) => compact.format(n);
