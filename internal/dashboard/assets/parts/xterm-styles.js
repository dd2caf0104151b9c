// The terminal library writes <style> elements and style attributes, which the
// policy of the pages forbids. While a terminal is open, new <style> elements are
// therefore backed by constructed style sheets, and style attributes of spans are
// set through the object model, which the policy allows. The library always
// creates elements with the page's document, so that is patched.

let open = 0; // terminals

// strictStyles starts this, and returns a function to end it.
export const strictStyles = () => {
  if (++open === 1) document.createElement = create;
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    if (--open === 0) delete document.createElement; // restores the prototype's function
  };
};

const make = (name, options) => Document.prototype.createElement.call(document, name, options);

const create = (name, options) => {
  if (name === "style") return sheet();
  const element = make(name, options);
  if (name === "span") {
    element.setAttribute = (key, value) => {
      if (key === "style") element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, key, value);
    };
  }
  return element;
};

// sheet returns an element for a style sheet: its text becomes the rules of an adopted
// style sheet until it is removed.
const sheet = () => {
  const element = make("template");
  const rules = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];
  Object.defineProperty(element, "textContent", { get: () => "", set: (text) => { rules.replaceSync(text); } });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== rules);
    Element.prototype.remove.call(element);
  };
  return element;
};
