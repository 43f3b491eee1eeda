// The tokens of an answer: how probable each was, and what else might have stood there.
import {dom} from "/page/dom.js";

// As answers come: {t: text, b: bytes, l: natural logarithm of the probability, top: the same}.
export function fromLogprobs(list) {
  const one = (entry) => ({t: entry.token, b: entry.bytes, l: round(entry.logprob)});
  return list.map((entry) => ({...one(entry), top: entry.top_logprobs.map(one)}));
}

const round = (value) => Math.round(value * 1e4) / 1e4;

const percent = (logarithm) => {
  const share = Math.exp(logarithm) * 100;
  return (share >= 99.95 ? "100" : share >= 0.1 ? share.toFixed(1) : "<0.1") + " %";
};

// What the tokens before `end`, and then `last`, spell; null where that is not whole characters.
export function spell(tokens, end, last) {
  const bytes = [...tokens.slice(0, end), ...(last ? [last] : [])].flatMap((token) => token.b);
  try {
    return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(new Uint8Array(bytes));
  } catch {
    return null;
  }
}

// Blanks and line ends would not be seen.
const visible = (text) => text.replaceAll("\n", "⏎\n").replaceAll("\t", "⇥") || "∅";

function levelOf(logarithm) {
  const share = Math.exp(logarithm);
  return share > 0.9 ? 0 : share > 0.6 ? 1 : share > 0.3 ? 2 : share > 0.1 ? 3 : 4;
}

// `branch(index, other)`: goes on with another token instead of that one; null: nobody can.
export function tokenView(tokens, branch) {
  const panel = dom("div", {class: "alternatives", role: "group", "aria-live": "polite"});
  let picked = null;
  const choose = (index, span) => {
    picked?.setAttribute("aria-pressed", "false");
    picked = span;
    span.setAttribute("aria-pressed", "true");
    const token = tokens[index];
    const others = token.top.some((other) => other.t === token.t) ? token.top : [token, ...token.top];
    panel.replaceChildren(
      dom("p", {class: "note"}, "Token " + (index + 1) + " of " + tokens.length + ": "
        + percent(token.l) + ". " + (branch ? "Take another one to branch here." : "")),
      ...others.map((other) => alternative(token, other, branch && other.t !== token.t
        && spell(tokens, index, other) !== null && !isMark(other) ? () => branch(index, other) : null)));
  };
  const spans = tokens.map((token, index) => {
    const span = dom("button", {
      class: "token level-" + levelOf(token.l), type: "button", "aria-pressed": "false",
      title: percent(token.l), onclick: () => choose(index, span),
    }, visible(token.t));
    return span;
  });
  const list = dom("div", {class: "tokens"}, spans);
  list.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const index = spans.indexOf(document.activeElement);
    if (!step || index < 0 || !spans[index + step]) return;
    event.preventDefault();
    event.stopPropagation();
    spans[index + step].focus();
  });
  return dom("div", {class: "token-view"}, list, panel);
}

// Tokens that stand for no text, such as the end of a message.
const isMark = (token) => /^<[|/]?[\w|]+>$/.test(token.t) || token.b.length === 0;

function alternative(token, other, go) {
  const meter = dom("span", {class: "meter", "aria-hidden": "true"}, dom("span", {}));
  meter.firstChild.style.width = Math.max(1, Math.exp(other.l) * 100) + "%";
  return dom("button", {class: "alternative", type: "button", disabled: go === null || go === false,
                        "aria-current": other.t === token.t ? "true" : null, onclick: go || undefined},
             dom("code", {}, visible(other.t)), meter, dom("span", {class: "share"}, percent(other.l)));
}
