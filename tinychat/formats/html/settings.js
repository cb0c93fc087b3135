// The settings: sliders and fields that act on the very next token, and what they are called in the marks of a change.

const CONTROLS_OF_PAGE = {
  temperature: { label: "Temperature", min: 0, max: 2, step: 0.05, low: 0, high: 100 },
  top_p: { label: "Top-p", min: 0.05, max: 1, step: 0.01, low: 0.001, high: 1 },
  top_k: { label: "Top-k", min: 0, max: 100, step: 1, low: 0, high: 2 ** 31, off: 0 },
  min_p: { label: "Min-p", min: 0, max: 0.5, step: 0.01, low: 0, high: 1 },
  repetition_penalty: { label: "Repetition penalty", min: 1, max: 2, step: 0.01, low: 0.01, high: 100 },
  max_tokens: { label: "Length in tokens", min: 1, max: 1000, step: 1, low: 1, high: 2 ** 31 },
};
const MAX_SEED = Number.MAX_SAFE_INTEGER, MAX_PAUSE = 1000; // milliseconds between tokens in slow motion

/** Return what changed between two values of the settings, each in a few words. */
function differencesOf(before, after) {
  const changed = Object.entries(CONTROLS_OF_PAGE).filter(([name]) => before[name] !== after[name]);
  return changed.map(([name, { label }]) => `${label.toLowerCase()} ${before[name] ?? "off"} → ${after[name] ?? "off"}`);
}

class SettingsPanel {
  /** `help` of each setting: what it does, and its trend; `onchange(text)` is called after each change. */
  constructor(panel, initial, help, onchange, onclose) {
    Object.assign(this, { initial, onchange, values: { ...initial }, slow: 0, version: 0 });
    this.lastTemperature = initial.temperature || 0.8;
    this.inputs = {};
    const rows = Object.entries(CONTROLS_OF_PAGE).map(([name, control]) => this.#row(name, control, help[name]));
    this.greedy = this.#switch("Greedy", "always the likeliest token", (on) =>
      this.set("temperature", on ? 0 : this.lastTemperature));
    this.pause = make("input", { type: "range", min: 0, max: MAX_PAUSE, step: 50, value: 0, "aria-label": "Slow motion", oninput: () => this.#setPause() }); // prettier-ignore
    this.pauseShown = make("output", {}, "off");
    this.seed = make("input", { type: "text", inputmode: "numeric", placeholder: "a new one each time", id: "seed", oninput: () => this.#setSeed() }); // prettier-ignore
    this.shade = this.#switch("Shade by surprise", "the darker, the less the model expected the token", (on) =>
      document.body.classList.toggle("shaded", on));
    const legend = make("p", { class: "shades", "aria-hidden": "true" },
      ...["1 bit", "3 bits", "6 bits", "more"].map((text, i) => make("span", { class: "token", "data-surprise": i }, i < 3 ? `≤ ${text}` : text))); // prettier-ignore
    panel.replaceChildren(
      make("div", { class: "panel-head" }, make("h2", {}, "Settings"), make("button", { type: "button", onclick: onclose }, "Done")),
      make("p", { class: "note" }, "They act on the next token, also while the model speaks."),
      ...rows.slice(0, 1), this.greedy.row, ...rows.slice(1),
      make("div", { class: "setting" }, make("label", { for: "seed" }, "Seed"), this.seed, make("p", { class: "help" }, "The same seed gives the same answer to the same prompt.")),
      make("div", { class: "setting" }, make("div", { class: "head" }, make("span", {}, "Slow motion"), this.pauseShown), this.pause),
      this.shade.row, legend,
      make("button", { type: "button", onclick: () => this.reset() }, "Reset"),
    ); // prettier-ignore
    this.#show();
  }

  #row(name, control, [about, trend]) {
    const range = make("input", { type: "range", min: control.min, max: control.max, step: control.step, "aria-label": control.label, oninput: () => this.set(name, Number(range.value)) }); // prettier-ignore
    const field = make("input", { type: "number", min: control.low, max: control.high, step: "any", "aria-label": `${control.label}, exactly`, onchange: () => this.set(name, Number(field.value)) }); // prettier-ignore
    this.inputs[name] = { range, field };
    const text = trend ? `${about}; ${trend}` : about;
    return make("div", { class: "setting" },
      make("div", { class: "head" }, make("span", {}, control.label), field), range, make("p", { class: "help" }, shown(text))); // prettier-ignore
  }

  #switch(label, about, act) {
    const box = make("input", { type: "checkbox", role: "switch", onchange: () => act(box.checked) });
    return { box, row: make("label", { class: "switch" }, box, make("span", {}, label, make("small", {}, about))) };
  }

  /** Set a value, within its bounds. */
  set(name, value) {
    const { low, high, step } = CONTROLS_OF_PAGE[name], before = this.values;
    if (!Number.isFinite(value)) return this.#show();
    let clamped = Math.min(high, Math.max(low, value));
    if (step === 1) clamped = Math.round(clamped);
    const stored = name === "top_k" && clamped === 0 ? null : clamped;
    this.values = { ...this.values, [name]: stored };
    if (name === "temperature" && stored > 0) this.lastTemperature = stored;
    this.#show();
    if (stored !== before[name]) this.#changed(differencesOf(before, this.values).join());
  }

  #setSeed() {
    const text = this.seed.value.trim(), number = Number(text);
    const isSeed = /^\d+$/.test(text) && number <= MAX_SEED;
    this.seed.setAttribute("aria-invalid", String(Boolean(text) && !isSeed));
    this.values = { ...this.values, seed: isSeed ? number : null };
    this.#show();
  }

  #setPause() {
    this.slow = Number(this.pause.value);
    this.pauseShown.textContent = this.slow ? `${(this.slow / 1000).toFixed(2)} s a token` : "off";
    this.#changed("");
  }

  reset() {
    const changed = Object.keys(CONTROLS_OF_PAGE).some((name) => this.values[name] !== this.initial[name]);
    this.values = { ...this.initial };
    this.lastTemperature = this.initial.temperature || 0.8;
    this.seed.value = this.initial.seed ?? "";
    this.#show();
    if (changed) this.#changed("settings reset");
  }

  #changed(text) {
    this.version++;
    this.onchange(text);
  }

  #show() {
    for (const [name, { range, field }] of Object.entries(this.inputs)) {
      const value = this.values[name] ?? CONTROLS_OF_PAGE[name].off;
      range.value = value;
      field.value = Number(value.toFixed?.(4) ?? value);
    }
    this.greedy.box.checked = this.values.temperature === 0;
  }

  /** What the worker needs: the values, their version, and the pause between tokens. */
  get snapshot() {
    return { values: this.values, version: this.version, slow: this.slow };
  }

  /** Return the settings in a few words. */
  get summary() {
    const { temperature, top_p, top_k, min_p, repetition_penalty, max_tokens, seed } = this.values;
    const words = [temperature ? `temperature ${temperature}` : "greedy", top_p < 1 && temperature ? `top-p ${top_p}` : "",
      top_k ? `top-k ${top_k}` : "", min_p ? `min-p ${min_p}` : "", repetition_penalty !== 1 ? `penalty ${repetition_penalty}` : "",
      `up to ${max_tokens} tokens`, seed === null ? "" : `seed ${seed}`]; // prettier-ignore
    return words.filter(Boolean).join(" · ");
  }
}
