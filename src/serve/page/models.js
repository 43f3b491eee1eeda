// Which of the server's models answers. Where there is one, nobody is asked.
import {byId, count, dom, replace} from "/page/dom.js";
import {recall, remember} from "/page/store.js";

let picked = "";  // Empty: there is one, and requests need not name it.

// Members of a request's body, and the query of an address, that say which model is meant.
export const modelFields = () => (picked === "" ? {} : {model: picked});
export const modelQuery = () => (picked === "" ? "" : "?model=" + encodeURIComponent(picked));

function describe(model) {
  byId("model").textContent = model.id + " · " + count(model.context_length) + " tokens";
  byId("model").title = count(model.meta.n_params) + " parameters, " + model.meta.architecture;
}

// `models`: as /v1/models lists them.
export function setModels(models, whenPicked) {
  const texts = models.filter((model) => model.type !== "embeddings");
  const choice = byId("pick-model");
  choice.hidden = texts.length < 2;
  const last = texts.find((model) => model.id === recall("model", "")) ??
    texts.find((model) => model.state === "loaded") ?? texts[0] ?? models[0];
  picked = choice.hidden && models.length === 1 ? "" : last.id;
  describe(last);
  replace(choice, texts.map((model) => dom("option", {value: model.id}, model.id)));
  choice.value = last.id;
  choice.onchange = () => {
    picked = choice.value;
    remember("model", picked);
    describe(texts.find((model) => model.id === picked));
    whenPicked();
  };
}
