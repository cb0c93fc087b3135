// From prompts to the ids that an answer continues: PromptEncoder of tinychat/generate/prompts.py, and ChatTemplate of
// tinychat/tokenizer/chat_template.py.

const WHITE = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`; // as in Python, unlike \s
const NOT_WHITE = new RegExp(`[^${WHITE}]`, "u");
const ABBREVIATIONS = new Set([
  "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "approx", "e.g", "i.e",
  "sra", "srta", "sres", "dra", "dña", "ud", "uds", "vd", "vds", "av", "avda", "núm", "pág", "tel", "p.ej", "ej",
]); // prettier-ignore
const BREAK = new RegExp(
  `(?<![.!?…])(?<mark>[.!?…]+)["'”’»)\\]]*(?<space>[${WHITE}]+)|(?<![${WHITE}])[${WHITE}]*\\n[${WHITE}]*`, "gu"); // prettier-ignore

/** Split a text to translate into sentences and lines, [{space, text}]: split_sentences of tinychat/generate/prompts.py. */
function splitSentences(text) {
  const sentences = [];
  let start = 0, space = "";
  for (const [end, begin] of breaksOf(text)) {
    if (!NOT_WHITE.test(text.slice(start, end)) || !NOT_WHITE.test(text.slice(begin))) continue;
    sentences.push({ space, text: text.slice(start, end) });
    [start, space] = [begin, text.slice(end, begin)];
  }
  return [...sentences, { space, text: text.slice(start) }];
}

/** Yield where sentences end, and where the next ones begin. */
function* breaksOf(text) {
  for (const found of text.matchAll(BREAK)) {
    const { mark, space } = found.groups, { index } = found, end = index + found[0].length;
    if (mark === undefined) yield [index, end];
    else {
      const from = Math.max(text.lastIndexOf(" ", index), text.lastIndexOf("\n", index)) + 1;
      const before = text.slice(from, index).replace(/^[("'“‘«¿¡]+/u, "").toLowerCase();
      const isInitial = /^\p{L}$/u.test(before) && before !== "i";
      const goesOn = mark === "." && (ABBREVIATIONS.has(before) || isInitial);
      if (space.includes("\n") || !goesOn) yield [end - space.length, end];
    }
  }
}

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

  /**
   * Return the sentences of a prompt as the encoder reads them, one after the other; none without an encoder.
   *
   * They are {ids, space, cut}: `space` stands between the translation and the one before; `cut` is the sentence if it is
   * longer than the context, so that its end is not read, else empty.
   */
  encodeSentences(prompt) {
    if (!this.source) return [];
    const { begin, end } = this.source, { contextLength } = this;
    return splitSentences(prompt).map(({ space, text }) => {
      const ids = [...begin, ...this.sourceTokenizer.encodeStart(text, contextLength), ...end];
      return { ids: ids.slice(0, contextLength), space, cut: ids.length > contextLength ? text : "" };
    });
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
