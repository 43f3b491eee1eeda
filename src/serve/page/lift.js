// Lifting something out of its place with a mouse or a pen: a label follows the pointer, and to let
// go of it at an empty place does what it stands for. Escape, or letting go where things can be
// lifted, does nothing. Fingers scroll instead: for them, and for keys, there are buttons.
import {dom} from "/page/dom.js";

const slop = 6;  // Pixels: less is a click.

// `what(event)`: what a press there lifts, {text, drop}, or null. `begins(right, down)`: whether it
// is lifted by a movement that begins so. `stays`: a selector of places that are not empty.
export function liftable(element, stays, what, begins = () => true) {
  element.addEventListener("pointerdown", (press) => {
    const found = press.button === 0 && press.pointerType !== "touch" ? what(press) : null;
    if (found) new Lift(press, found, begins, stays);
  });
}

class Lift {
  constructor(press, found, begins, stays) {
    Object.assign(this, {press, found, begins, stays, label: null, listening: new AbortController()});
    const on = (name, handle, capture = false) =>
      window.addEventListener(name, handle, {signal: this.listening.signal, capture});
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.letGo(event));
    on("pointercancel", () => this.end());
    on("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.end();
    }, true);
  }

  move(event) {
    if (!this.label) {
      const right = event.clientX - this.press.clientX, down = event.clientY - this.press.clientY;
      if (Math.hypot(right, down) < slop) return;
      if (!this.begins(right, down)) {
        this.end();
        return;
      }
      this.label = dom("div", {class: "lifted", role: "status"}, this.found.text);
      document.body.append(this.label);
      document.body.classList.add("is-lifting");
    }
    this.label.style.transform = "translate(" + (event.clientX + 12) + "px, " + (event.clientY + 12) + "px)";
    this.label.classList.toggle("may-drop", this.isEmpty(event));
  }

  isEmpty({clientX, clientY}) {
    const under = document.elementFromPoint(clientX, clientY);
    return under !== null && under.closest(this.stays) === null;
  }

  letGo(event) {
    const isLifted = this.label !== null, isDropped = isLifted && this.isEmpty(event);
    this.end();
    if (!isLifted) return;
    // It was no click on what lies there.
    const swallow = (click) => {
      click.preventDefault();
      click.stopPropagation();
    };
    window.addEventListener("click", swallow, {capture: true});
    setTimeout(() => window.removeEventListener("click", swallow, {capture: true}), 0);
    if (isDropped) this.found.drop();
  }

  end() {
    this.listening.abort();
    this.label?.remove();
    document.body.classList.remove("is-lifting");
  }
}
