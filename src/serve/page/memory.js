// What the server's memory holds: totals that add up, the sequences, one of them as a map, and the
// open conversation's tree: to point at a place of it shows the price of going back there, a click
// goes back, and what is dragged out of it, or out of the map, becomes a conversation of its own.
import {ApiError, events, postJson} from "/page/api.js";
import * as chat from "/page/chat.js";
import {arrange, byId, bytes, count, dom, replace, setText} from "/page/dom.js";
import {liftable} from "/page/lift.js";
import {MemoryMap} from "/page/map.js";
import {modelFields, modelQuery} from "/page/models.js";
import {forkOf, messagesOf, pathTo, pickedPath, root} from "/page/tree.js";

const pause = 120;  // Milliseconds: a pointer that only passes asks for no prices.

let report = null, controller = null;
let hooks = {refused: () => {}, forked: () => {}};
let picked = null;    // A sequence's id.
let followed = null;  // What the server says of the conversation that is open.
let turns = [];       // Of that conversation, as the map shows them.
let pointed = null;   // The message whose price is shown, or asked for.
let tapped = null;    // The message that a finger was on last.
const sequences = new Map();
const map = new MemoryMap();
const rates = {time: 0, decode: 0, prompt: 0, steps: [], text: ""};
const parts = {};

export const isShown = () => controller !== null;
export const theMap = () => map;

// `refused`: the server wants another key. `forked`: takes a new conversation.
export function start(value) { hooks = value; }

export function show() {
  if (controller) return;
  if (!parts.totals) build();
  controller = new AbortController();
  watch(controller);
  conversationChanged();
}

export function hide() {
  controller?.abort();
  controller = null;
}

// Another model has another memory.
export function modelChanged() {
  if (!controller) return;
  hide();
  sequences.clear();
  show();
}

