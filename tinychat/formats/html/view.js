// What the page draws: turns, their tokens, and the alternatives to a token. Text of the model and of the person is only
// ever set as text, never as HTML, and characters that would hide or reorder it are shown by name.

const MAX_SHOWN = 5_000; // characters of one token, or of a name
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Return a text as it may be shown: without controls, and not endless. */
function shown(text) {
  const visible = (char) => {
    const code = char.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  };
  const short = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
  return short.replace(CONTROLS, visible);
}

/** Return the beginning of a text, marked with … if there is more. */
const shortened = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Return the text of a token in one line: its spaces and newlines are visible. */
function quoted(text) {
  const visible = { " ": "␣", "\n": "⏎", "\t": "⇥" };
  const short = text.length > 24 ? `${text.slice(0, 24)}…` : text;
  return shown(short.replace(/[ \n\t]/g, (char) => visible[char]));
}

/** Return a new element. Keys of `options` that begin with `on` are listeners; others are attributes; false: none. */
function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const percent = (fraction) =>
  fraction > 0 && fraction < 0.0005 ? "<0.1 %" : `${(100 * fraction).toFixed(fraction > 0 && fraction < 0.0995 ? 1 : 0)} %`;
const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Return how surprising a token was, as one of four steps: up to 1, 3 and 6 bits, and more. */
function surpriseOf(logprob) {
  const bits = -logprob / Math.LN2;
  return bits <= 1 ? 0 : bits <= 3 ? 1 : bits <= 6 ? 2 : 3;
}

const newTokens = new Map(); // an element of a token, by its attributes

/**
 * Return a new element of a token: a clone, as clones share their attributes, and there are many of them.
 *
 * One that is nothing but line breaks has no width: it has a sign where tokens are shaded, which can be tapped, too.
 */
function newToken({ text, logprob }) {
  const surprise = surpriseOf(logprob), isBreak = /^\n+$/.test(text), key = `${surprise} ${isBreak}`;
  if (!newTokens.has(key)) newTokens.set(key, make("span", { class: "token", "data-surprise": surprise, "data-break": isBreak }));
  return newTokens.get(key).cloneNode();
}

const ENDINGS = { end: "", length: "reached its length", interrupted: "stopped", told: "" };

/** A turn on the page; `actions` are called with the turn. */
class TurnView {
  constructor(turn, isChat, actions) {
    Object.assign(this, { turn, actions, drawn: 0, current: -1 });
    this.answer = make("span", { class: "answer", dir: "auto" }, shown(turn.lead));
    this.asked = make("span", { class: "asked", dir: "auto" }, shown(turn.prompt));
    this.text = make("p", {
      class: "said", tabindex: "0", role: "group", "aria-label": "Answer. Arrow keys walk through its tokens, Enter shows what else they could have been.",
      onclick: (event) => this.#onClick(event), onkeydown: (event) => this.#onKey(event),
    }); // prettier-ignore
    if (isChat) this.text.append(this.answer);
    else this.text.append(this.asked, this.answer);
    this.meta = make("div", { class: "meta" });
    this.why = make("div", { class: "why", hidden: true });
    this.element = make("article", { class: isChat ? "turn chat" : "turn story" });
    if (isChat) this.element.append(make("p", { class: "bubble" }, make("span", { class: "unseen" }, "You: "), this.asked));
    this.element.append(this.text, this.why, this.meta);
    this.update();
  }

  /** Draw what is new: tokens, the marks of changed settings, and at the end the line below. */
  update() {
    const { turn } = this;
    for (; this.drawn < turn.tokens.length; this.drawn++) {
      const token = turn.tokens[this.drawn];
      const change = turn.changes.find((one) => one.index === this.drawn && one.text);
      if (change) this.answer.append(make("span", { class: "mark", role: "note" }, change.text));
      const element = newToken(token);
      element.textContent = shown(token.text);
      this.answer.append(element);
    }
    const last = this.answer.querySelector(".token:last-of-type");
    if (last && this.drawn) last.textContent = shown(turn.tokens[this.drawn - 1].text);
    this.element.classList.toggle("speaking", turn.reason === null);
    this.#drawMeta();
  }

