// The conversation: a tree of turns, in which the path to the current turn is what the page shows. As in
// tinychat/session/conversation.py, nothing is ever lost: retrying, editing and branching add turns beside the old ones.

class Turn {
  constructor(prompt, parent, seed) {
    Object.assign(this, { prompt, parent, seed });
    this.promptIds = []; // ids that the answer continues
    this.source = null; // ids that the encoder reads
    this.lead = ""; // beginning of the answer whose tokens are not known; its ids are among promptIds
    this.tokens = []; // {id, text, logprob}
    this.changes = []; // {index, text, values}: settings from the token at an index on; the first has no text
    this.reason = null; // why the answer ended; null while it goes on
    this.seconds = 0;
    this.generated = 0; // tokens made by the model, in this.seconds
  }

  get answer() {
    return this.lead + this.tokens.map((token) => token.text).join("");
  }

  /** Return the ids of the prompt and of the tokens before an index of the answer. */
  idsBefore(index) {
    return [...this.promptIds, ...this.tokens.slice(0, index).map((token) => token.id)];
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
