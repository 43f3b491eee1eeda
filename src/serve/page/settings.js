// What requests say of sampling. The fields, their ranges, defaults and meanings are the server's
// own, from /openapi.json; what is not changed is not sent.
import {byId, dom, replace} from "/page/dom.js";
import {recall, remember} from "/page/store.js";

const first = ["temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n",
               "presence_penalty", "frequency_penalty"];
const names = {max_tokens: "most tokens", stop: "stop texts, one in each line", seed: "seed"};

let fields = [];  // {name, type, min, max, default, doc}
let changed = recall("settings", {});
let conversation = null, onSystem = () => {};

export function setFields(openapi) {
  const body = openapi.paths?.["/v1/chat/completions"]?.post?.requestBody;
  const properties = body?.content?.["application/json"]?.schema?.properties ?? {};
  fields = Object.entries(properties)
    .filter(([, field]) => "default" in field)
    .map(([name, field]) => ({name, type: field.type, min: field.minimum, max: field.maximum,
                              otherwise: field.default, doc: field.description}));
  const rank = ({name}) => (first.includes(name) ? first.indexOf(name) : first.length);
  fields.sort((a, b) => rank(a) - rank(b));
  draw();
}

// Whether answers come with the probabilities of their tokens.
export const wantsTokens = () => changed.tokens !== false;

// The members of a request.
export function requestFields() {
  const {tokens, stop, ...members} = changed;
  const texts = (stop ?? "").split("\n").filter((text) => text !== "");
  if (texts.length > 0) members.stop = texts;
  if (wantsTokens()) Object.assign(members, {logprobs: true, top_logprobs: 5});
  return members;
}

export function setConversation(value, whenSystemChanges) {
  conversation = value;
  onSystem = whenSystemChanges;
  draw();
}

function change(name, value) {
  if (value === undefined) delete changed[name];
  else changed[name] = value;
  remember("settings", changed);
}

function numberInput(field, label) {
  const isWhole = field.type === "integer";
  const input = dom("input", {
    type: "number", id: "field-" + field.name, inputmode: isWhole ? "numeric" : "decimal",
    step: isWhole ? "1" : "any", min: field.min, max: field.max, placeholder: field.otherwise ?? "",
    onchange: () => {
      const value = input.value === "" ? undefined : Number(input.value);
      const fits = value === undefined || (input.checkValidity() && Number.isFinite(value));
      input.setAttribute("aria-invalid", String(!fits));
      if (fits) change(field.name, value === field.otherwise ? undefined : value);
      row.classList.toggle("changed", field.name in changed);
    },
  });
  if (field.name in changed) input.value = changed[field.name];
  const row = dom("div", {class: "field" + (field.name in changed ? " changed" : ""), title: field.doc},
                  dom("label", {for: input.id}, label ?? field.name), input);
  return row;
}

function switchInput(field) {
  const input = dom("input", {type: "checkbox", id: "field-" + field.name,
                              onchange: () => change(field.name,
                                input.checked === field.otherwise ? undefined : input.checked)});
  input.checked = changed[field.name] ?? field.otherwise;
  return dom("div", {class: "field", title: field.doc}, dom("label", {for: input.id}, field.label ?? field.name), input);
}

function draw() {
  const system = dom("textarea", {id: "system", rows: "4", placeholder: "None",
                                  oninput: () => onSystem(system.value)});
  system.value = conversation?.system ?? "";
  const stop = dom("textarea", {id: "field-stop", rows: "2", placeholder: "None",
                                onchange: () => change("stop", stop.value || undefined)});
  stop.value = changed.stop ?? "";
  const samplers = fields.map((field) => (field.type === "boolean" ? switchInput(field) : numberInput(field)));
  replace(byId("settings"),
    dom("header", {}, dom("h2", {}, "Settings"),
        dom("button", {class: "icon", "aria-label": "Close the settings", id: "settings-close"}, "×")),
    dom("h3", {}, dom("label", {for: "system"}, "System prompt")),
    dom("p", {class: "note"}, "Of this conversation. A change makes the model read it all again."),
    system,
    dom("h3", {}, "Answers"),
    numberInput({name: "max_tokens", type: "integer", min: -1, max: 2 ** 30, otherwise: -1,
                 doc: "The most tokens of an answer; -1: as many as the model likes."}, names.max_tokens),
    numberInput({name: "seed", type: "integer", min: -1, max: 2 ** 53 - 1, otherwise: -1,
                 doc: "Equal seeds give equal answers; -1: a new one each time."}, names.seed),
    switchInput({name: "tokens", label: "token probabilities", otherwise: true,
                 doc: "Ask for the probability of each token, and of others in its place."}),
    dom("div", {class: "field tall"}, dom("label", {for: stop.id}, names.stop), stop),
    dom("h3", {}, "Sampling"),
    dom("p", {class: "note"}, "Grey numbers are what the server takes where nothing is said."),
    samplers,
    dom("button", {type: "button", onclick: () => {
      changed = {};
      remember("settings", changed);
      draw();
    }}, "Back to the defaults"));
  byId("settings-close").addEventListener("click", () => byId("open-settings").click());
}