  /** The elements of the tokens. */
  get #elements() {
    return this.answer.querySelectorAll(".token");
  }

  /** Shade the tokens, whose log-probabilities are known by now. */
  shade() {
    this.#elements.forEach((element, i) => (element.dataset.surprise = surpriseOf(this.turn.tokens[i].logprob)));
  }

  #drawMeta() {
    const { turn, actions } = this;
    if (turn.reason === null) return this.meta.replaceChildren();
    const rate = turn.generated && turn.seconds ? `${Math.round(turn.generated / turn.seconds).toLocaleString("en")} tokens/s` : "";
    const seed = turn.generated ? `seed ${turn.seed}` : "";
    const words = [counted(turn.tokens.length, "token"), rate, ENDINGS[turn.reason], seed].filter(Boolean);
    const button = (label, title, act) => make("button", { type: "button", title, onclick: () => act(turn) }, label);
    const siblings = actions.siblings(turn), at = siblings.indexOf(turn);
    const branches = siblings.length < 2 ? null : make("span", { class: "branches" },
      make("button", { type: "button", "aria-label": "Previous answer", disabled: at === 0, onclick: () => actions.visit(siblings[at - 1]) }, "‹"),
      `${at + 1} of ${siblings.length}`,
      make("button", { type: "button", "aria-label": "Next answer", disabled: at === siblings.length - 1, onclick: () => actions.visit(siblings[at + 1]) }, "›")); // prettier-ignore
    this.meta.replaceChildren(
      ...[branches, button("Retry", "Answer again", actions.retry),
        turn.reason === "end" ? null : button("Continue", "Go on with this answer", actions.goOn),
        button("Edit", "Change the prompt and answer that", actions.edit), make("span", { class: "facts" }, words.join(" · "))]
        .filter(Boolean)); // prettier-ignore
  }

  #onClick(event) {
    const token = event.target.closest?.(".token");
    if (token && !String(getSelection())) this.#select([...this.#elements].indexOf(token), true);
  }

  #onKey(event) {
    const count = this.turn.tokens.length, steps = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count };
    if (event.target !== this.text || !count) return;
    if (event.key in steps) {
      event.preventDefault();
      this.#select(Math.max(0, Math.min(count - 1, this.current + steps[event.key])), !this.why.hidden);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#select(Math.max(0, this.current), true);
    } else if (event.key === "Escape" && !this.why.hidden) {
      event.stopPropagation();
      this.hideWhy();
    }
  }

  #select(index, opens) {
    this.answer.querySelector(".token.current")?.classList.remove("current");
    const element = this.#elements[index];
    element.classList.add("current");
    element.scrollIntoView({ block: "nearest" });
    const isSame = this.current === index && !this.why.hidden;
    this.current = index;
    const { text, logprob } = this.turn.tokens[index];
    this.actions.say(`Token ${index + 1}, ${quoted(text)}, ${percent(Math.exp(logprob))}`);
    if (isSame) this.hideWhy();
    else if (opens) this.actions.why(this.turn, index);
  }

  hideWhy() {
    if (this.why.contains(document.activeElement)) this.text.focus({ preventScroll: true });
    this.why.hidden = true;
    this.element.style.minHeight = "";
    this.answer.querySelector(".token.current")?.classList.remove("current");
  }

  /** Show what could have come at an index: `rows` of {id, text, before, after}, the likeliest first. */
  showWhy(index, rows, entropy) {
    const token = this.turn.tokens[index], bits = -token.logprob / Math.LN2;
    const most = Math.max(...rows.flatMap((row) => [row.before, row.after]));
    const bar = (kind, fraction) => {
      const inner = make("span", { class: kind });
      inner.style.width = `${(100 * fraction) / most}%`;
      return inner;
    };
    const list = rows.map((row) => {
      const isIt = row.id === token.id;
      return make("li", {}, make("button", {
        type: "button", class: isIt ? "it" : "", "aria-current": isIt ? "true" : false, onclick: () => this.actions.branch(this.turn, index, row.id),
        "aria-label": `${quoted(row.text)}: ${percent(row.before)} of the model, ${percent(row.after)} after sampling. Go on from here`,
      }, make("span", { class: "word" }, quoted(row.text)), make("span", { class: "bars" }, bar("before", row.before), bar("after", row.after)),
        make("span", { class: "share" }, percent(row.before)), make("span", { class: "share after" }, percent(row.after)))); // prettier-ignore
    });
    this.why.replaceChildren(
      make("p", {}, make("strong", {}, `“${quoted(token.text)}”`), ` was token ${index + 1}: ${percent(Math.exp(token.logprob))}, a surprise of ${bits.toFixed(1)} bits; entropy ${entropy.toFixed(1)} bits. Choose another one to go on from there.`),
      make("p", { class: "legend" }, make("span", { class: "key before" }, "the model"), " ", make("span", { class: "key after" }, "after temperature and filters")),
      make("ul", {}, ...list),
      make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.hideWhy() }, "×")); // prettier-ignore
    const lines = this.#elements[index].getClientRects();
    const bottom = (lines[0]?.bottom ?? 0) - this.element.getBoundingClientRect().top;
    const top = Math.max(0, bottom) + 8;
    this.why.style.top = `${top}px`;
    this.why.hidden = false;
    this.element.style.minHeight = `${top + this.why.offsetHeight}px`; // what follows does not cover it
    this.why.scrollIntoView({ block: "nearest" });
  }
}
