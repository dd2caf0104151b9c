// SGR, the escape sequences for colours, as class names. parts.css gives each class a
// colour that is readable in light and dark. Exact colours (256 colours, RGB) become the
// nearest of sixteen.

const mostParams = 32; // parameters read per sequence

// plain is the style of uncoloured text.
export const plain = Object.freeze({ ink: -1, paper: -1, bold: false, faint: false, italic: false, under: false, inverse: false, strike: false });

const sets = { 1: { bold: true }, 2: { faint: true }, 3: { italic: true }, 4: { under: true }, 7: { inverse: true }, 9: { strike: true }, 21: { under: true },
  22: { bold: false, faint: false }, 23: { italic: false }, 24: { under: false }, 27: { inverse: false }, 29: { strike: false }, 39: { ink: -1 }, 49: { paper: -1 } };

// styled is a style after a sequence with these parameters, such as "1;31".
export const styled = (style, params) => {
  const list = params.split(";", mostParams);
  for (let i = 0; i < list.length; i++) {
    const [code, ...more] = list[i].split(":", 7).map(Number);
    if (code === 0) style = plain;
    else if (code === 38 || code === 48 || code === 58) {
      // 38;5;n and 38;2;r;g;b; with colons all of it is one parameter.
      const inOne = more.length > 0, kind = inOne ? more[0] : Number(list[i + 1]), count = kind === 5 ? 1 : kind === 2 ? 3 : 0;
      const values = inOne ? more.slice(1).slice(-count) : list.slice(i + 2, i + 2 + count).map(Number);
      if (!inOne) i += 1 + count;
      if (!count || values.length < count || !values.every((v) => v >= 0 && v <= 255)) continue;
      const near = kind === 5 ? ofTable(values[0]) : nearest(...values);
      if (code !== 58) style = { ...style, ...(code === 38 ? { ink: near } : { paper: near }) };
    } else if (code >= 30 && code <= 37) style = { ...style, ink: code - 30 };
    else if (code >= 90 && code <= 97) style = { ...style, ink: code - 82 };
    else if (code >= 40 && code <= 47) style = { ...style, paper: code - 40 };
    else if (code >= 100 && code <= 107) style = { ...style, paper: code - 92 };
    else if (code === 4 && more[0] === 0) style = { ...style, under: false }; // 4:0
    else if (Object.hasOwn(sets, code)) style = { ...style, ...sets[code] };
  }
  return style;
};

// classOf is "" for plain text. Faint text is grey: a paler colour would be unreadable.
export const classOf = (style) => {
  const ink = style.ink < 0 && style.faint ? 8 : style.ink;
  return [ink >= 0 && `sgr-i${ink}`, style.paper >= 0 && `sgr-p${style.paper % 8}`, style.bold && "sgr-bold", style.italic && "sgr-italic",
    (style.under || style.strike) && `sgr-line${style.under ? "-under" : ""}${style.strike ? "-through" : ""}`, style.inverse && "sgr-inverse"].filter(Boolean).join(" ");
};

const cube = [0, 95, 135, 175, 215, 255];
const ofTable = (n) => {
  if (n < 16) return n;
  if (n >= 232) return grey(8 + 10 * (n - 232));
  n -= 16;
  return nearest(cube[Math.floor(n / 36)], cube[Math.floor(n / 6) % 6], cube[n % 6]);
};

const grey = (light) => (light < 64 ? 0 : light < 144 ? 8 : light < 224 ? 7 : 15);

const hues = [1, 3, 2, 6, 4, 5]; // red, yellow, green, cyan, blue, magenta: 60° apart

const nearest = (r, g, b) => {
  const most = Math.max(r, g, b), least = Math.min(r, g, b), range = most - least;
  if (range < 32) return grey((most + least) / 2);
  const hue = most === r ? ((g - b) / range + 6) % 6 : most === g ? (b - r) / range + 2 : (r - g) / range + 4;
  return hues[Math.round(hue) % 6] + (most + least > 320 ? 8 : 0);
};
