// The kernel (tinychat/generate/native/kernel.c, compiled to WebAssembly) and the model in its memory.

const SUPPORTED = ["temperature", "top_p", "min_p", "repetition_penalty"]; // in the order of the kernel's `Sampling`
const REQUEST_SIZE = 32 + 5 * 8 + SUPPORTED.length * 8 + 4 * 8, TENSOR_SIZE = 24;
const NUM_GENERATED = 32 + 4 * 8; // offset of the only output in a request
const PAGE_SIZE = 1 << 16; // bytes by which a memory of WebAssembly grows
const STACK_SIZE = 1 << 15; // bytes, without large arrays: several times what was ever used
const D_MODEL = 5; // index in a configuration
const MIN_ROOM = 1 << 23, GROWTH = 10; // bytes that a model takes at most: in any case, and for each in the file

/** An error whose message is meant for the person at the page. */
class PageError extends Error {}

class Kernel {
  /** Start the kernel and load the model: what follows the header of a payload. */
  static async load(header, payload) {
    let module;
    try {
      module = await WebAssembly.compile(await payload.take(header.kernel));
    } catch (error) {
      throw new PageError(`This browser cannot run the model: it lacks WebAssembly with SIMD. (${error.message})`);
    }
    try {
      const loader = await Kernel.#start(module);
      loader.exports._initialize();
      await loader.#loadModel(header, payload);
      return await loader.#compacted(module);
    } catch (error) {
      if (error instanceof RangeError) throw new PageError(`There is not enough memory for the model. (${error.message})`);
      throw error;
    }
  }

