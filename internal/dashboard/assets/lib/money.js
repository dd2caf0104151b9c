// money says an amount in US dollars: $1.62, and $0.0031 of less than one; "" of none.
export const money = (usd) => (usd > 0 ? `$${usd.toFixed(usd < 1 ? 4 : 2)}` : "");
