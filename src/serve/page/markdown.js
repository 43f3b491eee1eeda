// Markdown as models write it, made into nodes: headings, lists, quotes, tables, code, emphasis,
// links. Markup in the text stays text; images are not loaded, since whoever made the text could
// tell by that where it is read.
import {append, copyText, dom} from "/page/dom.js";
import {highlighted} from "/page/highlight.js";

// Longer runs of text are shown as they are: nobody writes such a paragraph.
const inlineMax = 20000;
const depthMax = 8;

const fence = /^( {0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const item = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const quote = /^ {0,3}> ?(.*)$/;
const tableRule = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

// The text's blocks: each has a kind and its lines.
export function blocksOf(text) {
  const lines = text.split("\n"), blocks = [];
  const push = (kind, first, end, more = {}) =>
    blocks.push({kind, lines: lines.slice(first, end), source: lines.slice(first, end).join("\n"), ...more});
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (line.trim() === "") {
      ++at;
      continue;
    }
    let end = at + 1, found;
    if ((found = fence.exec(line))) {
      const close = new RegExp("^ {0,3}" + found[2][0] + "{" + found[2].length + ",}\\s*$");
      while (end < lines.length && !close.test(lines[end])) ++end;
      push("code", at, Math.min(end + 1, lines.length),
           {code: lines.slice(at + 1, end).join("\n"), language: found[3], isOpen: end >= lines.length});
      at = end + 1;
      continue;
    }
    if (heading.test(line)) {
      push("heading", at, end);
    } else if (rule.test(line)) {
      push("rule", at, end);
    } else if (quote.test(line)) {
      while (end < lines.length && quote.test(lines[end])) ++end;
      push("quote", at, end);
    } else if (item.test(line)) {
      while (end < lines.length && (item.test(lines[end]) || /^\s+\S/.test(lines[end]) ||
             (lines[end].trim() === "" && /^(\s+\S|\s*([-*+]|\d{1,9}[.)])\s)/.test(lines[end + 1] ?? "")))) {
        ++end;
      }
      push("list", at, end);
    } else if (line.includes("|") && tableRule.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
      end = at + 2;
      while (end < lines.length && lines[end].includes("|")) ++end;
      push("table", at, end);
    } else {
      while (end < lines.length && lines[end].trim() !== "" && !fence.test(lines[end]) &&
             !heading.test(lines[end]) && !quote.test(lines[end]) && !item.test(lines[end]) &&
             !rule.test(lines[end])) {
        ++end;
      }
      push("text", at, end);
    }
    at = end;
  }
  return blocks;
}

const sources = new WeakMap();

// Makes the element show the text. Blocks that are as they were stay, so that a stream costs what
// is new of it.
export function show(element, text) {
  const blocks = blocksOf(text);
  blocks.forEach((block, index) => {
    const there = element.children[index];
    const source = block.kind + ":" + block.source;
    if (there && sources.get(there) === source) return;
    const made = nodeOf(block, 0);
    sources.set(made, source);
    if (there) there.replaceWith(made);
    else element.append(made);
  });
  while (element.children.length > blocks.length) element.lastElementChild.remove();
}

function nodesOf(text, depth) {
  if (depth >= depthMax) return [dom("p", {}, text)];
  return blocksOf(text).map((block) => nodeOf(block, depth));
}

function nodeOf(block, depth) {
  switch (block.kind) {
    case "code":
      return codeBlock(block);
    case "heading": {
      const [, marks, text] = heading.exec(block.lines[0]);
      // The page has its own first headings.
      return dom("h" + Math.min(6, marks.length + 2), {}, inline(text));
    }
    case "rule":
      return dom("hr");
    case "quote":
      return dom("blockquote", {},
                 nodesOf(block.lines.map((line) => quote.exec(line)[1]).join("\n"), depth + 1));
    case "list":
      return listOf(block.lines, depth);
    case "table":
      return tableOf(block.lines);
    default:
      return dom("p", {}, inline(block.lines.join("\n")));
  }
}

function codeBlock(block) {
  const copy = dom("button", {
    class: "copy", type: "button",
    onclick: async () => {
      await copyText(block.code);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return dom("div", {class: "code"},
             dom("div", {class: "code-head"}, dom("span", {}, block.language || "text"), copy),
             dom("pre", {tabindex: "0"}, dom("code", {}, highlighted(block.code, block.language))));
}

function listOf(lines, depth) {
  const first = item.exec(lines[0]);
  const indent = first[1].length, isOrdered = /\d/.test(first[2]);
  const list = dom(isOrdered ? "ol" : "ul",
                   isOrdered && parseInt(first[2], 10) !== 1 ? {start: parseInt(first[2], 10)} : {});
  for (let at = 0; at < lines.length;) {
    const found = item.exec(lines[at]);
    let end = at + 1;
    while (end < lines.length) {
      const next = item.exec(lines[end]);
      if (next && next[1].length <= indent + 1) break;
      ++end;
    }
    const rest = lines.slice(at + 1, end);
    const margin = Math.min(...rest.filter((line) => line.trim()).map((line) => /^ */.exec(line)[0].length), 99);
    const inner = rest.map((line) => line.slice(Math.min(margin, line.length))).join("\n");
    const entry = dom("li", {}, inline(found ? found[3] : lines[at].trim()));
    if (inner.trim() !== "") append(entry, nodesOf(inner, depth + 1));
    list.append(entry);
    at = end;
  }
  return list;
}

function cellsOf(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function tableOf(lines) {
  const row = (tag, line) => dom("tr", {}, cellsOf(line).map((cell) => dom(tag, {}, inline(cell))));
  return dom("div", {class: "table"},
             dom("table", {}, dom("thead", {}, row("th", lines[0])),
                 dom("tbody", {}, lines.slice(2).map((line) => row("td", line)))));
}

const marks = /\\([\\`*_{}[\]()#+\-.!|~>])|(`+)([\s\S]*?[^`])\2(?!`)|!?\[([^\][]*)\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]])|(\*\*|__)(?=\S)([\s\S]*?\S)\7|(?<![\w*])\*(?=[^\s*])([^*]*[^\s*])\*(?!\*)|(?<![\w_])_(?=[^\s_])([^_]*[^\s_])_(?![\w_])|~~(?=\S)([^~]*\S)~~|( {2,}\n|\\\n)/g;

function link(text, address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return text;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text;
  return dom("a", {href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: url.href}, text);
}

// Nodes and strings of a stretch of text without blocks.
export function inline(text, depth = 0) {
  if (text.length > inlineMax || depth >= depthMax) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(marks)) {
    if (found.index > end) nodes.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [whole, escaped, , code, label, address, url, , strong, star, underscore, struck] = found;
    if (escaped !== undefined) nodes.push(escaped);
    else if (code !== undefined) nodes.push(dom("code", {}, code.trim() || code));
    else if (address !== undefined) nodes.push(link(label || address, address) ?? whole);
    else if (url !== undefined) nodes.push(link(url, url));
    else if (strong !== undefined) nodes.push(dom("strong", {}, inline(strong, depth + 1)));
    else if (star !== undefined) nodes.push(dom("em", {}, inline(star, depth + 1)));
    else if (underscore !== undefined) nodes.push(dom("em", {}, inline(underscore, depth + 1)));
    else if (struck !== undefined) nodes.push(dom("del", {}, inline(struck, depth + 1)));
    else nodes.push(dom("br"));
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}
