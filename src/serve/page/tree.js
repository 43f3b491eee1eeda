// A conversation is a tree: a message that is edited, or an answer that is made again, is a sibling
// of the one before. `picked` is the number of the child by which the shown branch goes on; of one
// that was gone back to it is below zero (its complement), and the branch ends there. Pure data, so
// that it can be stored as it is.
import {newId} from "/page/dom.js";

const rootId = "root";

export function newConversation() {
  return {
    id: newId(), title: "", system: "", updated: Date.now(),
    nodes: {[rootId]: {id: rootId, parent: null, role: "", text: "", children: [], picked: 0}},
  };
}

export const root = (conversation) => conversation.nodes[rootId];

export function addNode(conversation, parent, fields) {
  const node = {id: newId(), parent: parent.id, text: "", children: [], picked: 0, ...fields};
  conversation.nodes[node.id] = node;
  parent.picked = parent.children.push(node.id) - 1;
  conversation.updated = Date.now();
  return node;
}

export const parentOf = (conversation, node) => conversation.nodes[node.parent];
export const siblings = (conversation, node) => parentOf(conversation, node).children;

const hasPicked = (node) => node.children.length > 0 && node.picked >= 0;

// From the first message to the last one of the branch that is picked.
export function pickedPath(conversation) {
  const path = [];
  let node = root(conversation);
  while (hasPicked(node)) {
    node = conversation.nodes[node.children[Math.min(node.picked, node.children.length - 1)]];
    path.push(node);
  }
  return path;
}

// From the first message to this one.
export function pathTo(conversation, node) {
  const path = [];
  for (; node.parent !== null; node = parentOf(conversation, node)) path.unshift(node);
  return path;
}

// Makes the branch that leads through the node the picked one.
export function pick(conversation, node) {
  for (; node.parent !== null; node = parentOf(conversation, node)) {
    const parent = parentOf(conversation, node);
    parent.picked = parent.children.indexOf(node.id);
  }
}

// Makes the shown branch end with this message; what came behind it stays, and goForward() shows it
// again.
export function goBack(conversation, node) {
  pick(conversation, node);
  if (hasPicked(node)) node.picked = ~node.picked;
}
export const wasGoneBackTo = (node) => node.children.length > 0 && node.picked < 0;
export function goForward(node) {
  if (wasGoneBackTo(node)) node.picked = ~node.picked;
}

// Another conversation, with all that was said up to this message in its branch.
export function forkOf(conversation, node) {
  const made = newConversation();
  made.title = "Fork of " + titleOf(conversation).replace(/^Fork of /, "");
  made.system = conversation.system;
  let last = root(made);
  for (const {id, parent, children, picked, live, ...fields} of pathTo(conversation, node)) {
    last = addNode(made, last, structuredClone(fields));
  }
  return made;
}

export function removeNode(conversation, node) {
  for (const child of [...node.children]) removeNode(conversation, conversation.nodes[child]);
  const parent = parentOf(conversation, node);
  const index = parent.children.indexOf(node.id);
  parent.children.splice(index, 1);
  if (parent.picked >= index) parent.picked = Math.max(0, parent.picked - 1);
  delete conversation.nodes[node.id];
}

// What the server is asked with. Reasoning is not said again: templates leave it out.
export function messagesOf(conversation, path) {
  const messages = path.map((node) => ({role: node.role, content: node.text}));
  if (conversation.system.trim() !== "") {
    messages.unshift({role: "system", content: conversation.system});
  }
  return messages;
}

export function titleOf(conversation) {
  if (conversation.title) return conversation.title;
  const first = root(conversation).children[0];
  const text = first ? conversation.nodes[first].text.trim().split("\n")[0] : "";
  return text.length > 60 ? text.slice(0, 59) + "…" : text || "New chat";
}

// Of a file that somebody may have changed: null where it is no conversation.
export function checked(value) {
  const isText = (field) => typeof field === "string";
  if (typeof value !== "object" || value === null || !isText(value.id) || !isText(value.title) ||
      !isText(value.system) || typeof value.nodes !== "object" || value.nodes === null ||
      !(rootId in value.nodes)) {
    return null;
  }
  const nodes = value.nodes, seen = new Set();
  const waiting = [rootId];
  while (waiting.length > 0) {
    const id = waiting.pop(), node = nodes[id];
    if (seen.has(id) || !node || node.id !== id || !isText(node.text) || !isText(node.role) ||
        !Array.isArray(node.children) || !Number.isInteger(node.picked)) {
      return null;
    }
    seen.add(id);
    for (const child of node.children) {
      if (nodes[child]?.parent !== id) return null;
      waiting.push(child);
    }
  }
  return {...value, updated: Number(value.updated) || Date.now(),
          nodes: Object.fromEntries([...seen].map((id) => [id, nodes[id]]))};
}
