// The conversation that is open: its picked branch as messages, and the answers that are coming.
import {ApiError, events} from "/page/api.js";
import {arrange, byId, copyText, count, dom, replace, setText} from "/page/dom.js";
import {show} from "/page/markdown.js";
import {modelFields} from "/page/models.js";
import {requestFields} from "/page/settings.js";
import {save} from "/page/store.js";
import {fromLogprobs, spell, tokenView} from "/page/tokens.js";
import {addNode, goBack, goForward, messagesOf, newConversation, parentOf, pathTo, pick, pickedPath,
        removeNode, root, siblings, titleOf, wasGoneBackTo} from "/page/tree.js";

let conversation = newConversation();
const running = new Map();   // Of nodes: what stops them.
const elements = new Map();  // Of nodes that are shown.
const shownTokens = new Set();  // Nodes whose tokens are shown.
let hooks = {changed: () => {}, refused: () => {}};

export const current = () => conversation;
export const isRunning = () => [...running.keys()].some((id) => id in conversation.nodes);

export function start(value) {
  hooks = value;
  const input = byId("input");
  input.addEventListener("input", fitInput);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      byId("composer").requestSubmit();
    } else if (event.key === "ArrowUp" && input.value === "") {
      const last = pickedPath(conversation).findLast((node) => node.role === "user");
      if (last) {
        event.preventDefault();
        edit(last);
      }
    }
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("stop").addEventListener("click", stop);
}

function fitInput() {
  const input = byId("input");
  input.style.height = "auto";
  input.style.height = Math.min(input.scrollHeight + 2, window.innerHeight * 0.4) + "px";
}

export function open(value) {
  conversation = value;
  elements.clear();
  shownTokens.clear();
  byId("messages").replaceChildren();
  draw();
  byId("messages").scrollTop = byId("messages").scrollHeight;
}

export function stop() {
  for (const [id, controller] of running) {
    if (id in conversation.nodes) controller.abort();
  }
}

function changed() {
  save(conversation);
  draw();
  hooks.changed();
}

function send() {
  const input = byId("input");
  const text = input.value.trim();
  if (text === "" || isRunning()) return;
  input.value = "";
  fitInput();
  // Behind a message that has no answer it stands beside that one: templates want turns to alternate.
  const last = pickedPath(conversation).at(-1) ?? root(conversation);
  const node = addNode(conversation, last.role === "user" ? parentOf(conversation, last) : last, {role: "user", text});
  answer(node);
}

// Makes an answer to this message, beside those that it has. `begun`: how it begins, and the tokens
// of that.
function answer(question, begun) {
  const node = addNode(conversation, question, {role: "assistant", ...begun});
  pick(conversation, node);
  follow(node, begun !== undefined);
}

// Has the answer made, or goes on with what is there of it.
async function follow(node, goesOn) {
  const controller = new AbortController();
  running.set(node.id, controller);
  delete node.error;
  delete node.figures;
  const owner = conversation;
  const messages = messagesOf(owner, pathTo(owner, parentOf(owner, node)));
  const body = {messages, stream: true, ...modelFields(), ...requestFields()};
  if (goesOn) {
    messages.push({role: "assistant", content: node.text});
    body.continue_final_message = true;
  }
  node.live = {state: "waiting", begin: performance.now(), first: 0, pieces: 0};
  changed();
  scrollDown(true);
  let savedAt = performance.now();
  try {
    const onNote = (note) => {
      if (node.live.state === "waiting") node.live.note = note;
    };
    for await (const event of events("/v1/chat/completions", body, controller.signal, onNote)) {
      take(node, event);
      later(node);
      if (performance.now() - savedAt > 3000) {
        savedAt = performance.now();
        save(stripped(owner));
      }
    }
  } catch (problem) {
    if (problem.name === "AbortError") {
      node.figures = {...node.figures, stopped: true};
    } else {
      node.error = problem.message;
      if (problem instanceof ApiError && problem.status === 401) hooks.refused();
    }
  }
  running.delete(node.id);
  delete node.live;
  owner.updated = Date.now();
  await save(owner);
  if (owner === conversation) {
    const reasoning = elements.get(node.id)?.querySelector(".reasoning");
    if (reasoning) reasoning.open = false;
    draw();
    scrollDown(false);
  }
  hooks.changed();
}

// Without what only the page needs.
function stripped(value) {
  const nodes = Object.entries(value.nodes).map(([id, {live, ...node}]) => [id, node]);
  return {...value, nodes: Object.fromEntries(nodes)};
}

function take(node, event) {
  const choice = event.choices?.[0];
  if (!choice) return;
  const delta = choice.delta ?? {};
  node.live.state = "reading";
  if (delta.reasoning_content) node.reasoning = (node.reasoning ?? "") + delta.reasoning_content;
  if (delta.content) node.text += delta.content;
  if (delta.content || delta.reasoning_content) {
    node.live.first ||= performance.now();
    ++node.live.pieces;
  }
  if (choice.logprobs?.content?.length > 0) {
    (node.tokens ??= []).push(...fromLogprobs(choice.logprobs.content));
  }
  if (choice.finish_reason) {
    node.figures = {finish: choice.finish_reason, timings: event.timings, memory: event.memory,
                    cut_by: event.cut_by};
  }
}

