// From the text in the page to the model: base64, gzip, then a JSON header and the bytes that it describes, which
// tinychat/formats/page.py writes. They are decoded piece by piece, so that a page takes little memory beside the model.

const SLICE = 1 << 16; // characters of base64 decoded at once, a multiple of 4

class Payload {
  #reader;
  #rest = new Uint8Array(); // decompressed, but not taken yet

  /** Read the texts of a payload, which are given up one by one. */
  constructor(texts) {
    let left = "";
    const packed = new ReadableStream({
      pull(controller) {
        while (left.length < 4 && texts.length) left += texts.shift();
        if (!left) return controller.close();
        const end = Math.min(SLICE, left.length - (texts.length ? left.length % 4 : 0));
        controller.enqueue(decodeBase64(left.slice(0, end)));
        left = left.slice(end);
      },
    });
    this.#reader = packed.pipeThrough(new DecompressionStream("gzip")).getReader();
  }

  /** Read the header. */
  async readHeader() {
    const length = new DataView((await this.take(4)).buffer).getUint32(0, true);
    return JSON.parse(new TextDecoder().decode(await this.take(length)));
  }

  /** Take the next bytes and call `place(bytes, at)` with each piece of them and its place among them. */
  async read(length, place) {
    for (let at = 0; at < length; ) {
      if (!this.#rest.length) {
        const { value, done } = await this.#reader.read();
        if (done) throw new PageError("There is an end where the model should go on: this file is damaged.");
        this.#rest = value;
      }
      const piece = this.#rest.subarray(0, length - at);
      place(piece, at);
      at += piece.length;
      this.#rest = this.#rest.subarray(piece.length);
    }
  }

  /** Return the next bytes. */
  async take(length) {
    const bytes = new Uint8Array(length);
    await this.read(length, (piece, at) => bytes.set(piece, at));
    return bytes;
  }
}

function decodeBase64(text) {
  const chars = atob(text), bytes = new Uint8Array(chars.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes;
}

/** Place bytes of numbers whose first bytes come first, then all second bytes, and so on: they compress better that way. */
function placePlanes(piece, at, size, out) {
  const count = out.length / size;
  for (let i = at, end = at + piece.length; i < end; i++) out[(i % count) * size + Math.floor(i / count)] = piece[i - at];
}

const DTYPE_SIZES = { 1: 4, 2: 2, 4: 2, 5: 4, 6: 8, 7: 2, 8: 1 }; // as DTYPES in model/kernel_layout.py
const F32 = 1, BF16 = 2, INT8 = 3, F16 = 7;

/** Return numbers of a dtype as an array of floats. */
function toFloats(planes, dtype) {
  const bytes = new Uint8Array(planes.length);
  placePlanes(planes, 0, DTYPE_SIZES[dtype], bytes);
  if (dtype === F32) return new Float32Array(bytes.buffer);
  return Float32Array.from(new Uint16Array(bytes.buffer), dtype === F16 ? halfToFloat : brainToFloat);
}

function halfToFloat(half) {
  const exponent = (half >> 10) & 31, fraction = half & 1023;
  const magnitude = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
  return half >> 15 ? -magnitude : magnitude;
}

const brainBits = new Uint32Array(1), brainValue = new Float32Array(brainBits.buffer);
function brainToFloat(half) {
  brainBits[0] = half << 16;
  return brainValue[0];
}