  static async #start(module) {
    const kernel = new Kernel(), imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module))
      (imports[from] ??= {})[name] = name === "clock_time_get" ? (...args) => kernel.#writeTime(...args) : () => 0;
    kernel.exports = (await WebAssembly.instantiate(module, imports)).exports;
    return kernel;
  }

  /** Return a kernel that goes on in a copy of this one's memory without what loading took: memory never shrinks. */
  async #compacted(module) {
    const kernel = await Kernel.#start(module), { memory, __stack_pointer: stack } = kernel.exports;
    const size = this.exports.trim() >>> 0;
    memory.grow(Math.max(0, size - memory.buffer.byteLength) / PAGE_SIZE);
    kernel.#array(Uint8Array, 0, size).set(this.#array(Uint8Array, 0, size));
    stack.value = this.exports.__stack_pointer.value;
    const { model, sequence, hasEncoder, contextLength, vocabSize } = this;
    return Object.assign(kernel, { model, sequence, hasEncoder, contextLength, vocabSize });
  }

  get #view() {
    return new DataView(this.exports.memory.buffer); // a new one each time: the buffer changes when memory grows
  }

  #array(Type, at, length) {
    return new Type(this.exports.memory.buffer, at, length);
  }

  #allocate(size) {
    const at = this.exports.malloc(Math.max(size, 1)) >>> 0;
    if (!at) throw new PageError("There is not enough memory for the model.");
    return at;
  }

  #writeTime(_clock, _precision, at) {
    this.#view.setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
    return 0;
  }

  async #loadModel(header, payload) {
    const parts = [], { exports } = this, { context_length, vocab_size, config } = header;
    const stackSize = STACK_SIZE + 4 * (3 * vocab_size + context_length + 64 * config[D_MODEL]); // its arrays: see kernel.c
    exports.__stack_pointer.value = this.#allocate(stackSize) + stackSize;
    // The model is made before what it is made from, so that the end of memory is free once that is given up.
    const before = exports.malloc(MIN_ROOM + GROWTH * header.parts.reduce((sum, { size }) => sum + size, 0));
    for (const part of header.parts) parts.push(await this.#loadPart(part, payload));
    exports.free(before);
    this.model = this.#withStack(header, parts, (config, tensors, count) =>
      exports.native_new_model_plain(config, tensors, count, 1));
    this.hasEncoder = Boolean(header.encoder);
    const isWhole = this.model && (!this.hasEncoder || this.#withStack(header.encoder, parts, (config, tensors, count) =>
      exports.native_add_encoder_plain(this.model, config, tensors, count))); // prettier-ignore
    for (const part of parts) exports.free(part.at);
    if (!isWhole) throw new PageError("There is not enough memory for the model, or this file is damaged.");
    this.contextLength = context_length;
    this.vocabSize = vocab_size;
    this.sequence = exports.native_new_sequence_plain(this.model); // it remembers what it has read: see begin_job
    if (!this.sequence) throw new PageError("There is not enough memory for the model's context.");
  }

  /** Call a function of the kernel with a configuration and tensors, which are `parts` by their index; −1: none. */
  #withStack({ config, tensors }, parts, call) {
    const configAt = this.#allocate(config.length * 4), tensorsAt = this.#allocate(tensors.length * TENSOR_SIZE);
    this.#array(Int32Array, configAt, config.length).set(config);
    tensors.forEach((index, i) => {
      const at = tensorsAt + i * TENSOR_SIZE, part = index < 0 ? { at: 0, dtype: 0, count: 0 } : parts[index];
      this.#view.setUint32(at, part.at, true);
      this.#view.setBigInt64(at + 8, BigInt(part.dtype), true);
      this.#view.setBigInt64(at + 16, BigInt(part.count), true);
    });
    const result = call(configAt, tensorsAt, BigInt(tensors.length));
    this.exports.free(configAt);
    this.exports.free(tensorsAt);
    return result;
  }

  /** Copy a tensor into the kernel's memory. */
  async #loadPart({ dtype, size, rows, columns, group }, payload) {
    if (group) {
      const count = rows * columns, at = this.#allocate(count + 4 * rows * Math.ceil(columns / group));
      await payload.read(count, (piece, from) => this.#array(Uint8Array, at + from, piece.length).set(piece));
      const largest = toFloats(await payload.take(size - count), dtype);
      this.#array(Uint8Array, at + count, 4 * largest.length).set(new Uint8Array(largest.buffer));
      return { at, dtype: INT8, count };
    }
    const at = this.#allocate(size), width = DTYPE_SIZES[dtype];
    await payload.read(size, (piece, from) => placePlanes(piece, from, width, this.#array(Uint8Array, at, size)));
    return { at, dtype, count: size / width };
  }

  /** Let the sequence have room for some tokens. */
  #reserve(count) {
    if (!this.exports.native_reserve_plain(this.model, this.sequence, Math.min(count, this.contextLength)))
      throw new PageError("There is not enough memory for the model's context.");
  }

  /** Let the encoder, if there is one, read a source. */
  #setSource(source, room) {
    if (!this.hasEncoder) return;
    const sourceAt = room(4 * source.length);
    this.#array(Int32Array, sourceAt, source.length).set(source);
    this.#check(this.exports.native_set_source_plain(this.model, this.sequence, sourceAt, source.length));
  }

  #check(status) {
    if (status === -2) throw new PageError("A token is unknown to the model: this file is damaged.");
    if (status === -3) throw new PageError("There is not enough memory for what the encoder reads.");
    if (status < 0) throw new PageError("The model gave numbers that are not finite: this file is damaged.");
  }

  /** Call a function with `room(size)`, which returns memory that is freed at the end. */
  #withRoom(act) {
    const buffers = [];
    try {
      return act((size) => buffers[buffers.push(this.#allocate(size)) - 1]);
    } finally {
      for (const at of buffers) this.exports.free(at);
    }
  }

  /** Write a request, `call` the kernel with it, and `read` the result; `outputs` are the sizes of what it writes. */
  #request({ ids, source, settings, random, ends, most, outputs, call, read }) {
    return this.#withRoom((room) => {
      const first = windowStart(ids.length, this.contextLength);
      this.#reserve(ids.length - first + most);
      this.#setSource(source, room);
      const at = room(REQUEST_SIZE), idsAt = room(4 * ids.length), endsAt = room(4 * ends.length);
      const outputsAt = outputs.map(room);
      this.#array(Int32Array, idsAt, ids.length).set(ids);
      this.#array(Int32Array, endsAt, ends.length).set(ends);
      const view = this.#view, pointers = [this.sequence, idsAt, endsAt, 0, ...outputsAt.slice(0, 4)];
      pointers.forEach((to, i) => view.setUint32(at + 4 * i, to, true));
      [ids.length, first, ends.length, most, 0].forEach((n, i) => view.setBigInt64(at + 32 + 8 * i, BigInt(n), true));
      SUPPORTED.forEach((name, i) => view.setFloat64(at + 72 + 8 * i, settings[name], true));
      const integers = [settings.top_k ?? 0, random.seed, random.prompt, random.position];
      integers.forEach((n, i) => view.setBigUint64(at + 72 + 8 * SUPPORTED.length + 8 * i, BigInt(n), true));
      this.#check(call(at, ...outputsAt));
      return read(at, ...outputsAt);
    });
  }

  /**
   * Generate up to `most` tokens, for `seconds` or until a token of `ends`; return [{id, logprob}].
   *
   * `source`: what a translator's encoder reads; `random`: the seed, the index of the prompt, and the number of tokens of the answer so far.
   */
  extend({ ids, source, settings, random, ends, most, seconds }) {
    return this.#request({
      ids, source, settings, random, ends, most, outputs: [4 * most, 4 * most, 0, 0],
      call: (request) => this.exports.native_extend_plain(this.model, request, 1, 0, seconds, 1),
      read: (request, sampled, logprobs) => {
        const count = Number(this.#view.getBigInt64(request + NUM_GENERATED, true));
        const logprobOf = this.#array(Float32Array, logprobs, count);
        return Array.from(this.#array(Int32Array, sampled, count), (id, i) => ({ id, logprob: logprobOf[i] }));
      },
    });
  }

  /** Return what may come next: of each token the log-probability, and the probability after penalty and filters. */
  probabilities({ ids, source, settings }) {
    const size = this.vocabSize;
    return this.#request({
      ids, source, settings, random: { seed: 0, prompt: 0, position: 0 }, ends: [], most: 1,
      outputs: [0, 0, 0, 0, 4 * size, 8 * size],
      call: (request, a, b, c, d, before, after) =>
        this.exports.native_probabilities_plain(this.model, request, before, after, 1),
      read: (request, a, b, c, d, before, after) => ({
        logprobs: this.#array(Float32Array, before, size).slice(),
        sampling: this.#array(Float64Array, after, size).slice(),
      }),
    });
  }

  /** Return the log-probability of each id from an index on, as if the model had generated them. */
  score({ ids, source, from }) {
    const logprobs = [];
    while (from < ids.length) {
      const first = windowStart(from, this.contextLength), window = ids.slice(first, first + this.contextLength + 1);
      const found = this.#withRoom((room) => {
        this.#reserve(window.length);
        this.#setSource(source, room);
        const [idsAt, logprobsAt, entropiesAt] = [room(4 * window.length), room(4 * window.length), room(4 * window.length)];
        this.#array(Int32Array, idsAt, window.length).set(window);
        this.#check(this.exports.native_score_plain(this.model, this.sequence, idsAt, window.length, logprobsAt, entropiesAt, 1));
        return this.#array(Float32Array, logprobsAt, window.length - 1).slice();
      });
      logprobs.push(...found.subarray(from - first - 1));
      from = first + window.length;
    }
    return logprobs;
  }

  /** Return the number of tokens that the model has read so far. */
  get numRead() {
    return this.#withRoom((room) => {
      const at = room(3 * 8);
      this.exports.native_count_work_plain(this.model, at);
      return Number(this.#view.getBigInt64(at, true));
    });
  }
}

/** Return the index of the first token that the model sees after `length` others; see generate/engine.py. */
function windowStart(length, contextLength) {
  if (length <= contextLength) return 0;
  const stride = Math.max(1, Math.floor(contextLength / 4));
  return Math.ceil((length - contextLength) / stride) * stride;
}
