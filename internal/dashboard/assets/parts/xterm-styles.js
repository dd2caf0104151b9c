// The terminal's library writes its rules into <style> elements and colours
// into style attributes. The policy of the pages allows neither, and stays as it
// is: while a terminal is open, <style> elements that are made are constructed
// style sheets, and style attributes of spans are set through the object model.
// Both are the page's own script at work, which the policy does allow. The
// library makes its elements with the page's document, whatever document it is
// given, so that is where this is done.

let open = 0; // terminals

// strictStyles begins this, and returns how to end it.
export const strictStyles = () => {
  if (++open === 1) document.createElement = create;
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    if (--open === 0) delete document.createElement; // the prototype's own is seen again
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

// sheet returns an element that stands for a style sheet: its text becomes the
// rules of one that the document has adopted, until it is removed.
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
