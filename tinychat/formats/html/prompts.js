// From prompts to the ids that an answer continues: PromptEncoder of tinychat/generate/prompts.py, and ChatTemplate of
// tinychat/tokenizer/chat_template.py.

class PromptEncoder {
  constructor(header, tokenizer) {
    this.tokenizer = tokenizer;
    this.contextLength = header.context_length;
    this.template = header.template; // {user, assistant, end: ids; user_prefix, lowercase_all_caps}; null: no chat
    this.beginning = header.beginning;
    this.source = header.source; // {tokenizer, begin, end} of what an encoder reads; null: there is none
    this.sourceTokenizer = this.source ? new Tokenizer(this.source.tokenizer) : tokenizer;
  }

  /** Return whether an answer to these ids is a text of its own, instead of the rest of one. */
  beginsText(ids) {
    const isContinued = !this.template && !this.source;
    return !isContinued || ids.every((id) => this.tokenizer.spec.tokens[id] === null);
  }

  /** Return the ids that the encoder reads, cut to the context; null if there is none. */
  encodeSource(prompt) {
    if (!this.source) return null;
    const { begin, end } = this.source;
    return [...begin, ...this.sourceTokenizer.encodeStart(prompt, this.contextLength), ...end].slice(0, this.contextLength);
  }

  /** Return the ids that an answer of up to `maxTokens` continues; `turns` are those before it, {prompt, answer}. */
  encode(prompt, turns, maxTokens) {
    if (this.template) {
      const room = this.contextLength - Math.min(maxTokens, Math.floor(this.contextLength / 2));
      return this.#encodeChat([...turns, { prompt, answer: null }], room);
    }
    const ids = [...this.beginning, ...(this.source ? [] : this.tokenizer.encodeEnd(prompt, this.contextLength))];
    return ids.length ? ids : [0];
  }

  /** Encode the newest turns that fit into `room`; of a newest turn that is still too long, the end is kept. */
  #encodeChat(turns, room) {
    const { user, assistant, end } = this.template;
    const encode = (text) => this.tokenizer.encodeEnd(text, room);
    const kept = [assistant];
    let total = assistant.length;
    for (const { prompt, answer } of [...turns].reverse()) {
      const ids = [...user, ...encode(this.#normalize(prompt)), ...end];
      if (answer !== null) ids.push(...assistant, ...encode(answer), ...end);
      total += ids.length;
      if (total > room && kept.length > 1) break;
      kept.unshift(ids);
    }
    const ids = kept.flat();
    if (ids.length <= room) return ids;
    const first = room > 1 ? ids.slice(0, user.length) : [];
    return [...first, ...ids.slice(ids.length - room + first.length)];
  }

  /** Return a message as the model reads it: one all in capitals in lower case, if the model was trained so. */
  #normalize(text) {
    const isUpper = /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
    const isAllCaps = isUpper && text.match(/\p{L}/gu)?.length > 1;
    return this.template.user_prefix + (this.template.lowercase_all_caps && isAllCaps ? text.toLowerCase() : text);
  }
}
