// Puts the page together: views, the list of conversations, keys, the theme.
import {getJson, hasKey, setKey} from "/page/api.js";
import * as chat from "/page/chat.js";
import {arrange, byId, count, dom, download, replace, setText} from "/page/dom.js";
import * as memory from "/page/memory.js";
import {setModels} from "/page/models.js";
import {setConversation, setFields} from "/page/settings.js";
import {all, recall, remember, remove, save} from "/page/store.js";
import {checked, newConversation, titleOf} from "/page/tree.js";

let conversations = [];
const isNarrow = () => window.matchMedia("(max-width: 760px)").matches;

function open(conversation) {
  chat.open(conversation);
  setConversation(conversation, (system) => {
    conversation.system = system;
    save(conversation);
  });
  location.hash = conversation.id;
  byId("side").classList.remove("open");
  memory.conversationChanged();
  drawList();
}

// A conversation that begins as the open one does.
function adopt(conversation) {
  conversations.unshift(conversation);
  save(conversation);
  open(conversation);
}

function startNew() {
  // One that nothing was said in is as good as new.
  const empty = conversations.find((each) => Object.keys(each.nodes).length === 1);
  const conversation = empty ?? newConversation();
  if (!empty) conversations.unshift(conversation);
  showView("chat");
  open(conversation);
  byId("input").focus();
}

function drawList() {
  const wanted = byId("search").value.trim().toLowerCase();
  const has = (conversation) => wanted === "" || titleOf(conversation).toLowerCase().includes(wanted)
    || Object.values(conversation.nodes).some((node) => node.text.toLowerCase().includes(wanted));
  const make = () => dom("li", {}, dom("button", {type: "button", class: "name"}),
                         dom("button", {type: "button", class: "icon", title: "Delete"}, "×"));
  arrange(byId("conversations"), conversations.filter(has), make, (element, conversation) => {
    const [name, remover] = element.children;
    setText(name, titleOf(conversation));
    if (conversation === chat.current()) name.setAttribute("aria-current", "true");
    else name.removeAttribute("aria-current");
    remover.setAttribute("aria-label", "Delete " + titleOf(conversation));
  });
}

function onList({target}) {
  const id = target.closest("li")?.dataset.id;
  const conversation = conversations.find((each) => each.id === id);
  if (!conversation) return;
  if (target.closest(".icon")) {
    askToDelete(conversation);
  } else if (target.closest(".name")) {
    showView("chat");
    open(conversation);
  }
}

function dialog(title, ...content) {
  const box = byId("dialog");
  replace(box, dom("form", {method: "dialog"}, dom("h2", {}, title), content));
  if (!box.open) box.showModal();
  return box;
}

function askToDelete(conversation) {
  dialog("Delete “" + titleOf(conversation) + "”?",
    dom("p", {}, "It is kept in this browser only: nobody else has it."),
    dom("div", {class: "row"},
      dom("button", {class: "primary", onclick: () => {
        conversations = conversations.filter((each) => each !== conversation);
        remove(conversation.id);
        if (conversation === chat.current()) {
          if (conversations.length > 0) open(conversations[0]);
          else startNew();
        }
        drawList();
      }}, "Delete"), dom("button", {}, "Keep")));
}

function askForKey() {
  const input = dom("input", {type: "password", id: "key", autocomplete: "off", "aria-label": "API key"});
  dialog("API key",
    dom("p", {}, hasKey() ? "The server does not take the key that was given." : "This server asks for a key."),
    input, dom("p", {class: "note"}, "It is kept as long as this page is open, and sent to this server alone."),
    dom("div", {class: "row"}, dom("button", {class: "primary", onclick: () => {
      setKey(input.value);
      connect();
    }}, "Use it"), dom("button", {}, "Cancel")));
}

function showHelp() {
  const keys = [["Enter", "send"], ["Shift Enter", "new line"], ["Esc", "stop the answer"], ["↑", "edit the last message, where nothing is written"],
                ["← →", "on a message: the branches beside it"], ["Alt N", "new chat"], ["Alt M", "chat or memory"],
                ["Alt S", "settings"], ["/", "write"], ["F", "in Memory, on a message or a place of the map: a new conversation from there"],
                ["Enter", "there: go back to it"], ["Ctrl Enter", "keep an edited message"]];
  dialog("Keys", dom("dl", {class: "keys"}, keys.map(([key, text]) => [dom("dt", {}, dom("kbd", {}, key)), dom("dd", {}, text)])),
    dom("div", {class: "row"}, dom("button", {class: "primary"}, "Close")));
}