// Draws once for all that comes within a frame.
const waiting = new Set();
function later(node) {
  if (waiting.size === 0) {
    requestAnimationFrame(() => {
      const nodes = [...waiting];
      waiting.clear();
      for (const each of nodes) {
        const element = elements.get(each.id);
        if (element) fill(element, each);
      }
      scrollDown(false);
    });
  }
  waiting.add(node);
}

function scrollDown(always) {
  const list = byId("messages");
  const isNear = list.scrollHeight - list.scrollTop - list.clientHeight < 160;
  if (always || isNear) list.scrollTop = list.scrollHeight;
}

function draw() {
  const path = pickedPath(conversation), list = byId("messages");
  if (!byId("chat").hidden) byId("title").textContent = titleOf(conversation);
  byId("send").hidden = isRunning();
  byId("stop").hidden = !isRunning();
  const wanted = path.map((node) => {
    let element = elements.get(node.id);
    if (!element) elements.set(node.id, (element = messageElement(node)));
    fill(element, node);
    return element;
  });
  for (const [id, element] of elements) {
    if (wanted.includes(element)) continue;
    element.remove();
    elements.delete(id);
  }
  if (path.length === 0) {
    replace(list, dom("div", {class: "empty"}, dom("h2", {}, "What shall we talk about?"),
      dom("p", {}, "All that is said stays in this browser. The model keeps what it has read in its memory, so "
        + "that going on, going back and branching cost only what is new.")));
    return;
  }
  list.querySelector(".empty")?.remove();
  wanted.forEach((element, index) => {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  });
  drawGoneBack(list, path.at(-1));
}

// Behind a message that was gone back to.
function drawGoneBack(list, last) {
  const there = list.querySelector(".gone-back");
  if (!wasGoneBackTo(last)) {
    there?.remove();
    return;
  }
  if (there) {
    if (there !== list.lastChild) list.append(there);
    return;
  }
  const forward = () => {
    goForward(pickedPath(conversation).at(-1));
    changed();
  };
  list.append(dom("p", {class: "note gone-back"}, "You went back to here: what you write now is another branch. ",
    dom("button", {type: "button", onclick: forward}, "Show what came then")));
}

function messageElement(node) {
  const element = dom("article", {class: "message " + node.role, tabindex: "0", "data-id": node.id,
                                  "aria-label": node.role === "user" ? "You" : "The model"},
    dom("header", {}, dom("span", {class: "role"}, node.role === "user" ? "You" : "Model"),
        dom("span", {class: "branches"})),
    dom("details", {class: "reasoning", hidden: true}, dom("summary", {}, "Reasoning"), dom("div", {class: "text"})),
    dom("div", {class: "text body"}),
    dom("p", {class: "error", role: "alert", hidden: true}),
    dom("p", {class: "figures"}),
    dom("div", {class: "actions"}));
  element.addEventListener("keydown", (event) => {
    if (event.target !== element) return;
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (step && siblings(conversation, node).length > 1) {
      event.preventDefault();
      go(node, step, true);
    }
  });
  return element;
}

function fill(element, node) {
  const body = element.querySelector(".text.body");
  if (element.dataset.editing !== "true") {
    if (node.role === "user") {
      if (body.textContent !== node.text) body.textContent = node.text;
    } else if (shownTokens.has(node.id) && node.tokens && !node.live) {
      if (!body.querySelector(".token-view")) {
        replace(body, tokenView(node.tokens, mayBranch(node) ? (index, other) => branch(node, index, other) : null));
      }
    } else {
      if (body.querySelector(".token-view")) body.replaceChildren();
      show(body, node.text);
    }
  }
  const reasoning = element.querySelector(".reasoning");
  reasoning.hidden = !node.reasoning;
  if (node.reasoning) show(reasoning.querySelector(".text"), node.reasoning);
  if (node.live && node.reasoning && node.text === "") reasoning.open = true;
  const error = element.querySelector(".error");
  error.hidden = !node.error;
  error.textContent = node.error ?? "";
  element.querySelector(".figures").textContent = figures(node);
  element.classList.toggle("live", node.live !== undefined);
  fillBranches(element.querySelector(".branches"), node);
  if (!node.live || element.querySelector(".actions").childElementCount > 0) fillActions(element, node);
}

function fillBranches(place, node) {
  const ids = siblings(conversation, node), index = ids.indexOf(node.id);
  if (ids.length < 2) {
    place.replaceChildren();
    return;
  }
  const arrow = (step, label, sign) => dom("button", {
    class: "icon", type: "button", title: label, "aria-label": label, onclick: () => go(node, step, false),
  }, sign);
  if (place.childElementCount === 0) {
    replace(place, arrow(-1, "The branch before", "‹"), dom("span", {}), arrow(1, "The next branch", "›"));
  }
  const [before, where, next] = place.children;
  setText(where, index + 1 + " / " + ids.length);
  before.disabled = index === 0;
  next.disabled = index === ids.length - 1;
}

