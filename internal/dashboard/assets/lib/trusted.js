// The addresses that become scripts without an import: a browser with trusted
// types requires a policy for them.
const here = (path) => new URL(path, import.meta.url).href;

const addresses = { worker: here("../worker.js"), chart: here("../vendor/uplot/uPlot.iife.min.js") };
const prism = /^[^?#]*\/vendor\/prism\/prism-[a-z-]+\.min\.js$/;

const policy = self.trustedTypes?.createPolicy("signalbox", {
  createScriptURL(asked) {
    if (Object.values(addresses).includes(asked) || prism.test(asked)) return asked;
    throw new TypeError("not a script of these pages");
  },
});

// scriptAddress is the address of the worker, the chart library, or a part of Prism.
export const scriptAddress = (name) => {
  const address = addresses[name] ?? here(`../vendor/prism/${name}.min.js`);
  return policy?.createScriptURL(address) ?? address;
};
