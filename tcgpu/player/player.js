// Shows recorded steps one at a time. `play(element, recording)` builds the player inside an element of any page; the
// recording is described in __init__.py. All text of a recording is shown as text, never as HTML. In a notebook this
// module is that of a widget, with the traits `recording` and `step`.

const WARP = 32; // lanes
const ROW = 128; // bytes of a cache line, and of one word in each bank of shared memory
const SECTOR = 32; // bytes
const SPEEDS = [1, 2, 5, 20]; // steps a second
const MOST_COLUMNS = 500; // of a warp's picture at a time
const KEYS = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", " ": "play" };

// Returns the player. `moved(step)` is called whenever another step is shown.
export function play(root, recording, moved = () => {}) {
  return new Player(root, recording, moved);
}

export function unpacked(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

export default {
  render({ model, el }) {
    const root = el.appendChild(make("div"));
    const player = play(root, model.get("recording"), (step) => {
      if (model.get("step") === step) return;
      model.set("step", step);
      model.save_changes();
    });
    player.go(model.get("step"));
    model.on("change:step", () => player.step !== model.get("step") && player.go(model.get("step")));
    return () => player.close();
  },
};

// ------------------------------------------------------------------------------------------------------------ elements

const FOCUSED = new Set(["button", "select", "input"]);
const DRAWN = new Set(["svg", "g", "rect", "text", "line", "circle", "polyline", "polygon"]);

// An element with attributes (`onclick` and the like are functions) and children, which are elements or texts.
function make(tag, attributes = {}, ...children) {
  const space = DRAWN.has(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  // JupyterLab's own keys, such as arrows, do not apply where the focus is: it asks the focused element itself first
  if (FOCUSED.has(tag) || "tabindex" in attributes) element.dataset.lmSuppressShortcuts = "true";
  element.append(...children);
  return element;
}

function select(label, options, chosen, onchange) {
  const menu = make("select", { "aria-label": label, onchange: () => onchange(menu.selectedIndex) });
  fill(menu, options, chosen);
  return make("label", { class: "pick" }, `${label} `, menu);
}

function fill(menu, options, chosen) {
  menu.replaceChildren(...options.map((text) => make("option", {}, text)));
  menu.selectedIndex = chosen;
}

const withCommas = (number) => number.toLocaleString("en-US");
const counted = (number, noun) => `${withCommas(number)} ${noun}${number === 1 ? "" : "s"}`;
const lanesOf = (mask) => [...Array(WARP).keys()].filter((lane) => (mask >>> lane) & 1);

// -------------------------------------------------------------------------------------------------------------- player

class Player {
  constructor(root, recording, moved) {
    this.root = root;
    this.recording = recording;
    this.words = { step: "step", first: 0, ...recording.words };
    this.moved = () => {}; // not before the first step is shown
    this.step = 0;
    this.speed = 2; // steps a second
    this.chosen = {}; // what was picked in views, to keep when another part is picked
    this.tip = make("div", { class: "tip", role: "tooltip", hidden: "" });
    this.views = make("div", { class: "views" });
    this.note = make("p", { class: "note" });
    root.classList.add("tcgpu-player");
    root.tabIndex = 0;
    root.setAttribute("aria-label", recording.title);
    root.dataset.lmSuppressShortcuts = "true";
    const title = make("div", { class: "title", role: "heading", "aria-level": 2 }, recording.title);
    root.replaceChildren(title, make("p", {}, recording.facts), this.controls(), this.note, this.views, this.tip);
    root.addEventListener("keydown", (event) => this.press(event));
    root.addEventListener("pointermove", (event) => this.point(event));
    root.addEventListener("pointerleave", () => (this.tip.hidden = true));
    const themes = { attributeFilter: ["data-theme", "data-jp-theme-light"] };
    const drawAgain = () => this.show(); // for canvases
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", drawAgain);
    this.theme = new MutationObserver(drawAgain);
    for (const element of [document.documentElement, document.body]) this.theme.observe(element, themes);
    this.close = () => {
      this.pause();
      this.theme.disconnect();
      this.dark.removeEventListener("change", drawAgain);
    };
    this.pickPart(0);
    this.moved = moved;
  }

  controls() {
    const { words, recording: { parts } } = this;
    const names = parts.map((part) => part.name);
    const part = select(words.part, names, 0, (number) => this.pickPart(number));
    const sequence = select(words.sequence, [], 0, (number) => this.pickSequence(number));
    this.menu = sequence.lastChild;
    part.hidden = parts.length < 2;
    sequence.hidden = parts.every((one) => one.sequences.length < 2);
    const button = (text, action, title) => make("button", { title, onclick: () => this.act(action) }, text);
    this.playing = button("Play", "play", "play or pause (space)");
    const buttons = [
      button("First", "first", `first ${words.step} (Home)`),
      button("Back", "back", `one ${words.step} back (left arrow)`),
      this.playing,
      button("Next", "next", `one ${words.step} on (right arrow)`),
      button("Last", "last", `last ${words.step} (End)`),
    ];
    const moved = () => this.go(Number(this.slider.value));
    this.slider = make("input", { type: "range", min: 0, "aria-label": words.step, oninput: moved });
    this.count = make("output", { class: "count" });
    const speeds = SPEEDS.map((speed) => `${counted(speed, words.step)}/s`);
    const speed = select("speed", speeds, SPEEDS.indexOf(this.speed), (number) => this.setSpeed(SPEEDS[number]));
    const together = make("span", { class: "buttons" }, ...buttons);
    const attributes = { class: "controls", role: "group", "aria-label": `${words.step}s` };
    return make("div", attributes, part, sequence, together, this.slider, this.count, speed);
  }

  pickPart(number) {
    this.part = this.recording.parts[number];
    const keys = `arrow left and right for a ${this.words.step}, Home and End for the first and the last, space to play`;
    this.note.textContent = `${this.part.note} Keys: ${keys}.`.trim();
    this.source = this.part.views.find((view) => view.kind === "source")?.rows;
    this.shown = this.part.views.map((view) => new VIEWS[view.kind](this, view));
    const column = (side) => make("div", { class: `column ${side}` },
      ...this.shown.filter((_, k) => (this.part.views[k].side ?? "right") === side).map((view) => view.element));
    this.views.replaceChildren(...["left", "right"].map(column).filter((one) => one.hasChildNodes()));
    fill(this.menu, this.part.sequences.map((sequence) => sequence.name), 0);
    this.pickSequence(0);
  }

  pickSequence(number, step = 0) {
    this.menu.selectedIndex = number;
    this.sequence = this.part.sequences[number] ?? { name: "", steps: 0, columns: {} };
    this.slider.max = Math.max(0, this.sequence.steps - 1);
    for (const view of this.shown) view.open?.(this.sequence);
    this.go(step);
  }

  go(step) {
    const { steps, name } = this.sequence;
    this.step = Math.min(Math.max(step, 0), Math.max(0, steps - 1));
    this.slider.value = this.step;
    const { step: word, first } = this.words;
    const [number, last] = [this.step + first, steps - 1 + first].map(withCommas);
    this.count.textContent = steps ? `${word} ${number} of ${last}` : `no ${word}s`;
    this.slider.setAttribute("aria-valuetext", `${this.count.textContent}, ${name}`);
    this.show();
    this.moved(this.step);
  }

  show() {
    if (this.sequence.steps) for (const view of this.shown) view.show?.(this.sequence.columns, this.step);
  }

  act(action) {
    const moves = { first: -Infinity, back: -1, next: 1, last: Infinity };
    if (action === "play" && !this.timer) return this.begin();
    this.pause();
    if (action in moves) this.go(this.step + moves[action]);
  }

  // Play; from the first step on if the last one is shown.
  begin() {
    const atEnd = () => this.step >= this.sequence.steps - 1;
    if (atEnd()) this.go(0);
    this.timer = setInterval(() => (atEnd() ? this.pause() : this.go(this.step + 1)), 1000 / this.speed);
    this.playing.textContent = "Pause";
    this.views.setAttribute("aria-busy", "true"); // a screen reader does not read every step aloud
  }

  pause() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.playing.textContent = "Play";
    this.views.setAttribute("aria-busy", "false");
  }

  setSpeed(speed) {
    this.speed = speed;
    if (!this.timer) return;
    this.pause();
    this.begin();
  }

  press(event) {
    const action = KEYS[event.key];
    const own = event.target.closest("select, input, summary") || (event.key === " " && event.target.closest("button"));
    if (!action || own || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey && (action === "back" || action === "next")) this.sameAgain(action === "next" ? 1 : -1);
    else this.act(action);
  }

  // To the next step, or the one before, that has the same row of the source as this one, or as `row`.
  sameAgain(direction, row = this.sequence.columns.row?.[this.step]) {
    const { steps, columns } = this.sequence;
    for (let k = 1; k <= steps; k++) {
      const step = (this.step + direction * k + k * steps) % steps;
      if (columns.row?.[step] === row) return this.go(step);
    }
  }

  // The tip of what the pointer is at.
  point(event) {
    const text = event.target.closest?.("[data-tip]")?.dataset.tip;
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const x = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
    const below = event.clientY + 18 + height < document.documentElement.clientHeight;
    this.tip.style.left = `${Math.max(4, x)}px`;
    this.tip.style.top = `${below ? event.clientY + 18 : event.clientY - height - 12}px`;
  }
}

// Parts of pictures: a rectangle, a text, and the picture of them.
const box = (x, y, width, height, name, tip) => make("rect", { x, y, width, height, class: name, "data-tip": tip });
const write = (x, y, text, name = "") => make("text", { x, y, class: name }, text);
const picture = (width, height, name, words, ...parts) =>
  make("svg", { viewBox: `0 0 ${width} ${height}`, class: name, role: "img", "aria-label": words }, ...parts);

const heading = (text) => make("th", { scope: "col" }, text);

function panel(name, title, ...children) {
  return make("section", { class: `panel ${name}`, "aria-label": title }, make("h2", {}, title), ...children);
}

// ------------------------------------------------------------------------------------------------- views of a stepper

// What a step does, in words, and the totals so far. Columns: title, caption, totals.
class Caption {
  constructor() {
    this.title = make("strong");
    this.totals = make("span", { class: "totals" });
    this.words = make("p", {});
    const head = make("p", { class: "head" }, this.title, this.totals);
    this.element = make("div", { class: "caption", role: "status" }, head, this.words);
  }

  show({ title, caption, totals }, step) {
    this.title.textContent = title[step];
    this.totals.textContent = totals[step];
    this.words.textContent = caption[step];
  }
}

// A drawing of shapes, of which each is drawn in some of the steps; shapes.py says what a shape is. No columns.
class Drawing {
  constructor(player, { width, height, shapes, words }) {
    this.shapes = shapes.map((shape) => ({ shape, ranges: shape[5] }));
    this.element = picture(width, height, "drawing", words);
    this.words = words;
  }

  show(columns, step) {
    const now = this.shapes.filter(({ ranges }) => isIn(ranges, step));
    this.element.replaceChildren(...now.map((one) => (one.element ??= drawn(...one.shape))));
    this.element.setAttribute("aria-label", `${this.words}, ${columns.title[step]}`);
  }
}

// Whether a step is in one of these ranges: first, end, first, end, ...
function isIn(ranges, step) {
  for (let k = 0; k < ranges.length; k += 2) if (ranges[k] <= step && step < ranges[k + 1]) return true;
  return false;
}

function drawn(kind, look, at, text, tip) {
  const [x, y, width, height] = at;
  const attributes = { class: look, "data-tip": tip || undefined };
  if (kind === "box") return make("rect", { x, y, width, height, ...attributes });
  if (kind === "dot") return make("circle", { cx: x, cy: y, r: width, ...attributes });
  if (kind === "text") {
    const written = make("text", { x, y, ...attributes }, text);
    written.style.fontSize = `${width}px`;
    return written;
  }
  return make(kind === "area" ? "polygon" : "polyline", { points: at.join(" "), ...attributes });
}

// --------------------------------------------------------------------------------------------------- views of a trace

// The source with a bar at each line. Columns: row.
class Source {
  constructor(player, { rows, measures, first }) {
    Object.assign(this, { player, rows, measures });
    this.lines = rows.map(([name, line, text], row) => {
      const toLine = { class: "line", tabindex: -1, title: "to the next step at this line" };
      const button = make("button", { ...toLine, onclick: () => player.sameAgain(1, row) }, String(line));
      const cells = [make("td", { class: "amount" }), make("td", { class: "bar" })];
      cells.push(make("td", { class: "number" }, line ? button : ""), make("td", {}, make("code", {}, text)));
      return make("tr", { "data-function": name, "data-line": line }, ...cells);
    });
    this.heading = make("th", { scope: "col", colspan: 2 });
    const head = make("tr", {}, this.heading, heading("line"), heading("source"));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...this.lines));
    this.box = make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "source" }, table);
    player.chosen.measure ??= first;
    const chosen = measures.findIndex((measure) => measure.name === player.chosen.measure);
    const names = measures.map((measure) => measure.words);
    const hint = "The bars add up all warps. The marked line is the one of this step. "
      + "Click a line's number, or press Shift with an arrow key, to go to the next step at that line.";
    this.element = panel("source", "Source", select("bars:", names, chosen, (number) => this.measure(number)),
      make("p", { class: "hint" }, hint), this.box);
    this.measure(chosen);
  }

  measure(number) {
    const { name, words, amounts } = this.measures[number];
    const most = Math.max(...amounts, 0);
    this.player.chosen.measure = name;
    this.heading.textContent = words;
    this.lines.forEach((line, row) => {
      const [amount, bar] = line.cells;
      const percent = amounts[row] < 0.0005 ? "< 0.1 %" : `${(100 * amounts[row]).toFixed(1)} %`;
      amount.textContent = amounts[row] ? (name === "time" ? percent : withCommas(amounts[row])) : "";
      bar.replaceChildren();
      if (!amounts[row]) return;
      const filled = make("div", { class: amounts[row] === most ? "fill most" : "fill" });
      filled.style.width = `${(100 * amounts[row]) / most}%`;
      bar.append(filled);
    });
  }

  open({ columns }) {
    const reached = new Set(columns.row);
    this.lines.forEach((line, row) => {
      line.classList.toggle("reached", reached.has(row));
      for (const button of line.querySelectorAll("button")) button.disabled = !reached.has(row);
    });
  }

  show({ row }, step) {
    this.now?.classList.remove("now");
    this.now?.removeAttribute("aria-current");
    this.now = this.lines[row[step]];
    this.now.classList.add("now");
    this.now.setAttribute("aria-current", "step");
    const above = this.now.offsetTop - this.box.firstChild.tHead.offsetHeight - 20;
    const below = this.now.offsetTop + this.now.offsetHeight + 20 - this.box.clientHeight;
    this.box.scrollTop = Math.min(Math.max(this.box.scrollTop, below), above);
  }
}

