// The terminal's library writes its rules into <style> elements and colours
// into style attributes. The policy of the pages allows neither, and stays as it
// is: the library is given a document whose <style> elements are constructed
// style sheets, and whose style attributes are set through the object model.
// Both are the page's own script at work, which the policy does allow.

const make = (name, options) => Document.prototype.createElement.call(document, name, options);

function create(name, options) {
  if (name === "style") return sheet();
  const element = make(name, options);
  if (name === "span") {
    element.setAttribute = (key, value) => {
      if (key === "style") element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, key, value);
    };
  }
  return element;
}

// sheet returns an element that stands for a style sheet: its text becomes the
// rules of one that the document has adopted, until it is removed.
function sheet() {
  const element = make("template");
  const rules = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];
  Object.defineProperty(element, "textContent", { get: () => "", set: (text) => { rules.replaceSync(text); } });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== rules);
    Element.prototype.remove.call(element);
  };
  return element;
}

// strictDocument is the document, but for what createElement makes.
export function strictDocument() {
  return new Proxy(document, {
    get(target, key) {
      if (key === "createElement") return create;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" && !value.prototype ? value.bind(target) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  });
}

// strictly runs open with the page's own document made so. The library asks
// that one too while it opens, whatever document it was given.
export function strictly(open) {
  document.createElement = create;
  try {
    return open();
  } finally {
    delete document.createElement; // the prototype's own is seen again
  }
}
