// The conversation: a tree of turns, in which the path to the current turn is what the page shows. As in
// tinychat/session/conversation.py, nothing is ever lost: retrying, editing and branching add turns beside the old ones.

class Turn {
  constructor(prompt, parent, seed) {
    Object.assign(this, { prompt, parent, seed });
    this.promptIds = []; // ids that the answer continues
    this.sources = []; // sentences that an encoder reads, one after the other; see PromptEncoder.encodeSentences
    this.lead = ""; // beginning of the answer whose tokens are not known
    this.leadIds = []; // ids of the lead, for the model
    this.tokens = []; // {id, text, logprob, isBreak}; `isBreak`: it ends the translation of a sentence, and others follow
    this.changes = []; // {index, text, values}: settings from the token at an index on; the first has no text
    this.reason = null; // why the answer ended; null while it goes on
    this.seconds = 0;
    this.generated = 0; // tokens made by the model, in this.seconds
  }

  get answer() {
    return this.lead + this.tokens.map((token) => token.text).join("");
  }

  /** Return the index of the sentence that the token at an index translates, and the tokens of that sentence before it. */
  sentenceBefore(index) {
    const before = this.tokens.slice(0, index), first = before.findLastIndex((token) => token.isBreak) + 1;
    return { sentence: before.filter((token) => token.isBreak).length, tokens: before.slice(first) };
  }

  /** Return the ids that the model reads before the token at an index: of a translation, those of a single sentence. */
  idsBefore(index) {
    const { sentence, tokens } = this.sentenceBefore(index);
    return [...this.promptIds, ...(sentence ? [] : this.leadIds), ...tokens.map((token) => token.id)];
  }

  /** Return the ids that the encoder reads for the token at an index; null without an encoder. */
  sourceAt(index) {
    return this.sources[this.sentenceBefore(index).sentence]?.ids ?? null;
  }

  /** Return the settings that the token at an index was drawn with. */
  settingsAt(index) {
    return this.changes.findLast((change) => change.index <= index)?.values;
  }

  get path() {
    const path = [];
    for (let turn = this; turn; turn = turn.parent) path.unshift(turn);
    return path;
  }
}

class Conversation {
  constructor() {
    this.all = [];
    this.current = null;
    this.shown = new Map(); // the child that was last seen, by turn: where going forward leads
  }

  get turns() {
    return this.current?.path ?? [];
  }

  /** Add a turn after `parent` and make it the current one. */
  add(turn) {
    this.all.push(turn);
    this.goTo(turn);
  }

  goTo(turn) {
    this.current = turn;
    for (const one of turn?.path ?? []) this.shown.set(one.parent, one);
  }

  /** Show a turn and what last followed it. */
  visit(turn) {
    while (this.childrenOf(turn).length) turn = this.shown.get(turn) ?? this.childrenOf(turn).at(-1);
    this.goTo(turn);
  }

  childrenOf(turn) {
    return this.all.filter((one) => one.parent === turn);
  }

  /** Return the current branch as Markdown. */
  toMarkdown(name) {
    const quote = (text) => text.replace(/^/gm, "> ");
    const turns = this.turns.map((turn) => `${quote(turn.prompt)}\n\n${turn.answer}\n`);
    return `# A conversation with ${name}\n\n${turns.join("\n")}`;
  }
}
