// One sequence's memory as a picture: a row for each layer, columns are positions. Drawn from runs,
// not from positions, so that a long context costs no more than a short one. What a place of it
// means for a conversation it asks its `hooks`.
import {bytes, count, dom} from "/page/dom.js";

const labelWidth = 116, topHeight = 26, gap = 8, rowMax = 14, rowMin = 3, heightMax = 420;

const names = {full: "full attention", window: "window", chunked: "chunks", recurrent: "recurrent",
               hidden: "last rows", log: "replay log"};
const order = Object.keys(names);
const nameOf = (group) => (names[group.kind] ?? group.kind) + (group.window > 0 ? " " + count(group.window) : "");

const stripe = 5;  // Pixels from one line of a hatched area to the next.

// Whether a position is in one of these runs, [begin, end, begin …]; those of states are empty.
function isHeldBy(runs, position) {
  for (let at = 0; at < runs.length; at += 2) {
    if (position >= runs[at] && (position < runs[at + 1] || position === runs[at])) return true;
  }
  return false;
}

export class MemoryMap {
  constructor() {
    this.canvas = dom("canvas", {tabindex: "0", role: "img", class: "map",
                                 "aria-label": "Memory by layers and positions; arrow keys move, plus and minus zoom"});
    this.tip = dom("output", {class: "tip", "aria-live": "polite"});
    this.element = dom("div", {class: "map-box"}, this.canvas, this.tip);
    this.groups = [];
    this.sequence = null;
    this.messageStarts = [];
    // turnAt(position): {text, end, rewind(), fork()} of the turn there, or null.
    // pointed(turn): the pointer, or the keyboard's cursor, is in it now.
    this.hooks = {turnAt: () => null, pointed: () => {}};
    this.hatches = new Map();  // By colour.
    this.held = null;          // Where the pointer went down.
    this.from = 0;
    this.to = null;  // Null: the end.
    this.cursor = null;
    this.frameTimes = [];
    this.isDue = false;
    this.listen();
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  set(groups, sequence, messageStarts = []) {
    const isOther = sequence?.id !== this.sequence?.id;
    this.groups = groups;
    this.sequence = sequence;
    this.messageStarts = messageStarts;
    if (isOther) {
      this.from = 0;
      this.to = null;
      this.cursor = null;
      this.tip.textContent = "";
    }
    this.later();
  }

  later() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      const begin = performance.now();
      this.draw();
      this.frameTimes.push(performance.now() - begin);
      if (this.frameTimes.length > 200) this.frameTimes.shift();
    });
  }

  get end() { return this.to ?? Math.max(1, this.sequence?.length ?? 1); }
  get span() { return Math.max(1, this.end - this.from); }
  get plotWidth() { return Math.max(10, this.width - labelWidth - 6); }
  x(position) { return labelWidth + (position - this.from) / this.span * this.plotWidth; }
  position(x) { return Math.floor(this.from + (x - labelWidth) / this.plotWidth * this.span); }

  zoom(factor, at) {
    const length = Math.max(1, this.sequence?.length ?? 1);
    const span = Math.min(length, Math.max(8, this.span * factor));
    const share = (at - this.from) / this.span;
    this.move(at - share * span, span);
  }

  move(from, span) {
    const length = Math.max(1, this.sequence?.length ?? 1);
    this.from = Math.max(0, Math.min(from, length - span));
    this.to = this.from + span >= length && this.from === 0 ? null : this.from + span;
    this.later();
  }

  listen() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return {x: event.clientX - box.left, y: event.clientY - box.top};
    };
    this.canvas.addEventListener("wheel", (event) => {
      if (!this.sequence) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.move(this.from + (event.deltaX || event.deltaY) / this.plotWidth * this.span, this.span);
      } else {
        this.zoom(Math.exp(event.deltaY / 400), this.position(place(event).x));
      }
    }, {passive: false});
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      // Its turn is that of the press, whatever is drawn before it ends.
      this.held = {x: event.clientX, y: event.clientY, from: this.from, isMoved: false, pans: false,
                   turn: this.turnAt(this.cursorAt(place(event)))};
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const turn = this.held?.isMoved ? null : this.held?.turn;
      this.held = null;
      this.point(place(event));
      turn?.rewind(event.pointerType);
    });
    this.canvas.addEventListener("pointercancel", () => { this.held = null; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.held) this.drag(event.clientX - this.held.x, event.clientY - this.held.y);
      this.point(place(event));
    });
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // Sideways, where there is more than is seen, moves the view; else a turn may be lifted out.
  drag(right, down) {
    if (Math.hypot(right, down) > 3) this.held.isMoved = true;
    this.held.pans ||= this.pansBy(right, down) && Math.abs(right) > 3;
    if (this.held.pans) this.move(this.held.from - right / this.plotWidth * this.span, this.span);
  }

  pansBy(right, down) {
    return this.span < (this.sequence?.length ?? 0) && Math.abs(right) >= Math.abs(down);
  }

  // Whether a movement that begins so is not the map's; then it lets go of the pointer.
  letGo(right, down) {
    if (this.held?.pans || this.pansBy(right, down)) return false;
    this.held = null;
    return true;
  }

  // The turn that the cursor is in.
  get turn() { return this.turnAt(this.cursor); }
  turnAt(cursor) { return cursor && this.hooks.turnAt(cursor.position); }

  key(event) {
    if (!this.sequence) return;
    const step = Math.max(1, Math.round(this.span / 50));
    const middle = this.cursor?.position ?? Math.floor(this.from + this.span / 2);
    const row = this.cursor?.row ?? 0;
    const clamp = (value, max) => Math.max(0, Math.min(value, max));
    const moves = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (moves[event.key]) {
      this.cursor = {position: clamp(middle + moves[event.key][0], this.sequence.length - 1),
                     row: clamp(row + moves[event.key][1], this.rows().length - 1)};
      if (this.cursor.position < this.from || this.cursor.position >= this.end) {
        this.move(this.cursor.position - this.span / 2, this.span);
      }
      this.tell();
    } else if (event.key === "Enter") this.turn?.rewind();
    else if (event.key === "f" && !event.repeat && !event.ctrlKey && !event.metaKey && !event.altKey) this.turn?.fork();
    else if (event.key === "+" || event.key === "=") this.zoom(0.6, middle);
    else if (event.key === "-") this.zoom(1 / 0.6, middle);
    else if (event.key === "0") this.move(0, this.sequence.length);
    else return;
    event.preventDefault();
    this.later();
  }

  // What a cursor there would be; null: there is nothing.
  cursorAt({x, y}) {
    const row = this.rows().findIndex((each) => y >= each.y && y < each.y + each.height);
    if (row < 0 || x < labelWidth || x > labelWidth + this.plotWidth) return null;
    return {position: Math.max(0, Math.min(this.position(x), this.sequence.length - 1)), row};
  }

  point(place) {
    const cursor = place && this.cursorAt(place);
    if (cursor === null && this.cursor === null) return;
    this.cursor = cursor;
    this.tell();
    this.later();
  }

  // A row for each layer of a group; groups without layers (the log, hidden rows) have one.
  rows() {
    if (!this.sequence) return [];
    const groups = this.groups.map((group, index) => ({group, held: this.sequence.groups[index]}))
      .filter(({held}) => held)
      .sort((a, b) => order.indexOf(a.group.kind) - order.indexOf(b.group.kind));
    const layers = groups.map(({group}) => (group.layers.length > 0 ? group.layers : [null]));
    const total = layers.reduce((sum, list) => sum + list.length, 0);
    const room = heightMax - topHeight - gap * groups.length;
    const height = Math.max(rowMin, Math.min(rowMax, Math.floor(room / Math.max(1, total))));
    const rows = [];
    let y = topHeight;
    groups.forEach((each, index) => {
      const first = y;
      const tall = Math.max(height, Math.ceil(rowMax / layers[index].length));
      for (const layer of layers[index]) {
        rows.push({...each, layer, y, height: tall, first, count: layers[index].length});
        y += tall;
      }
      y += gap;
    });
    return rows;
  }

  // Of a window: from where on the next token sees what is held.
  seenFrom({group}) {
    const length = this.sequence.length;
    if (group.kind === "window") return Math.max(0, length - group.window + 1);
    if (group.kind === "chunked") return length - length % group.window;
    return 0;
  }

  draw() {
    const rows = this.rows();
    const ratio = window.devicePixelRatio || 1;
    this.width = this.element.clientWidth;
    const last = rows.at(-1);
    const height = last ? last.y + last.height + gap : 80;
    const pixels = [Math.round(this.width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
      this.canvas.style.height = height + "px";
    }
    const pen = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue("--" + name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (!last) {
      pen.fillStyle = color("muted");
      pen.fillText("No sequence is in memory yet.", 12, 40);
      return;
    }
    this.drawScale(pen, color);
    for (const row of rows.filter((each) => each.y === each.first)) this.drawGroup(pen, color, row);
    this.drawMarks(pen, color, last.y + last.height);
    this.drawLeft(pen, color, last.y + last.height);
    if (this.cursor && rows[this.cursor.row]) {
      const row = rows[this.cursor.row];
      pen.strokeStyle = color("text");
      pen.lineWidth = 1;
      const x = Math.round(this.x(this.cursor.position)) + 0.5;
      pen.strokeRect(x, row.y - 0.5, Math.max(3, this.plotWidth / this.span), row.height);
    }
  }

  drawScale(pen, color) {
    const rough = this.span / Math.max(2, this.plotWidth / 90);
    const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
    const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
    pen.fillStyle = color("muted");
    pen.textAlign = "center";
    for (let at = Math.ceil(this.from / step) * step; at <= this.end; at += step) {
      pen.fillRect(Math.round(this.x(at)), topHeight - 6, 1, 4);
      const half = pen.measureText(count(at)).width / 2;
      const x = Math.max(labelWidth + half - 4, Math.min(this.x(at), labelWidth + this.plotWidth - half + 4));
      pen.fillText(count(at), x, topHeight - 14);
    }
    pen.textAlign = "left";
  }

  // All layers of a group hold the same: they are drawn as one, and then told apart by lines.
  drawGroup(pen, color, row) {
    const {group, held, y, height, count: layers} = row;
    const tint = color("kind-" + group.kind) || color("accent");
    const tall = layers * height;
    pen.fillStyle = color("text");
    pen.fillText(nameOf(group), 0, y + Math.min(8, tall / 2));
    if (tall > 26 && group.layers.length > 0) {
      pen.fillStyle = color("muted");
      pen.fillText(layers + (layers > 1 ? " layers" : " layer"), 0, y + 23);
    }
    pen.fillStyle = color("empty");
    pen.fillRect(labelWidth, y, this.plotWidth, tall);
    this.drawStored(pen, held.stored, y, tall, this.hatch(pen, tint), tall);
    const seenFrom = this.seenFrom(row);
    this.drawHeld(pen, color("empty"), tint, row, seenFrom, tall);
    this.drawStored(pen, held.stored, y, tall, color("disk"), 2);
    pen.fillStyle = color("panel");
    for (let layer = 1; layer < layers && height > 4; ++layer) {
      pen.fillRect(labelWidth, y + layer * height - 1, this.plotWidth, 1);
    }
  }

  drawHeld(pen, empty, tint, {held, y}, seenFrom, tall) {
    for (let at = 0; at < held.runs.length; at += 3) {
      const begin = held.runs[at], end = held.runs[at + 1], refs = held.runs[at + 2];
      // Nothing shines through what is half transparent.
      pen.fillStyle = empty;
      this.drawPlain(pen, begin, end, y, tall);
      pen.fillStyle = tint;
      if (begin === end) {
        this.drawState(pen, begin, y, tall, refs);
      } else {
        this.drawRun(pen, begin, Math.min(end, seenFrom), y, tall, refs, true);
        this.drawRun(pen, Math.max(begin, seenFrom), end, y, tall, refs, false);
      }
    }
  }

  // What is on the disk: all of the row hatched, before what is in memory is drawn over it; behind
  // that a line above it.
  drawStored(pen, runs, y, tall, fill, height) {
    pen.fillStyle = fill;
    for (let at = 0; at < runs.length; at += 2) this.drawPlain(pen, runs[at], runs[at + 1], y, Math.min(tall, height));
  }

  // A run, or a state, in the colour that is set.
  drawPlain(pen, begin, end, y, height) {
    if (begin === end) {
      if (begin < this.from || begin > this.end) return;
      pen.fillRect(Math.max(labelWidth, Math.min(this.x(begin), labelWidth + this.plotWidth) - 3), y, 3, height);
    } else if (end > this.from && begin < this.end) {
      const x = Math.max(labelWidth, this.x(begin));
      pen.fillRect(x, y, Math.max(1, Math.min(labelWidth + this.plotWidth, this.x(end)) - x), height);
    }
  }

  drawRun(pen, begin, end, y, height, refs, isMasked) {
    if (begin >= end) return;
    pen.globalAlpha = isMasked ? 0.3 : refs > 0 ? 0.62 : 1;
    this.drawPlain(pen, begin, end, y, height);
    pen.globalAlpha = 1;
    // What others share has a line under it.
    if (refs > 0) this.drawPlain(pen, begin, end, y + height - 3, 3);
  }

  drawState(pen, position, y, height, refs) {
    const isLive = position === this.sequence.length;
    pen.globalAlpha = isLive || refs === 0 ? 1 : 0.62;
    this.drawPlain(pen, position, position, y, height);
    pen.globalAlpha = 1;
  }

  // Lines of this colour, aslant.
  hatch(pen, tint) {
    if (!this.hatches.has(tint)) {
      const tile = dom("canvas", {width: stripe, height: stripe}), lines = tile.getContext("2d");
      lines.strokeStyle = tint;
      for (const shift of [-stripe, 0, stripe]) {
        lines.moveTo(shift, stripe);
        lines.lineTo(shift + stripe, 0);
      }
      lines.stroke();
      this.hatches.set(tint, pen.createPattern(tile, "repeat"));
    }
    return this.hatches.get(tint);
  }

  // What lies behind the turn that is pointed at: going back leaves it.
  drawLeft(pen, color, bottom) {
    const end = this.turn?.end ?? Infinity;
    if (end >= this.sequence.length || end >= this.end) return;
    const x = Math.max(labelWidth, this.x(end));
    pen.globalAlpha = 0.6;
    pen.fillStyle = color("panel");
    pen.fillRect(x, topHeight, labelWidth + this.plotWidth - x, bottom - topHeight);
    pen.globalAlpha = 1;
    pen.fillStyle = color("accent");
    pen.fillRect(x - 1, topHeight, 2, bottom - topHeight);
  }

  drawMarks(pen, color, bottom) {
    pen.fillStyle = color("mark");
    let last = -99;
    for (const [position] of this.sequence.marks) {
      const x = this.x(position);
      // Where they would touch, fewer of them say as much.
      if (position < this.from || position > this.end || x < last + 5) continue;
      last = x;
      pen.beginPath();
      pen.moveTo(x - 4, topHeight - 5);
      pen.lineTo(x + 4, topHeight - 5);
      pen.lineTo(x, topHeight);
      pen.fill();
      pen.globalAlpha = 0.35;
      pen.fillRect(x - 0.5, topHeight, 1, bottom - topHeight);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = color("accent");
    for (const position of this.messageStarts) {
      if (position >= this.from && position <= this.end) pen.fillRect(this.x(position) - 1, topHeight - 3, 2, 3);
    }
  }

  tell() {
    this.tip.textContent = this.text();
    this.hooks.pointed(this.turn);
  }

  text() {
    const turn = this.turn;
    const cell = this.cellText();
    return cell + (turn ? " — " + turn.text + ": a click goes back to its end" : "");
  }

  cellText() {
    const row = this.cursor && this.rows()[this.cursor.row];
    if (!row) return "";
    const {group, held, layer} = row, position = this.cursor.position;
    const where = nameOf(group) + (layer === null ? "" : ", layer " + layer);
    const mark = this.sequence.marks.find(([at]) => Math.abs(at - position) <= this.span / this.plotWidth * 4);
    const marked = mark ? "; snapshot at " + count(mark[0]) + " (" + mark[1].replace("_", " ") + ")" : "";
    const isStored = isHeldBy(held.stored, position);
    const disk = isStored ? "; on disk too" : "";
    const isState = group.page_tokens === 0;
    for (let at = 0; at < held.runs.length; at += 3) {
      const [begin, end, refs] = held.runs.slice(at, at + 3);
      const shared = refs > 0 ? ", shared with " + refs + (refs > 1 ? " others" : " other") : "";
      if (isState) {
        if (Math.abs(begin - position) > Math.max(1, this.span / this.plotWidth * 4)) continue;
        const kind = begin === this.sequence.length ? "at the end" : "of a snapshot";
        return "Token " + count(position) + " · " + where + ": state " + kind + ", " + bytes(group.block_bytes) + shared + marked + disk;
      }
      if (position < begin || position >= end) continue;
      const state = position < this.seenFrom(row) ? "masked: kept for going back" : "live";
      return "Token " + count(position) + " · " + where + ": " + state + shared + "; page of "
        + group.page_tokens + " tokens, " + bytes(group.block_bytes) + marked + disk;
    }
    const missing = isStored ? "on disk: read from there, not computed" : isState ? "no state here" : "not held";
    return "Token " + count(position) + " · " + where + ": " + missing + marked;
  }
}
