// Colours for code: comments, strings, numbers, words of the language. One scanner for all of them;
// it need not understand a language to make it easier to read.
import {dom} from "/page/dom.js";

const bytesMax = 50000;

const wordsOf = (text) => new Set(text.split(" "));
const cLike = "if else for while do switch case default break continue return goto struct union enum "
  + "class public private protected virtual override final template typename using namespace const "
  + "static inline extern constexpr auto void int char bool float double long short unsigned signed "
  + "sizeof new delete this true false null nullptr try catch throw operator friend import package "
  + "interface extends implements abstract instanceof super var let function async await yield of in "
  + "export from type readonly undefined typeof fn mut pub impl trait use mod match where crate self "
  + "Self dyn move ref loop as unsafe func defer go chan map range select fallthrough string";
const languages = {
  c: {words: wordsOf(cLike), line: "//", block: true},
  python: {words: wordsOf("def class return if elif else for while in not and or is None True False "
    + "import from as with try except finally raise lambda yield pass break continue global nonlocal "
    + "async await del assert match case self print"), line: "#", triple: true},
  shell: {words: wordsOf("if then else elif fi for in do done while until case esac function return "
    + "exit export local set unset echo cd source alias sudo"), line: "#"},
  sql: {words: wordsOf("select from where and or not in is null as join left right inner outer on group "
    + "by order having limit offset insert into values update set delete create table index view drop "
    + "alter add primary key foreign references unique with union all distinct case when then else end"),
    line: "--", block: true, foldsCase: true},
  markup: {words: new Set(), tags: true},
  data: {words: wordsOf("true false null yes no on off"), line: "#"},
};
const names = {
  python: "python", py: "python", sh: "shell", bash: "shell", zsh: "shell", shell: "shell",
  console: "shell", makefile: "shell", dockerfile: "shell", cmake: "shell", ruby: "python", rb: "python",
  sql: "sql", html: "markup", xml: "markup", svg: "markup", yaml: "data", yml: "data", toml: "data",
  ini: "data", json: "data", text: null, txt: null, "": null, plain: null, diff: null, markdown: null,
  md: null,
};

function patternOf(language) {
  const parts = [];
  if (language.tags) parts.push("(?<comment><!--[\\s\\S]*?(?:-->|$))", "(?<tag></?[A-Za-z][\\w:-]*|/?>)");
  const comments = [];
  if (language.line) comments.push((language.line === "#" ? "(?<![\\w$&\\[{(])" : "") + language.line + "[^\\n]*");
  if (language.block) comments.push("/\\*[\\s\\S]*?(?:\\*/|$)");
  if (comments.length > 0) parts.push("(?<comment>" + comments.join("|") + ")");
  const strings = ['"(?:\\\\.|[^"\\\\\\n])*"?', "'(?:\\\\.|[^'\\\\\\n])*'?", "`(?:\\\\[\\s\\S]|[^`\\\\])*`?"];
  if (language.triple) strings.unshift('"""[\\s\\S]*?(?:"""|$)', "'''[\\s\\S]*?(?:'''|$)");
  parts.push("(?<string>" + strings.join("|") + ")",
             "(?<number>\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b)",
             "(?<word>[A-Za-z_$][\\w$]*)(?<call>(?=\\())?");
  return new RegExp(parts.join("|"), "g");
}

// Nodes and strings.
export function highlighted(code, name) {
  const key = name.toLowerCase();
  const language = languages[key in names ? names[key] : "c"];
  if (!language || code.length > bytesMax) return [code];
  language.pattern ??= patternOf(language);
  const nodes = [];
  let end = 0;
  for (const found of code.matchAll(language.pattern)) {
    const groups = found.groups, text = found[0];
    let kind = null;
    if (groups.comment !== undefined) kind = "comment";
    else if (groups.tag !== undefined) kind = "word";
    else if (groups.string !== undefined) kind = "string";
    else if (groups.number !== undefined) kind = "number";
    else if (language.words.has(language.foldsCase ? text.toLowerCase() : text)) kind = "word";
    else if (groups.call !== undefined) kind = "call";
    if (kind === null) continue;
    if (found.index > end) nodes.push(code.slice(end, found.index));
    nodes.push(dom("span", {class: "hl-" + kind}, text));
    end = found.index + text.length;
  }
  nodes.push(code.slice(end));
  return nodes;
}
