// Text to ids and back, exactly as tinychat/tokenizer/tokenizer.py: the page has its kinds `char`, `word`,
// `whitespace`, `wordpiece`, and byte-level `bpe`. Special tokens in a text are plain characters: nobody can forge the end of a message.

const LONGEST_WHOLE = 1 << 15; // characters up to which a text is encoded as a whole, if only its end is needed
const MARGIN = 16; // ids next to a cut that do not count
const CUT = /[\p{L}\p{N}](?=[ \n])|\P{White_Space}\n(?=\P{White_Space})/gu;

/** The bytes that stand for themselves in byte-level vocabularies come first, then the others (Radford et al. 2019). */
const BYTE_CHARS = (() => {
  const isPlain = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte < 0xad) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPlain(byte) ? byte : next++));
})();
const BYTE_OF_CHAR = new Map(BYTE_CHARS.map((char, byte) => [char, byte]));
const SPACE = "▁"; // stands for the space before a word, in the kind `whitespace`
const UTF8 = new TextEncoder();

class Tokenizer {
  /** `spec`: {kind, tokens, pattern, merges, ignore_merges, byte_level, normalizer}; special tokens are null. */
  constructor(spec) {
    this.spec = spec;
    this.ids = new Map();
    spec.tokens.forEach((token, id) => token !== null && this.ids.set(token, id));
    this.pattern = spec.pattern === null ? null : new RegExp(spec.pattern, "gu");
    this.ranks = new Map((spec.merges ?? []).map((pair, rank) => [pair, rank]));
    this.longest = [...this.ids.keys()].reduce((most, token) => Math.max(most, token.length), 1);
    this.cache = new Map(); // ids of pieces: few of them are most of a text
  }

  /** Return the bytes that an id stands for; a special token stands for none. */
  bytesOf(id) {
    const token = this.spec.tokens[id] ?? "", chars = [...token];
    if (this.spec.byte_level && chars.every((char) => BYTE_OF_CHAR.has(char)))
      return Uint8Array.from(chars, (char) => BYTE_OF_CHAR.get(char));
    return UTF8.encode(this.spec.kind === "whitespace" ? token.replaceAll(SPACE, " ") : token);
  }

  /** Return the ids of a text; characters that the vocabulary lacks are left out. */
  encode(text) {
    if (this.spec.kind === "char") return [...text].map((char) => this.ids.get(char)).filter((id) => id !== undefined);
    if (this.spec.normalizer) text = text.normalize(this.spec.normalizer);
    if (this.spec.kind === "whitespace") {
      const words = text.match(/\P{White_Space}+/gu) ?? [];
      return words.map((word) => this.ids.get(SPACE + word)).filter((id) => id !== undefined);
    }
    const ids = [];
    for (const piece of this.#split(text)) for (const id of this.#encodePiece(piece)) ids.push(id);
    return ids;
  }

  /** Return the last `length` ids of a text, or more; of a long text, the time depends on the length of the end alone. */
  encodeEnd(text, length) {
    for (let size = LONGEST_WHOLE; size < text.length; size *= 4) {
      const from = text.length - size;
      CUT.lastIndex = from;
      const found = CUT.exec(text), isCut = found && found.index < from + size / 2;
      const ids = this.encode(text.slice(isCut ? found.index + found[0].length : from));
      if (ids.length >= length + MARGIN) return ids.slice(-length);
    }
    return this.encode(text);
  }

  /** Return the first `length` ids of a text, or more, like `encodeEnd`. */
  encodeStart(text, length) {
    for (let size = LONGEST_WHOLE; size < text.length; size *= 4) {
      CUT.lastIndex = size / 2;
      const found = CUT.exec(text), isCut = found && found.index < size;
      const ids = this.encode(text.slice(0, isCut ? found.index + found[0].length : size));
      if (ids.length >= length + MARGIN) return ids.slice(0, length);
    }
    return this.encode(text);
  }

  /** Yield the matches of the pattern and what lies between them. */
  *#split(text) {
    if (this.pattern === null) {
      if (text) yield text;
      return;
    }
    let end = 0;
    for (const match of text.matchAll(this.pattern)) {
      if (match.index > end) yield text.slice(end, match.index);
      if (match[0]) yield match[0];
      end = match.index + match[0].length;
    }
    if (end < text.length) yield text.slice(end);
  }

