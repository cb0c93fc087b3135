// The page: it starts the worker, keeps the conversation, and connects what a person does to both.

const MAX_TYPED = 2_000; // characters whose tokens are shown while they are typed
const MIN_ALTERNATIVES = 5, MAX_ALTERNATIVES = 10; // shown for a token; beyond the first ones, only likely ones

const WORDS = {
  chat: ["Say something", "Your message", "Send"],
  completion: ["Begin a text", "The beginning of a text, which the model continues", "Write"],
  translation: ["Type a text to translate", "A text to translate", "Translate"],
}; // by mode: placeholder and label of the text field, and the button

function startPage() {
  const at = (id) => document.getElementById(id);
  const prompt = at("prompt"), send = at("send"), status = at("status");
  const conversation = new Conversation(), views = new Map();
  let header = null, tokenizer = null, encoder = null, panel = null, worker = null;
  let speaking = null; // {job, turn, stream, version}: the answer in progress
  let jobs = 0, questions = 0, isReady = false;
  let edited = null; // the turn whose prompt is being changed
  let waiting = null; // what was sent before the model was ready
  const unscored = []; // turns said elsewhere whose tokens have no log-probabilities yet, the newest last
  const asked = new Map(); // open questions for alternatives

  const say = (text) => (status.textContent = text);

  function fail(message) {
    const failure = at("failure");
    failure.textContent = shown(message);
    failure.hidden = false;
    finish("interrupted", 0);
    isReady = false;
    showButtons();
  }

  // --- the worker ---

  function startLoading() {
    const lacking = [
      [typeof WebAssembly === "object", "WebAssembly"], [typeof Worker === "function", "web workers"],
      [typeof DecompressionStream === "function", "DecompressionStream"],
    ].find(([isThere]) => !isThere); // prettier-ignore
    if (lacking) return fail(`This browser is too old for the model in this page: it lacks ${lacking[1]}. One of 2023 or later has it.`);
    const data = at("model"), texts = Array.from(data.childNodes, (node) => node.data);
    const script = at("worker"), source = new Blob([script.textContent], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    try {
      worker = new Worker(address);
    } catch (error) {
      return fail(`This browser does not let a page compute in the background. (${error.message})`);
    }
    worker.onmessage = ({ data: message }) => handlers[message.type](message);
    worker.onerror = (event) => fail(`The model could not be started. (${event.message ?? "the worker was refused"})`);
    worker.postMessage({ type: "load", texts });
    data.remove(); // its memory is needed for the model
    script.remove();
  }

  const handlers = {
    opened({ header: read }) {
      header = read;
      tokenizer = new Tokenizer(header.tokenizer);
      encoder = new PromptEncoder(header, tokenizer);
      panel = new SettingsPanel(at("settings"), header.settings, header.help, changeSettings, closeSettings);
      describe();
      for (const [text, answer] of header.chat) tell(text, answer);
      header.chat = null;
      if (conversation.current) draw();
      scrollToEnd(false);
      prompt.disabled = false;
      prompt.focus({ preventScroll: true });
      showButtons();
    },
    ready() {
      isReady = true;
      document.body.dataset.ready = "";
      at("facts").textContent = factsOf(header);
      if (waiting) waiting();
      waiting = null;
      showButtons();
      scoreNext();
    },
    scores({ turn: number, logprobs }) {
      const turn = conversation.all[number];
      logprobs.forEach((logprob, i) => (turn.tokens[i].logprob = logprob));
      views.get(turn)?.shade();
      scoreNext();
    },
    tokens({ job, tokens, version }) {
      if (speaking?.job !== job) return;
      const { turn } = speaking;
      if (version !== speaking.version) {
        const values = valuesOf.get(version), text = differencesOf(valuesOf.get(speaking.version), values).join(" · ");
        turn.changes.push({ index: turn.tokens.length, text, values });
        speaking.version = version;
      }
      for (const { id, logprob } of tokens) speaking.stream = append(turn, id, logprob, speaking.stream);
      turn.generated += tokens.length;
      refresh(turn);
    },
    finished({ job, reason, seconds }) {
      if (speaking?.job === job) finish(reason, seconds);
    },
    odds({ number, logprobs, sampling }) {
      const { turn, index } = asked.get(number);
      asked.delete(number);
      const chosen = turn.tokens[index].id;
      turn.tokens[index].logprob ??= logprobs[chosen];
      const likeliest = [...logprobs.keys()].sort((a, b) => logprobs[b] - logprobs[a]).slice(0, MAX_ALTERNATIVES);
      const order = likeliest.filter((id, i) => i < MIN_ALTERNATIVES || Math.exp(logprobs[id]) >= 0.0005);
      if (!order.includes(chosen)) order.push(chosen);
      const rows = order.map((id) => ({ id, text: nameOf(id), before: Math.exp(logprobs[id]), after: sampling[id], logprob: logprobs[id] }));
      const entropy = logprobs.reduce((sum, logprob) => sum - (Math.exp(logprob) ? Math.exp(logprob) * logprob : 0), 0) / Math.LN2;
      for (const { id, logprob } of rows) logprobOf.set(`${turn.number}/${index}/${id}`, logprob);
      views.get(turn)?.showWhy(index, rows, entropy);
    },
    failed: ({ message }) => fail(message),
  };

  const valuesOf = new Map(); // settings by version
  const logprobOf = new Map(); // of alternatives that were shown

  const nameOf = (id) => (header.ends.includes(id) ? "(the end)" : tokenizer.tokenText(id));

  // --- answers ---

  /** Answer a prompt after `parent`. */
  function answer(text, parent) {
    const turn = new Turn(text, parent, newSeed());
    const before = header.mode === "chat" ? (parent?.path ?? []) : [];
    turn.promptIds = encoder.encode(text, before, panel.values.max_tokens);
    turn.sources = encoder.encodeSentences(text);
    begin(turn, 0);
    const unknown = text.length < LONGEST_WHOLE ? encoder.sourceTokenizer.unknown(text) : [];
    const cut = turn.sources.filter((one) => one.cut).map((one) => `“${shown(shortened(one.cut))}”`);
    const notices = [];
    if (unknown.length) notices.push(`left out, as the model does not know it: ${unknown.slice(0, 8).map(quoted).join(" ")}`);
    if (cut.length) notices.push(`longer than the model's context, so that the end is left out: ${cut.slice(0, 8).join(" ")}`);
    at("hint").dataset.notice = notices.join(" · ");
    if (notices.length) say(at("hint").dataset.notice);
    showHint();
  }

  /** Add a turn that was said elsewhere, as if it had been said here. */
  function tell(text, answer) {
    const turn = new Turn(text, conversation.current, newSeed()), before = conversation.turns;
    turn.promptIds = encoder.encode(text, header.mode === "chat" ? before : [], panel.values.max_tokens);
    turn.sources = encoder.encodeSentences(text);
    turn.number = conversation.all.length;
    turn.reason = "told";
    turn.changes.push({ index: 0, text: "", values: panel.values });
    const stream = tokenizer.stream(encoder.beginsText(turn.promptIds));
    const ids = tokenizer.encodeEnd(answer, header.context_length), tokens = ids.map((id) => ({ id, text: stream.push(id), logprob: null }));
    if (tokens.length) tokens.at(-1).text += stream.flush();
    if (tokens.map((token) => token.text).join("") === answer && turn.sources.length < 2) {
      turn.tokens = tokens;
      unscored.push(turn);
    } else {
      turn.lead = answer; // of another model, too long, or of several sentences
      turn.leadIds = ids;
    }
    conversation.add(turn);
  }

  /** Ask for the log-probabilities of a turn that was said elsewhere, while nothing else is to be done. */
  function scoreNext() {
    const turn = isReady && !speaking && unscored.pop();
    if (!turn) return;
    const ids = turn.idsBefore(turn.tokens.length), from = turn.promptIds.length;
    worker.postMessage({ type: "score", turn: turn.number, ids, source: turn.sourceAt(0), from });
  }

  /** Return a decoder for the tokens that follow those of a turn. */
  function streamAfter(turn) {
    const { sentence, tokens } = turn.sentenceBefore(turn.tokens.length);
    const stream = tokenizer.stream(encoder.beginsText([...turn.promptIds, ...(sentence ? [] : turn.leadIds)]));
    for (const token of tokens) stream.push(token.id);
    return stream;
  }

  /** Append a token to a turn, and return the decoder for what follows: after a sentence, another one. */
  function append(turn, id, logprob, stream) {
    if (!header.ends.includes(id)) {
      turn.tokens.push({ id, text: stream.push(id), logprob });
      return stream;
    }
    const rest = stream.flush(), next = turn.sentenceBefore(turn.tokens.length).sentence + 1;
    if (rest && turn.tokens.length) turn.tokens.at(-1).text += rest;
    turn.tokens.push({ id, text: turn.sources[next].space, logprob, isBreak: true });
    return streamAfter(turn);
  }

  const newSeed = () => panel.values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;

  /** Let the model go on with a turn, whose tokens so far count up to `position` in its length and random numbers. */
  function begin(turn, position) {
    stop();
    turn.number ??= conversation.all.length;
    if (!conversation.all.includes(turn)) conversation.add(turn);
    else conversation.goTo(turn);
    turn.reason = null;
    turn.changes.push({ index: turn.tokens.length, text: "", values: panel.values });
    speaking = { job: ++jobs, turn, stream: streamAfter(turn), version: panel.version, began: performance.now() };
    valuesOf.set(panel.version, panel.values);
    const index = turn.path.length - 1, length = turn.tokens.length, ids = turn.idsBefore(length);
    const sources = turn.sources.slice(turn.sentenceBefore(length).sentence).map((one) => one.ids);
    const task = { ids, beginning: turn.promptIds, sources, seed: turn.seed, prompt: index, position };
    worker.postMessage({ type: "generate", job: jobs, ...task, settings: panel.snapshot });
    draw();
    showButtons();
    scrollToEnd(true);
  }

  function stop() {
    if (!speaking) return;
    worker.postMessage({ type: "stop" });
    finish("interrupted", (performance.now() - speaking.began) / 1000);
  }

  function finish(reason, seconds) {
    if (!speaking) return;
    const { turn, stream } = speaking, rest = stream.flush();
    if (rest && turn.tokens.length) turn.tokens.at(-1).text += rest;
    turn.reason = reason;
    turn.seconds += seconds;
    speaking = null;
    refresh(turn);
    showButtons();
    say(reason === "interrupted" ? "Stopped" : `Answer: ${turn.answer.slice(0, MAX_TYPED)}`);
    scoreNext();
  }

  const actions = {
    say,
    siblings: (turn) => conversation.childrenOf(turn.parent),
    visit(turn) {
      stop();
      conversation.visit(turn);
      draw();
    },
    retry(turn) {
      answer(turn.prompt, turn.parent);
    },
    goOn(turn) {
      begin(turn, 0);
    },
    edit(turn) {
      edited = turn;
      prompt.value = turn.prompt;
      prompt.focus();
      onTyped();
      showHint();
    },
    why(turn, index) {
      if (!isReady) return;
      for (const view of views.values()) if (view.turn !== turn) view.hideWhy();
      asked.set(++questions, { turn, index });
      const ids = turn.idsBefore(index), source = turn.sourceAt(index);
      worker.postMessage({ type: "odds", number: questions, ids, source, settings: turn.settingsAt(index) });
    },
    /** Say an answer again up to a token, then another one, and go on from there: a turn beside it. */
    branch(old, index, id) {
      const turn = new Turn(old.prompt, old.parent, newSeed());
      turn.lead = old.lead;
      turn.leadIds = old.leadIds;
      turn.promptIds = old.promptIds;
      turn.sources = old.sources;
      turn.tokens = old.tokens.slice(0, index);
      turn.changes = old.changes.filter((change) => change.index < index).map((change) => ({ ...change }));
      const isEnd = header.ends.includes(id) && turn.sentenceBefore(index).sentence >= turn.sources.length - 1;
      if (!isEnd) {
        turn.changes.push({ index, text: "", values: old.settingsAt(index) });
        append(turn, id, logprobOf.get(`${old.number}/${index}/${id}`), streamAfter(turn));
        return begin(turn, index + 1);
      }
      stop();
      turn.number = conversation.all.length;
      turn.reason = "end";
      conversation.add(turn);
      draw();
    },
  };

  function changeSettings(text) {
    valuesOf.set(panel.version, panel.values);
    if (speaking) worker.postMessage({ type: "settings", settings: panel.snapshot });
    if (text) say(text);
    showHint();
  }

  // --- what is on the page ---

  const factsOf = ({ parameters, mode, tokenizer_kind, precision }) =>
    `${compact(parameters)} parameters · ${mode} · ${tokenizer_kind} · ${precision}`;

  function compact(number) {
    return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(number);
  }

  function describe() {
    at("name").textContent = shown(header.name.slice(0, 200));
    at("facts").textContent = "waking up …";
    // What stands between backticks is something to try.
    at("description").replaceChildren(...header.description.slice(0, 500).split("`").map((part, i) => {
      const text = shown(part);
      return i % 2 ? make("button", { type: "button", onclick: () => suggest(part) }, text) : text;
    })); // prettier-ignore
    const [placeholder, label] = WORDS[header.mode];
    prompt.placeholder = placeholder;
    prompt.setAttribute("aria-label", label);
    at("about-button").disabled = at("settings-button").disabled = false;
    const isWide = matchMedia("(min-width: 64rem)").matches;
    showSettings(isWide);
    showHint();
  }

  function suggest(text) {
    prompt.value = text;
    onTyped();
    prompt.focus();
  }

  function showSettings(isOpen) {
    at("settings").hidden = !isOpen;
    at("settings-button").setAttribute("aria-expanded", String(isOpen));
  }

  function openSettings() {
    showSettings(true);
    at("settings").querySelector("input").focus();
  }

  function closeSettings() {
    showSettings(false);
    at("settings-button").focus();
  }

  function showHint() {
    const { notice } = at("hint").dataset;
    at("keys").textContent = edited ? "Enter answers the changed prompt · Esc keeps the old one" : notice || "Enter sends · Shift-Enter begins a new line";
    at("summary").textContent = panel?.summary ?? "";
  }

  function showButtons() {
    const isSpeaking = Boolean(speaking);
    send.textContent = isSpeaking ? "Stop" : WORDS[header?.mode ?? "chat"][2];
    send.classList.toggle("stop", isSpeaking);
    send.disabled = !header || (!isReady && Boolean(waiting));
    at("welcome").hidden = conversation.turns.length > 0;
  }

  /** Draw the current branch. Views of turns are kept: only what is new is drawn. */
  function draw() {
    const isStory = header.mode === "completion", turns = conversation.turns;
    const focused = document.activeElement, place = [...at("turns").children].findIndex((one) => one.contains(focused));
    for (const turn of turns) {
      if (!views.has(turn)) views.set(turn, new TurnView(turn, !isStory, actions));
      views.get(turn).update();
    }
    const later = conversation.childrenOf(conversation.current);
    const tools = make("div", { class: "tools" });
    const button = (label, act, title) => tools.append(make("button", { type: "button", onclick: act, title }, label));
    if (turns.length) button("Undo", () => actions.back(), "Take the last turn back; it is kept");
    if (later.length) button("Redo", () => actions.visit(conversation.shown.get(conversation.current) ?? later.at(-1)), "Show the turn that was taken back");
    if (conversation.all.length) button("New conversation", () => actions.restart(), "Begin anew; this one is kept");
    if (turns.length) button("Download", () => download(), "Save the conversation as a text file");
    at("turns").replaceChildren(...turns.map((turn) => views.get(turn).element), tools);
    if (!focused.isConnected) returnFocus(focused, place);
    showButtons();
  }

  /** Let the button of the same name have the focus that one at a place has lost, or else the answer there. */
  function returnFocus(lost, place) {
    const label = (button) => button.getAttribute("aria-label") ?? button.textContent, parts = at("turns").children;
    const part = lost.closest(".tools") ? parts[parts.length - 1] : parts[Math.min(place, parts.length - 2)];
    const same = [...(part?.querySelectorAll("button:enabled") ?? [])].find((button) => label(button) === label(lost));
    (same ?? part?.querySelector(".said") ?? prompt).focus({ preventScroll: true });
  }

  actions.back = () => {
    stop();
    const turn = conversation.current;
    conversation.current = turn.parent;
    if (!prompt.value) prompt.value = turn.prompt;
    draw();
    onTyped();
    prompt.focus();
  };

  actions.restart = () => {
    stop();
    edited = null;
    conversation.current = null;
    draw();
    showHint();
    prompt.focus();
  };

  function refresh(turn) {
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
    views.get(turn)?.update();
    if (isAtEnd) scrollToEnd(false);
  }

  function scrollToEnd(isSmooth) {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: isSmooth ? "smooth" : "instant" });
  }

  function download() {
    const text = new Blob([conversation.toMarkdown(header.name)], { type: "text/markdown" });
    const name = header.name.replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 60) || "model";
    const link = make("a", { href: URL.createObjectURL(text), download: `${name}-conversation.md` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  /** Show the tokens of what is being typed. */
  function onTyped() {
    prompt.style.height = "auto";
    prompt.style.height = `${Math.min(prompt.scrollHeight, 200)}px`;
    const text = prompt.value, typed = at("typed");
    typed.hidden = !text;
    if (!text) return;
    const ids = encoder.sourceTokenizer.encode(text.slice(-MAX_TYPED));
    const stream = encoder.sourceTokenizer.stream();
    const chips = ids.slice(-80).map((id) => make("span", { class: "chip" }, quoted(stream.push(id)) || "·"));
    const more = text.length > MAX_TYPED ? "more than " : "";
    typed.replaceChildren(make("span", { class: "count" }, more + counted(ids.length, "token")), make("span", { class: "chips", "aria-hidden": "true" }, ...chips)); // prettier-ignore
  }

  function submit() {
    if (speaking) return stop();
    const text = prompt.value;
    if (!text.trim() && header.mode !== "completion") return;
    const parent = edited ? edited.parent : conversation.current;
    edited = null;
    prompt.value = "";
    onTyped();
    const start = () => answer(text, parent);
    if (isReady) start();
    else {
      waiting = start;
      say("The model is being loaded");
    }
    showButtons();
  }

  function openAbout() {
    const about = at("about"), { training } = header;
    const facts = [
      ["parameters", header.parameters.toLocaleString("en")], ["trained on", header.text], ["loss", training.loss?.toFixed(4)],
      ["perplexity", training.perplexity?.toFixed(2)], ["steps", training.step?.toLocaleString("en")],
    ].filter(([, value]) => value); // prettier-ignore
    const card = header.card ? drawCard(header.card) : [make("table", {}, ...facts.map(([name, value]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, shown(String(value))))))]; // prettier-ignore
    const [title, ...rest] = header.card && card[0]?.tagName === "H3" ? card : [null, ...card];
    title?.remove();
    about.replaceChildren(
      make("div", { class: "title" }, make("h2", { id: "about-title" }, `About ${shown(header.name.slice(0, 200))}`),
        make("button", { type: "button", "aria-label": "Close", onclick: () => about.close() }, "×")),
      make("div", { class: "card" }, drawCurve(header.curve) ?? "", ...rest, make("h3", {}, "Make one of your own"),
        make("p", {}, "This page was written by tinychat, a program in Python that trains such a model on any text, on a laptop, within minutes:"),
        make("pre", {}, `tinychat train my-text.txt\ntinychat export my-text --to html`)),
    ); // prettier-ignore
    about.showModal();
  }

  prompt.addEventListener("input", onTyped);
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!speaking) submit();
  });
  at("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  at("settings-button").addEventListener("click", () => (at("settings").hidden ? openSettings() : closeSettings()));
  at("about-button").addEventListener("click", openAbout);
  at("about").addEventListener("click", (event) => event.target === at("about") && at("about").close());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || at("about").open) return;
    const open = [...views.values()].find((view) => !view.why.hidden);
    if (speaking) stop();
    else if (open) open.hideWhy();
    else if (at("settings").contains(event.target)) closeSettings();
    else if (edited) {
      edited = null;
      prompt.value = "";
      onTyped();
      showHint();
    }
  });
  document.addEventListener("click", (event) => {
    for (const view of views.values()) if (!view.element.contains(event.target)) view.hideWhy();
  });
  startLoading();
}

if (typeof document !== "undefined") startPage();