// The lanes of a warp in all its steps. Columns: row, active (lanes as bits), activity (a number in `activities`).
class Warp {
  constructor(player, { activities }) {
    Object.assign(this, { player, activities });
    this.canvas = make("canvas", { role: "img", onpointermove: (event) => this.point(event),
      onclick: (event) => this.at(event) && player.go(this.at(event).step) });
    this.legend = make("ul", { class: "legend" }, ...activities.map((activity, k) =>
      make("li", {}, make("span", { class: `swatch activity-${k}` }), activity)));
    this.title = make("p", { class: "hint" });
    this.element = panel("warp", "One warp, step by step", this.title, this.canvas, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  open({ steps, columns }) {
    this.columns = columns;
    this.steps = steps;
    const active = (columns.active ?? []).reduce((sum, mask) => sum + lanesOf(mask).length, 0);
    this.mean = steps ? (active / steps).toFixed(1) : 0;
    this.rows = (columns.row ?? []).reduce((most, row) => Math.max(most, row), 1);
    this.drawn = undefined;
  }

  // Columns of the picture are steps: a part of them if there are many.
  show(columns, step) {
    this.begin = Math.floor(step / MOST_COLUMNS) * MOST_COLUMNS;
    this.end = Math.min(this.begin + MOST_COLUMNS, this.steps);
    const part = this.end - this.begin < this.steps ? ` Shown are steps ${this.begin} to ${this.end - 1}.` : "";
    this.title.textContent = "A warp is 32 threads, its lanes. In a step, a column, the lanes that are at the same "
      + `line execute it together, and the others wait: ${this.mean} of 32 take part on average.${part} The dots below `
      + "are the line of the source, from its first to its last. Click to go to a step.";
    this.canvas.setAttribute("aria-label", `the lanes of the warp in steps ${this.begin} to ${this.end - 1}; `
      + `${this.mean} of 32 lanes take part on average`);
    this.draw();
  }

  draw() {
    const { canvas, columns, begin, end } = this;
    const width = this.canvas.clientWidth;
    if (!this.steps || !width || begin === undefined) return;
    const colours = [...this.legend.querySelectorAll(".swatch")].map((one) => getComputedStyle(one).backgroundColor);
    const ink = getComputedStyle(this.player.root).color, muted = getComputedStyle(this.title).color;
    const lane = 5, left = 26, top = 8, track = 64, scale = window.devicePixelRatio || 1;
    const side = (this.side = Math.min(14, (width - left) / (end - begin)));
    this.left = left;
    const bottom = top + WARP * lane;
    canvas.width = width * scale;
    canvas.height = (bottom + track + 14) * scale;
    canvas.style.height = `${bottom + track + 14}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = muted;
    for (const k of [0, 8, 16, 24, 31]) pen.fillText(k, left - 5, top + (k + 0.5) * lane);
    const gap = side > 4 ? 1 : 0;
    for (let step = begin; step < end; step++) {
      const x = left + (step - begin) * side;
      for (let k = 0; k < WARP; k++) {
        pen.fillStyle = colours[(columns.active[step] >>> k) & 1 ? columns.activity[step] : 0];
        pen.fillRect(x, top + k * lane, side - gap + (gap ? 0 : 0.5), lane - 0.5);
      }
      const size = step === this.player.step ? 5 : 3;
      const y = bottom + 8 + (columns.row[step] / this.rows) * (track - 12);
      pen.fillStyle = step === this.player.step ? ink : muted;
      pen.fillRect(x + (side - size) / 2, y - size / 2, size, size);
    }
    const x = left + (this.player.step - begin) * side;
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, top - 2, Math.max(side, 2) + 2 - gap, WARP * lane + 4);
    pen.beginPath();
    pen.moveTo(x + side / 2 - 5, 0);
    pen.lineTo(x + side / 2 + 5, 0);
    pen.lineTo(x + side / 2, 6);
    pen.fill();
  }

  // The step and the lane under the pointer; the lane is -1 below the lanes.
  at(event) {
    const step = this.begin + Math.floor((event.offsetX - this.left) / this.side);
    const lane = Math.floor((event.offsetY - 8) / 5);
    return step >= this.begin && step < this.end ? { step, lane: lane >= 0 && lane < WARP ? lane : -1 } : undefined;
  }

  point(event) {
    const at = this.at(event);
    if (!at) return delete this.canvas.dataset.tip;
    const { active, activity, row } = this.columns;
    const does = this.activities[(active[at.step] >>> at.lane) & 1 ? activity[at.step] : 0];
    const [, line, text] = this.player.source[row[at.step]];
    const lane = at.lane < 0 ? "" : `, lane ${at.lane}: ${does}`;
    this.canvas.dataset.tip = `step ${at.step}${lane}\nline ${line}: ${text.trim()}`;
  }
}

// What a step does, and the addresses of its requests. Columns: row, active, requests.
class Requests {
  constructor(player, { memories }) {
    Object.assign(this, { player, memories });
    this.words = make("p", { class: "status", role: "status" });
    this.lanes = make("div", { class: "lanes", role: "img" });
    this.hint = make("p", { class: "hint" });
    this.maps = make("div");
    this.jumps = { sectors: this.button("sectors", "sectors"), conflicts: this.button("conflicts", "bank conflicts") };
    this.element = panel("requests", "This step", this.words, this.lanes, this.hint, this.maps,
      make("p", { class: "buttons" }, ...Object.values(this.jumps)));
    this.element.addEventListener("pointerover", ({ target }) => this.mark(target.closest("[data-lanes]")));
    this.element.addEventListener("pointerleave", () => this.mark());
  }

  // A button that goes to the request with the most of this.
  button(name, words) {
    const title = `to the request with the most ${words}, of all warps that can be picked`;
    const jump = () => {
      const { sequence, step } = this.most(name);
      this.player.pause();
      this.player.pickSequence(sequence, step);
    };
    return make("button", { title, onclick: jump }, `Go to the most ${words}`);
  }

  // The first request with the most of this: how many, the number of its sequence, its step.
  most(name) {
    let found = { amount: 0 };
    this.player.part.sequences.forEach(({ columns }, sequence) =>
      columns.requests.forEach((requests, step) => {
        const amount = Math.max(0, ...requests.map((request) => named(request)[name]));
        if (amount > found.amount) found = { amount, sequence, step };
      }));
    return found;
  }

  open() {
    for (const [name, button] of Object.entries(this.jumps)) button.disabled = !this.most(name).amount;
  }

  show({ row, active, requests }, step) {
    const [name, line, text] = this.player.source[row[step]];
    const asked = requests[step].map(named);
    const many = asked.length ? `They make ${counted(asked.length, "request")} to memory.` : "They ask for no memory.";
    this.words.replaceChildren(make("span", {}, `Line ${line} of ${name}: `), make("code", {}, text.trim()), make("br"),
      `${lanesOf(active[step]).length} of 32 lanes take part. ${many}`);
    this.showLanes(active[step], asked);
    const sectors = asked.some((request) => request.memory) ? " Sectors are moved as a whole." : "";
    const hint = `A number is the lane that asks for an element; 2× stands for two lanes.${sectors}`;
    this.hint.textContent = asked.length ? hint : "";
    const open = this.maps.querySelector("details")?.open;
    this.maps.replaceChildren(...asked.map((request, k) => this.request(request, asked.length > 1 ? k + 1 : "")));
    if (open) for (const details of this.maps.querySelectorAll("details")) details.open = true;
  }

  showLanes(active, asked) {
    this.lanes.setAttribute("aria-label", `lanes that take part: ${lanesOf(active).join(", ")}`);
    const lanes = lanesOf(-1).map((lane) => {
      const on = (active >>> lane) & 1;
      const elements = asked.map((request) => this.elementOf(request, lane)).filter(Boolean);
      const does = on ? elements.join(", ") || "takes part" : "does not take part";
      const attributes = { class: on ? "lane on" : "lane", "data-lanes": lane, "data-tip": `lane ${lane}: ${does}` };
      return make("span", attributes, String(lane));
    });
    this.lanes.replaceChildren(...lanes);
  }

  // A request: a sentence, a map of the memory, and a table of all addresses.
  request(request, number) {
    const { kind, expression, memory, size, sectors, wavefronts, conflicts, bytes } = request;
    const verb = { load: "reads", store: "writes", atomic: "atomically changes" }[kind];
    const moved = kind === "atomic" ? "" : `, so ${withCommas(SECTOR * sectors)} bytes are moved`;
    const cost = memory
      ? `${counted(sectors, "sector")} of 32 bytes${moved}`
      : `${counted(wavefronts, "wavefront")}, ${withCommas(conflicts)} of them for bank conflicts`;
    const asked = `${counted(bytes.length, "lane")}, ${counted(bytes.length * size, "byte")} asked for; ${cost}.`;
    const read = expression ? [" for ", make("code", {}, expression)] : [];
    const words = make("p", {}, number ? `Request ${number} ${verb} ` : `The request ${verb} `,
      make("code", {}, this.memories[memory]), ...read, `: ${asked}`);
    const rows = lanesOf(request.lanes).map((lane, k) => {
      const cells = [String(lane), this.elementOf(request, lane), withCommas(bytes[k])];
      return make("tr", {}, ...cells.map((text) => make("td", {}, text)));
    });
    const head = make("thead", {}, make("tr", {}, heading("lane"), heading("element"), heading("byte")));
    const table = make("table", { class: "addresses" }, head, make("tbody", {}, ...rows));
    const details = make("details", {}, make("summary", {}, "each lane's address"), table);
    return make("div", { class: "request" }, words, this.map(request), details);
  }

  // A picture of the memory that is asked for: 128 bytes a row, with the elements and, in global memory, the sectors.
  map(request) {
    const { bytes, size, memory } = request;
    const byte = 5, high = 18; // sizes in the picture
    const lanes = new Map(); // byte -> the lanes that ask for it
    lanesOf(request.lanes).forEach((lane, k) => lanes.set(bytes[k], [...(lanes.get(bytes[k]) ?? []), lane]));
    const rows = [...new Set(bytes.map((at) => Math.floor(at / ROW)))].sort((a, b) => a - b);
    const labels = rows.map((row) => (memory
      ? `${this.firstName(memory)}[${Math.ceil((row * ROW) / size)}:${Math.ceil(((row + 1) * ROW) / size)}]`
      : `bytes ${row * ROW} to ${(row + 1) * ROW - 1}`));
    const left = 12 + 7 * Math.max(...labels.map((label) => label.length));
    const x = (at) => left + (at % ROW) * byte;
    const y = (at) => 16 + 22 * rows.indexOf(Math.floor(at / ROW));
    const heads = memory
      ? [0, 1, 2, 3].map((k) => write(x((k + 0.5) * SECTOR), 10, "sector of 32 bytes", "head"))
      : [write(x(ROW / 2), 10, "32 banks of 4 bytes, from bank 0 to bank 31", "head")];
    const lines = rows.flatMap((row, k) => [
      write(left - 6, y(row * ROW) + 13, labels[k], "label"),
      box(left, y(row * ROW), ROW * byte, high, "memory"),
    ]);
    const touched = memory ? [...new Set(bytes.map((at) => at - (at % SECTOR)))] : [];
    const sectors = touched.map((at) => {
      const tip = `sector: bytes ${at} to ${at + SECTOR - 1}, moved as a whole`;
      return box(x(at), y(at), SECTOR * byte, high, "sector", tip);
    });
    const elements = [...lanes].map(([at, asking]) => {
      const bank = memory ? "" : `\nbank ${Math.floor(at / 4) % 32}`;
      const who = asking.length > 1 ? `lanes ${asking.join(", ")}` : `lane ${asking[0]}`;
      const number = asking.length > 1 ? `${asking.length}×` : String(asking[0]);
      const shape = box(x(at) + 0.5, y(at) + 2, size * byte - 1, high - 4, "");
      const kind = asking.length > 9 ? "small" : "";
      const text = size > 2 ? [write(x(at) + (size * byte) / 2, y(at) + 13, number, kind)] : [];
      const tip = `${this.nameOf(request, at)}: ${who}${bank}`;
      return make("g", { class: "element", "data-lanes": asking.join(" "), "data-tip": tip }, shape, ...text);
    });
    return picture(left + ROW * byte + 2, 18 + 22 * rows.length, "map",
      `${counted(rows.length, "row")} of 128 bytes with the elements that lanes ask for`,
      ...heads, ...lines, ...sectors, ...elements);
  }

  // The element at a byte, as the source would name it; in shared memory, which may have many arrays, its bytes.
  nameOf({ memory, size }, byte) {
    if (memory) return `${this.firstName(memory)}[${Math.floor(byte / size)}]`;
    return size > 1 ? `bytes ${byte} to ${byte + size - 1} of shared memory` : `byte ${byte} of shared memory`;
  }

  firstName(memory) {
    return this.memories[memory].split(",")[0];
  }

  // The element that a lane asks for, if it does.
  elementOf(request, lane) {
    const place = lanesOf(request.lanes).indexOf(lane);
    return place < 0 ? undefined : this.nameOf(request, request.bytes[place]);
  }

  // Point out the lanes of an element, in the row of lanes and in the maps.
  mark(pointed) {
    const lanes = new Set(pointed?.dataset.lanes.split(" "));
    for (const element of this.element.querySelectorAll("[data-lanes]"))
      element.classList.toggle("marked", element.dataset.lanes.split(" ").some((lane) => lanes.has(lane)));
  }
}

// A request of a recording, which is a list.
function named([kind, expression, memory, size, sectors, wavefronts, conflicts, lanes, bytes]) {
  return { kind, expression, memory, size, sectors, wavefronts, conflicts, lanes, bytes };
}

// How evenly the work is spread: a bar for each block, warp or thread, or if there are many, how many did how much.
class Balance {
  constructor(player, { charts }) {
    Object.assign(this, { player, charts });
    const several = charts.find((chart) => chart.number > 1) ?? charts[0];
    this.chosen = player.chosen.balance ?? { per: several.per, of: several.of };
    this.words = make("p", { class: "hint" });
    this.chart = make("div");
    this.element = panel("balance", "Balance of the work", this.menu("of", "show"), " ", this.menu("per", "of each"),
      this.words, this.chart);
  }

  menu(name, label) {
    const values = [...new Set(this.charts.map((chart) => chart[name]))];
    return select(label, values, values.indexOf(this.chosen[name]), (number) => {
      this.player.chosen.balance = this.chosen = { ...this.chosen, [name]: values[number] };
      this.draw();
    });
  }

  open(sequence) {
    this.sequence = sequence;
    this.draw();
  }

  draw() {
    const chart = this.charts.find(({ per, of }) => per === this.chosen.per && of === this.chosen.of);
    const { per, of, number, mean, most } = chart;
    const times = mean ? `, ${(most / mean).toFixed(1)} times the mean` : "";
    const average = withCommas(Math.round(10 * mean) / 10);
    const words = `${counted(number, per)}: ${average} ${of} each on average, ${withCommas(most)} at most${times}.`;
    const [how, shapes] = chart.each ? this.bars(chart) : this.histogram(chart);
    this.words.textContent = `${words} ${how}`;
    const axis = make("line", { x1: 50, x2: 650, y1: 136, y2: 136, class: "axis" });
    this.chart.replaceChildren(picture(700, 156, "", words, ...shapes, axis));
  }

  // A bar for each.
  bars({ per, of, number, mean, each }) {
    const most = Math.max(1, ...each), side = Math.min(40, 600 / number), end = 50 + side * number;
    const own = { block: this.sequence.block, warp: this.ownWarp() }[per];
    const shapes = each.map((done, k) => {
      const [name, shown] = k === own ? ["own", ", which is shown"] : ["", ""];
      return bar(50 + k * side, side, done / most, name, `${per} ${k}${shown}: ${withCommas(done)} ${of}`);
    });
    const y = 136 - (120 * mean) / most;
    const line = make("line", { x1: 50, x2: end, y1: y, y2: y, class: "mean" });
    const texts = [
      write(44, 24, withCommas(most), "end"), write(44, 136, "0", "end"),
      write(end + 4, y + 4, "mean", "of-mean"), write(50, 150, `${per} 0 to ${per} ${number - 1}`),
    ];
    return [own === undefined ? "" : `The bar with a frame is the ${per} that is shown.`, [...shapes, line, ...texts]];
  }

  // A bar for each amount: how many did so much.
  histogram({ per, of, mean, bars, edges }) {
    const most = Math.max(...bars), side = Math.min(40, 600 / bars.length), end = 50 + side * bars.length;
    const shapes = bars.map((many, k) => {
      const [from, to] = edges.slice(k, k + 2);
      const span = to - from === 1 ? `${from + 0.5}` : `${from.toFixed(1)} to ${to.toFixed(1)}`;
      return bar(50 + k * side, side, many / most, "", `${counted(many, per)} with ${span} ${of}`);
    });
    const last = edges[edges.length - 1];
    const x = 50 + ((end - 50) * (mean - edges[0])) / (last - edges[0]);
    const line = make("line", { x1: x, x2: x, y1: 16, y2: 136, class: "mean" });
    const texts = [
      write(44, 24, withCommas(most), "end"), write(44, 136, "0", "end"), write(x, 12, "mean", "of-mean"),
      write(50, 150, "0"), write(Math.max(end, 120), 150, `${withCommas(Math.floor(last))} ${of}`, "end"),
    ];
    const how = `Each bar says how many ${per}s did so many ${of}; none is too low to be seen.`;
    return [how, [...shapes, line, ...texts]];
  }

  // The number of the warp that is shown, among those of all blocks.
  ownWarp() {
    const number = (per) => this.charts.find((chart) => chart.per === per).number;
    return this.sequence.block * (number("warp") / number("block")) + this.sequence.warp;
  }
}

// A bar over the line at 136 of a picture, up to 120 high, with a tip all over its height.
function bar(x, side, part, name, tip) {
  const high = part && Math.max(2, 120 * part);
  return make("g", { "data-tip": tip }, box(x, 16, side, 120, "behind"),
    box(x + 0.5, 136 - high, Math.max(1, side - 1), high, `bar ${name}`));
}

const VIEWS = { caption: Caption, picture: Drawing, source: Source, warp: Warp, requests: Requests, balance: Balance };
