// The addresses that become scripts other than by an import: a browser
// with trusted types asks for proof that they are meant.
const here = (path) => new URL(path, import.meta.url).href;

const addresses = { worker: here("../worker.js"), chart: here("../vendor/uplot/uPlot.iife.min.js") };
const prism = /^[^?#]*\/vendor\/prism\/prism-[a-z-]+\.min\.js$/;

const policy = self.trustedTypes?.createPolicy("signalbox", {
  createScriptURL(asked) {
    if (Object.values(addresses).includes(asked) || prism.test(asked)) return asked;
    throw new TypeError("this is no script of these pages");
  },
});

// scriptAddress is that of the worker, of the chart's library, or of a part of Prism.
export const scriptAddress = (name) => {
  const address = addresses[name] ?? here(`../vendor/prism/${name}.min.js`);
  return policy?.createScriptURL(address) ?? address;
};