function build() {
  parts.totals = dom("section", {class: "card totals"});
  parts.note = dom("p", {class: "note", role: "status"});
  parts.sequences = dom("ul", {class: "sequences"});
  parts.about = dom("p", {class: "about"});
  const onNode = (act) => (event) => {
    const node = nodeOf(event.target);
    if (node) act(node, event);
  };
  parts.tree = dom("ul", {class: "tree", role: "tree", "aria-label": "The conversation's branches",
    onpointerover: onNode((node) => point(node)), onfocusin: onNode((node) => point(node)),
    onclick: onNode((node, event) => goBackTo(node, event.pointerType)),
    onkeydown: onNode((node, event) => {
      if (event.key !== "f" || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      fork(chat.current(), node);
    })});
  parts.price = dom("p", {class: "note price", role: "status"});
  parts.fork = dom("button", {type: "button", class: "drop", disabled: true,
                              onclick: () => pointed && fork(chat.current(), pointed)}, "New conversation from here");
  liftable(parts.tree, notEmpty, (event) => liftedNode(nodeOf(event.target)));
  liftable(map.canvas, notEmpty, () => (map.turn ? liftedNode(map.turn.node) : null),
           (right, down) => map.letGo(right, down));
  map.hooks = {
    turnAt: (position) => (isOwnShown() ? turns.findLast((turn) => turn.begin <= position) ?? null : null),
    pointed: (turn) => turn && point(turn.node),
  };
  const legend = dom("ul", {class: "legend"},
    [["live", "live"], ["shared", "shared with others"], ["masked", "masked: kept for going back"],
     ["disk", "on disk alone: read from there"], ["both", "on disk too"], ["empty", "not held"], ["snapshot", "snapshot: one can always go back here"]]
      .map(([kind, text]) => dom("li", {}, dom("span", {class: "key key-" + kind}), text)));
  replace(byId("memory"), parts.note, parts.totals,
    dom("section", {class: "card"}, dom("h2", {}, "Layers and positions"), parts.about, map.element, legend),
    dom("div", {class: "columns"},
      dom("section", {class: "card"}, dom("h2", {}, "Sequences in memory"), parts.sequences),
      dom("section", {class: "card"}, dom("h2", {}, "This conversation"),
          dom("p", {class: "note"}, "Point at a message to see what going back there would cost; a click goes back. Dragged to an "
            + "empty place, here or from the map, it is the end of a new conversation; so it is with the key F."),
          parts.tree, parts.price, parts.fork)));
}

async function watch(mine) {
  while (controller === mine) {
    try {
      for await (const event of events("/v1/memory/events" + modelQuery(), undefined, mine.signal)) {
        parts.note.textContent = "";
        take(event);
      }
    } catch (problem) {
      if (controller !== mine) return;
      parts.note.textContent = problem.message;
      if (problem instanceof ApiError && problem.status === 401) hooks.refused();
      if (problem instanceof ApiError && [401, 403].includes(problem.status)) return hide();
    }
    sequences.clear();
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

// Each event has the totals, and of the sequences those that have changed.
export function take(event) {
  report = event;
  for (const sequence of event.sequences) sequences.set(sequence.id, sequence);
  for (const id of [...sequences.keys()]) {
    if (!event.order.includes(id)) sequences.delete(id);
  }
  measure(event.engine);
  draw();
}

function measure(engine) {
  const now = performance.now();
  const seconds = (now - rates.time) / 1000;
  if (seconds < 0.9 || engine === null) return;
  if (rates.time > 0) {
    const answers = (engine.decode_rows - rates.decode) / seconds, prompts = (engine.prompt_rows - rates.prompt) / seconds;
    rates.text = engine.running > 0 || answers + prompts > 0
      ? count(Math.round(answers)) + " tokens/s written, " + count(Math.round(prompts)) + " tokens/s read" : "idle";
  }
  Object.assign(rates, {time: now, decode: engine.decode_rows, prompt: engine.prompt_rows});
}

const running = () => report.order.find((id) => id.startsWith("answer-"));

// What is picked; else what the conversation goes on from, or what is being answered.
function shown() {
  return sequences.get(picked) ?? sequences.get(running()) ?? sequences.get(followed?.sequence)
    ?? onDisk(followed) ?? sequences.get(report.order.at(-1)) ?? null;
}

// Of a prompt that memory knows nothing of, what the disk has; null: nothing.
function onDisk(plan) {
  if (!plan || plan.on_disk === 0) return null;
  return {id: "stored", use: "stored", length: plan.on_disk, common: 0, stored: true, marks: [],
          groups: plan.stored.map((stored) => ({blocks: 0, shared: 0, bytes: 0, runs: [], stored}))};
}

const isOwn = (sequence) => followed !== null && (sequence?.id === followed.sequence || sequence?.use === "stored");
const isOwnShown = () => report !== null && isOwn(shown());

function draw() {
  const sequence = shown();
  drawTotals();
  drawSequences(sequence);
  map.set(report.groups, sequence, isOwn(sequence) ? followed.message_starts : []);
  parts.about.textContent = sequence === null ? "" : describe(sequence);
}

function describe(sequence) {
  const size = sequence.groups.reduce((sum, group) => sum + group.bytes, 0);
  const snapshots = new Set(sequence.marks.map(([position]) => position)).size;
  const where = sequence.use === "stored" ? "on disk, and not in memory" : bytes(size) + ", "
    + count(snapshots) + (snapshots === 1 ? " snapshot" : " snapshots") + (sequence.stored ? ", on disk too" : "");
  return nameOf(sequence) + ": " + count(sequence.length) + " tokens, " + where + ". Wheel or + and − zoom, dragging and arrows move.";
}

const uses = {reading: "Reading", answering: "Answering", kept: "Kept", pinned: "Pinned",
              stored: "This conversation"};
const nameOf = ({use, id}) => uses[use] + (use === "stored" ? "" : " " + id.replace(/^\w+-(.{6}).*$/, "#$1"));

const partNames = {
  conversations: ["Conversations", "pages, states and rows, with free ones that are kept ready"],
  weights: ["Packed weights", "beside those of the file"],
  files: ["Files", "pages of the model's file and the program that are resident"],
  steps: ["Steps", "rows that are being computed, and recorded ops"],
  rest: ["The rest", "resident, and counted nowhere else; below zero: counted, and not touched yet"],
};

function drawTotals() {
  const {process, conversations, store, engine} = report;
  if (process === null) {
    const own = [...sequences.values()].reduce((sum, {groups}) => groups.reduce((all, group) => all + group.bytes, sum), 0);
    replace(parts.totals, dom("h2", {}, bytes(own) + " for your conversations"),
      dom("p", {class: "facts"}, "Totals of the process are for admin keys."));
    return;
  }
  const sizes = Object.keys(partNames).map((name) => [name, process[name]]);
  const sum = sizes.reduce((total, [, size]) => total + Math.max(0, size), 0);
  const bar = dom("div", {class: "bar", role: "img", "aria-label": "The process's memory by use"},
    sizes.filter(([, size]) => size > 0).map(([name, size]) => {
      const piece = dom("span", {class: "part-" + name, title: partNames[name][0] + ": " + bytes(size)});
      piece.style.flexGrow = String(size / sum);
      return piece;
    }));
  const inUse = conversations.pages + conversations.states + conversations.logs + conversations.rows;
  const facts = [
    bytes(inUse) + " of " + bytes(conversations.budget) + " for conversations in use",
    count(engine.running) + " running, " + count(engine.waiting) + " waiting", rates.text || "idle",
    store ? bytes(store.bytes) + " of " + bytes(store.budget) + " on disk, " + count(store.entries) + " conversations" : "nothing on disk",
  ];
  replace(parts.totals, dom("h2", {}, bytes(process.resident) + " resident"), bar,
    dom("table", {class: "parts"}, dom("tbody", {}, sizes.map(([name, size]) =>
      dom("tr", {title: partNames[name][1]}, dom("td", {}, dom("span", {class: "key part-" + name}), partNames[name][0]),
          dom("td", {class: "number"}, bytes(size)))),
      dom("tr", {class: "sum"}, dom("td", {}, "Together: resident"), dom("td", {class: "number"}, bytes(process.resident))))),
    dom("p", {class: "facts"}, facts.join(" · ")));
}

function drawSequences(sequence) {
  const longest = Math.max(1, ...[...sequences.values()].map(({length}) => length));
  const items = report.order.map((id) => sequences.get(id)).filter(Boolean);
  const note = items.length === 0 ? "None yet. Say something in the chat."
    : report.left_out > 0 ? "and " + count(report.left_out) + " that were used longer ago" : null;
  arrange(parts.sequences, items, sequenceItem, (element, each) => fillSequence(element, each, each === sequence, longest), note);
}

function sequenceItem({id}) {
  const pick = () => {
    picked = picked === id ? null : id;
    draw();
  };
  return dom("li", {}, dom("button", {type: "button", onclick: pick},
    dom("span", {class: "name"}),
    dom("span", {class: "length", "aria-hidden": "true"}, dom("span", {class: "common"}), dom("span", {class: "own"})),
    dom("span", {class: "tokens-count"})));
}

function fillSequence(element, each, isShown, longest) {
  const button = element.firstChild, [name, bar, tokens] = button.children;
  button.className = "use-" + each.use;
  button.setAttribute("aria-pressed", String(isShown));
  replace(name, nameOf(each), each.id === followed?.sequence ? dom("em", {}, " this conversation") : null,
          each.stored ? dom("em", {}, " disk") : null);
  bar.children[0].style.width = each.common / longest * 100 + "%";
  bar.children[1].style.width = (each.length - each.common) / longest * 100 + "%";
  setText(tokens, count(each.length) + " tokens" + (each.common > 0 ? ", " + count(each.common) + " as above" : ""));
}

// The open conversation is another one, or has changed.
export async function conversationChanged() {
  if (!isShown()) return;
  const conversation = chat.current();
  if (pointed && !(pointed.id in conversation.nodes)) pointAway();
  const path = pickedPath(conversation);
  turns = turns.filter(({node}) => path.includes(node));  // Until the server has said where all are.
  drawTree();
  const answered = path.findLastIndex((node) => node.role === "user");
  const found = answered < 0 ? null : await price(path[answered]);
  if (conversation !== chat.current()) return;
  followed = found;
  turns = found === null ? [] : turnsOf(path, found.message_starts);
  if (report) draw();
}

// A turn is a user's message and what was said to it, the first one with what stands before it. The
// server says where each begins; where it counts them in another way, none is known.
function turnsOf(path, starts) {
  const users = path.map((node, index) => (node.role === "user" ? index : -1)).filter((index) => index >= 0);
  if (users.length !== starts.length) return [];
  return users.map((first, turn) => {
    const node = path[(users[turn + 1] ?? path.length) - 1];
    return {node, begin: turn === 0 ? 0 : starts[turn], end: starts[turn + 1] ?? Infinity,
            text: "turn " + (turn + 1) + ", “" + labelOf(path[first]) + "”",
            rewind: (pointer) => goBackTo(node, pointer), fork: () => fork(chat.current(), node)};
  });
}

// A node of the tree for each message; branches are further in.
function drawTree() {
  const conversation = chat.current();
  const onPath = new Set(pickedPath(conversation).map((node) => node.id));
  const items = [];
  const walk = (node, depth) => {
    for (let here = node; here;) {
      const children = here.children.map((id) => conversation.nodes[id]);
      if (here.parent !== null) items.push({id: here.id, node: here, depth, isPicked: onPath.has(here.id)});
      if (children.length !== 1) {
        for (const child of children) walk(child, depth + 1);
        return;
      }
      here = children[0];
    }
  };
  walk(root(conversation), 0);
  const last = pickedPath(conversation).at(-1);
  arrange(parts.tree, items, treeItem, (element, item) => fillTreeItem(element, item, item.node === last),
          items.length > 0 ? null : "Nothing has been said yet.");
}

// The message of the open conversation that an element of the tree is of.
const nodeOf = (element) => chat.current().nodes[element.closest("[data-node]")?.dataset.node];

function labelOf(node) {
  const text = node.text.trim().split("\n")[0];
  return (node.role === "user" ? "You: " : "Model: ") + (text.length > 70 ? text.slice(0, 69) + "…" : text || "…");
}

function treeItem({id}) {
  return dom("li", {class: "depth", role: "treeitem"},
    dom("button", {type: "button", "data-node": id, "aria-keyshortcuts": "F", title: "Go back to here"}));
}

function fillTreeItem(element, {node, depth, isPicked}, isLast) {
  const button = element.firstChild;
  element.setAttribute("aria-selected", String(isPicked));
  element.style.paddingInlineStart = Math.min(depth, 8) * 14 + "px";
  button.className = node.role + (isPicked ? " on-path" : "") + (isLast ? " last" : "") + (node === pointed ? " pointed" : "");
  setText(button, labelOf(node));
}

// Where what was lifted does not fall on an empty place.
const notEmpty = "[data-node], .map";

function liftedNode(node) {
  const conversation = chat.current();
  if (!node) return null;
  return {text: "New conversation, up to “" + labelOf(node) + "”", drop: () => fork(conversation, node)};
}

// Shows what going on behind this message would cost, soon.
async function point(node, wait = pause) {
  if (pointed === node && wait > 0) return;
  pointed = node;
  parts.price.textContent = "…";
  parts.fork.disabled = false;
  for (const each of parts.tree.querySelectorAll("[data-node]")) {
    each.classList.toggle("pointed", each.dataset.node === node.id);
  }
  await new Promise((resolve) => setTimeout(resolve, wait));
  if (pointed !== node) return;
  const found = await price(node);
  if (pointed !== node || found === null) return;  // What refused it is told.
  const isStored = found.on_disk > found.reused;
  parts.price.textContent = "From here: " + count(found.reused) + " of " + count(found.prompt_tokens)
    + " tokens are in memory, " + (isStored ? count(found.on_disk) + " on disk, " : "")
    + count(found.recomputed) + (isStored ? " would be read, or found there" : " would be read")
    + (found.replayed > 0 ? ", " + count(found.replayed) + " replayed" : "") + "."
    + (found.reason ? " " + found.reason : "");
}

function pointAway() {
  pointed = tapped = null;
  parts.fork.disabled = true;
  parts.price.textContent = "";
}

// A finger points first, and goes back when it comes again. A tree that is not drawn any more may be
// of another conversation.
function goBackTo(node, pointer) {
  if (chat.current().nodes[node.id] !== node) return;
  if (pointer === "touch" && tapped !== node) {
    tapped = node;
    point(node, 0);
    return;
  }
  picked = tapped = null;
  chat.goBackTo(node);
  point(node, 0);
}

function fork(conversation, node) {
  picked = null;
  pointAway();
  hooks.forked(forkOf(conversation, node));
}

// What answering behind this message would cost; null where the server does not say.
async function price(node) {
  const conversation = chat.current();
  try {
    return await postJson("/v1/memory/plan", {
      messages: messagesOf(conversation, pathTo(conversation, node)), ...modelFields()});
  } catch (problem) {
    parts.price.textContent = problem.message;
    return null;
  }
}
