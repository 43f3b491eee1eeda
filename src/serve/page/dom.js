// Making elements. Text goes in as text nodes alone: nothing here, nor anywhere in the page, makes
// markup of a string.

// dom("p", {class: "x", title: "…", onclick: f, hidden: true}, "text", node, [more])
export function dom(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Makes the list's children one for each item, by its `id`, and one with the note. What is there
// of an item stays the same element: a press that has begun on it becomes a click, and it keeps the
// focus. `fill(element, item)` tells it what has changed.
export function arrange(list, items, make, fill, note = null) {
  const there = new Map([...list.children].map((child) => [child.dataset.id, child]));
  const wanted = items.map((item) => {
    const element = there.get(item.id) ?? make(item);
    element.dataset.id = item.id;
    fill(element, item);
    return element;
  });
  if (note !== null) wanted.push(dom("li", {class: "note"}, note));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const stays = new Set(wanted);
  for (const child of [...list.children]) if (!stays.has(child)) child.remove();
  wanted.forEach((child, index) => {
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
  // Whoever changes places loses it.
  if (focused !== document.activeElement && list.contains(focused)) focused.focus({preventScroll: true});
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const byId = (id) => document.getElementById(id);

// "12,345"
const numbers = new Intl.NumberFormat("en");
export const count = (number) => numbers.format(number);

// "1.2 MiB"
export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const sign = number < 0 ? "−" : "";
  let value = Math.abs(number), unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return sign + (unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)) + " " + units[unit];
}

export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Pages that were not loaded over a secure connection have no clipboard.
  const area = dom("textarea", {class: "offscreen"});
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  const link = dom("a", {href: url, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const random = () => crypto.getRandomValues(new Uint32Array(2));
export const newId = () => Array.from(random(), (part) => part.toString(36)).join("");