  #encodePiece(piece) {
    let ids = this.cache.get(piece);
    if (ids === undefined) {
      const word = this.spec.byte_level ? Array.from(UTF8.encode(piece), (byte) => BYTE_CHARS[byte]).join("") : piece;
      ids = this.spec.kind === "wordpiece" ? this.#longestMatches(word) : this.#merge(word);
      if (this.cache.size < 1 << 16) this.cache.set(piece, ids);
    }
    return ids;
  }

  /** Take the longest known token, again and again (Wu et al. 2016); none of a word that cannot be spelled so. */
  #longestMatches(word) {
    const ids = [];
    for (let start = 0, end; start < word.length; start = end) {
      for (end = Math.min(word.length, start + this.longest); end > start; end--) {
        const id = this.ids.get(word.slice(start, end));
        if (id !== undefined) {
          ids.push(id);
          break;
        }
      }
      if (end === start) return [];
    }
    return ids;
  }

  /** Merge the pair of the lowest rank, again and again (Sennrich et al. 2016). */
  #merge(word) {
    if (this.spec.ignore_merges && this.ids.has(word)) return [this.ids.get(word)];
    const parts = [...word].filter((part) => this.ids.has(part));
    while (parts.length > 1) {
      let best = Infinity, at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) break;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
    return parts.map((part) => this.ids.get(part));
  }

  /** Return the text of ids; special tokens have none, and bytes that form no character become U+FFFD. */
  decode(ids) {
    const stream = this.stream();
    return ids.map((id) => stream.push(id)).join("") + stream.flush();
  }

  /** Return a decoder for ids that come one at a time, and begin a text or go on with one. */
  stream(beginsText = true) {
    return new ByteStream(this, beginsText && this.spec.kind === "whitespace");
  }

  /** Return the text of a single token; bytes that are only a part of a character are shown as `\xe4`. */
  tokenText(id) {
    const bytes = this.bytesOf(id);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join("");
    }
  }

  /** Return the characters, or for `whitespace` the words, that the vocabulary lacks, each once. */
  unknown(text) {
    if (this.spec.kind === "whitespace")
      return [...new Set(text.match(/\P{White_Space}+/gu))].filter((word) => !this.encode(word).length);
    return [...new Set(text)].filter((char) => this.decode(this.encode(char)) !== char);
  }
}

/** Decodes tokens that each stand for some bytes of UTF-8. */
class ByteStream {
  /** `skipsSpace`: the first token loses the space that it begins with. */
  constructor(tokenizer, skipsSpace) {
    this.tokenizer = tokenizer;
    this.skips = skipsSpace ? 1 : 0;
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    this.tail = []; // the last three bytes
  }

  /** Return the text that a token adds; empty while a character is incomplete, which `pending` tells. */
  push(id) {
    let bytes = this.tokenizer.bytesOf(id);
    if (this.skips && bytes.length) [bytes, this.skips] = [bytes.slice(1), 0];
    this.tail = [...this.tail, ...bytes.slice(-3)].slice(-3);
    return this.decoder.decode(bytes, { stream: true });
  }

  /** Whether the bytes so far end inside a character. */
  get pending() {
    const lengths = [[0xf0, 0xf4, 4], [0xe0, 0xef, 3], [0xc2, 0xdf, 2]]; // prettier-ignore
    const seconds = { 0xe0: [0xa0, 0xbf], 0xed: [0x80, 0x9f], 0xf0: [0x90, 0xbf], 0xf4: [0x80, 0x8f] };
    for (let back = 1; back <= this.tail.length; back++) {
      const lead = this.tail.at(-back), second = this.tail.at(1 - back);
      if ((lead & 0xc0) === 0x80) continue;
      const length = lengths.find(([low, high]) => lead >= low && lead <= high)?.[2] ?? 1;
      const [low, high] = seconds[lead] ?? [0x80, 0xbf];
      return length > back && (back === 1 || (second >= low && second <= high));
    }
    return false;
  }

  /** Return what is left at the end: a character that was never completed, as U+FFFD. */
  flush() {
    this.tail = [];
    return this.decoder.decode();
  }
}