export function showView(view) {
  const isMemory = view === "memory";
  byId("chat").hidden = isMemory;
  byId("memory").hidden = !isMemory;
  byId("show-chat").setAttribute("aria-pressed", String(!isMemory));
  byId("show-memory").setAttribute("aria-pressed", String(isMemory));
  byId("side").classList.remove("open");
  byId("title").textContent = isMemory ? "Memory" : titleOf(chat.current());
  if (isMemory) memory.show();
  else memory.hide();
}

function toggleSettings() {
  const panel = byId("settings");
  panel.hidden = !panel.hidden;
  byId("open-settings").setAttribute("aria-expanded", String(!panel.hidden));
  if (!panel.hidden && isNarrow()) byId("settings-close")?.focus();
}

const themes = ["", "light", "dark"];
function setTheme(theme) {
  if (theme === "") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").title = "Theme: " + (theme || "as the system has it");
  byId("dark").media = {light: "not all", dark: "all"}[theme] ?? "(prefers-color-scheme: dark)";
  remember("theme", theme);
  memory.theMap().later();
}

// Without a key as well: who has none is asked for it.
async function connect() {
  const status = byId("status");
  try {
    setModels((await getJson("/v1/models")).data, memory.modelChanged);
    status.textContent = "";
    setFields(await getJson("/openapi.json"));
    if (memory.isShown() || !byId("memory").hidden) memory.show();
  } catch (problem) {
    status.textContent = problem.message;
    if (problem.status === 401) askForKey();
  }
}

async function importFile(file) {
  let found = [];
  try {
    const value = JSON.parse(await file.text());
    found = (Array.isArray(value.conversations) ? value.conversations : []).map(checked).filter(Boolean);
  } catch {
    found = [];
  }
  for (const conversation of found) {
    conversations = conversations.filter((each) => each.id !== conversation.id);
    conversations.unshift(conversation);
    save(conversation);
  }
  byId("status").textContent = found.length > 0 ? count(found.length) + " imported" : "no conversations were found in it";
  drawList();
}

function onKey(event) {
  const isWriting = /^(TEXTAREA|INPUT)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "Escape" && !byId("dialog").open) {
    if (chat.isRunning()) chat.stop();
    else if (byId("side").classList.contains("open")) byId("side").classList.remove("open");
    else if (!byId("settings").hidden) toggleSettings();
  } else if (event.altKey && event.code === "KeyN") startNew();
  else if (event.altKey && event.code === "KeyM") showView(byId("memory").hidden ? "memory" : "chat");
  else if (event.altKey && event.code === "KeyS") toggleSettings();
  else if (event.key === "/" && !isWriting) byId("input").focus();
  else return;
  event.preventDefault();
}

async function begin() {
  setTheme(recall("theme", ""));
  byId("theme").addEventListener("click", () => {
    setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % themes.length]);
  });
  byId("new-chat").addEventListener("click", startNew);
  byId("search").addEventListener("input", drawList);
  byId("conversations").addEventListener("click", onList);
  byId("show-chat").addEventListener("click", () => showView("chat"));
  byId("show-memory").addEventListener("click", () => showView("memory"));
  byId("open-settings").addEventListener("click", toggleSettings);
  byId("open-key").addEventListener("click", askForKey);
  byId("help").addEventListener("click", showHelp);
  byId("side-open").addEventListener("click", () => byId("side").classList.add("open"));
  byId("side-close").addEventListener("click", () => byId("side").classList.remove("open"));
  byId("export").addEventListener("click", () =>
    download("cairn-conversations.json", JSON.stringify({cairn: 1, conversations}, null, 1)));
  byId("import").addEventListener("click", () => byId("import-file").click());
  byId("import-file").addEventListener("change", (event) => {
    if (event.target.files[0]) importFile(event.target.files[0]);
    event.target.value = "";
  });
  window.addEventListener("keydown", onKey);
  memory.start({refused: askForKey, forked: adopt});
  chat.start({changed: () => {
    if (!conversations.includes(chat.current())) conversations.unshift(chat.current());
    drawList();
    memory.conversationChanged();
  }, refused: askForKey});
  conversations = await all();
  for (const conversation of conversations) {
    for (const node of Object.values(conversation.nodes)) {
      if (!node.live) continue;
      delete node.live;
      node.figures = {...node.figures, stopped: true};
    }
  }
  const last = conversations.find((each) => each.id === location.hash.slice(1));
  if (last) open(last);
  else startNew();
  await connect();
}

begin();