function go(node, step, takesFocus) {
  const ids = siblings(conversation, node);
  const next = conversation.nodes[ids[ids.indexOf(node.id) + step]];
  if (!next) return;
  pick(conversation, next);
  changed();
  if (takesFocus) elements.get(next.id)?.focus();
}

// The branch that leads to this message, and ends with it.
export function goBackTo(node) {
  goBack(conversation, node);
  changed();
  elements.get(node.id)?.scrollIntoView({block: "nearest"});
}

const rate = (value) => (value >= 100 ? Math.round(value) : value.toFixed(1)) + " tokens/s";

function figures(node) {
  if (node.live) {
    const {state, first, pieces, begin, note} = node.live;
    const seconds = (performance.now() - (first || begin)) / 1000;
    const doing = state !== "waiting" ? "Reading" : note ? note[0].toUpperCase() + note.slice(1) : "Waiting";
    if (!first) return doing + "… " + seconds.toFixed(1) + " s";
    return seconds > 0.3 ? "Writing · " + rate(pieces / seconds) : "Writing…";
  }
  if (node.role !== "assistant" || !node.figures) return "";
  const {timings, memory, cut_by, stopped} = node.figures, parts = [];
  if (timings) {
    parts.push(count(timings.predicted_n) + " tokens");
    if (timings.predicted_per_second > 0) parts.push(rate(timings.predicted_per_second));
  }
  if (memory) {
    const from = memory.source === "disk" ? " from disk" : "";
    parts.push(count(memory.reused) + " reused" + from, count(memory.recomputed) + " computed");
    if (memory.replayed > 0) parts.push(count(memory.replayed) + " replayed");
    if (memory.left_out > 0) parts.push(count(memory.left_out) + " left out");
  }
  if (stopped) parts.push("stopped");
  if (cut_by) parts.push("cut off: " + cut_by);
  return parts.join(" · ") + (memory?.reason ? " — " + memory.reason : "");
}

function fillActions(element, node) {
  const isBusy = isRunning(), isLast = pickedPath(conversation).at(-1) === node;
  const list = [];
  const add = (id, title, act, isPressed) => list.push({id, title, act, isPressed});
  add("Copy", "Copy the text", () => copyText(node.text));
  if (!isBusy) {
    add("Edit", node.role === "user" ? "Write it anew, as a branch" : "Change it, as a branch", () => edit(node));
    if (node.role === "assistant") {
      add("Regenerate", "Another answer, as a branch", () => answer(parentOf(conversation, node)));
    } else if (isLast) {
      add("Answer", "Have it answered", () => answer(node));
    }
    if (canGoOn(node)) add("Continue", "Have the model go on", () => follow(node, true));
  }
  if (node.tokens && !node.live) {
    add("Tokens", "The probability of each token", () => {
      if (!shownTokens.delete(node.id)) shownTokens.add(node.id);
      fill(element, node);
    }, shownTokens.has(node.id));
  }
  if (!isBusy && siblings(conversation, node).length > 1) {
    add("Delete", "Delete this branch", () => {
      removeNode(conversation, node);
      changed();
    });
  }
  // What a button does is the same for as long as its message is shown.
  arrange(element.querySelector(".actions"), list,
    ({id, title, act}) => dom("button", {type: "button", title, onclick: act}, id),
    (button, {isPressed}) => isPressed !== undefined && button.setAttribute("aria-pressed", String(isPressed)));
}

const canGoOn = (node) => node.role === "assistant" && !node.live && !node.reasoning && node.text !== ""
  && node.children.length === 0 && (node.figures?.stopped || Boolean(node.figures?.cut_by) || Boolean(node.error));

// Tokens say where the answer's text goes on only where they are all of it.
const mayBranch = (node) => !node.reasoning && !isRunning() && spell(node.tokens, node.tokens.length) !== null
  && spell(node.tokens, node.tokens.length).startsWith(node.text);

function branch(node, index, other) {
  const kept = node.tokens.slice(0, index);
  answer(parentOf(conversation, node), {text: spell(node.tokens, index, other), tokens: [...kept, {...other, top: node.tokens[index].top}]});
}

function edit(node) {
  const element = elements.get(node.id);
  if (!element || element.dataset.editing === "true") return;
  element.dataset.editing = "true";
  shownTokens.delete(node.id);
  const area = dom("textarea", {"aria-label": "The new text", rows: String(Math.min(16, node.text.split("\n").length + 1))});
  area.value = node.text;
  const close = () => {
    element.dataset.editing = "false";
    element.querySelector(".text.body").replaceChildren();
    fill(element, node);
    element.focus();
  };
  const done = () => {
    const text = area.value.trim();
    if (text === "" || text === node.text || isRunning()) return close();
    close();
    const made = addNode(conversation, parentOf(conversation, node), {role: node.role, text});
    if (made.role === "user") answer(made);
    else changed();
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) done();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  replace(element.querySelector(".text.body"), area, dom("div", {class: "edit-actions"},
    dom("button", {type: "button", class: "primary", onclick: done}, node.role === "user" ? "Send" : "Keep"),
    dom("button", {type: "button", onclick: close}, "Cancel")));
  area.focus();
}
