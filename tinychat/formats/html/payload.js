// From the text in the page to the model: base64, gzip, then a JSON header and the bytes that it describes.
// tinychat/formats/page.py writes the same.

/** Return the header and the bytes of a payload: {header, bytes}. */
async function readPayload(base64) {
  const text = atob(base64), packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(whole.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(whole.subarray(4, 4 + length)));
  return { header, bytes: whole.subarray(4 + length) };
}

/** Join numbers whose first bytes come first, then all second bytes, and so on: they compress better that way. */
function joinPlanes(planes, size, out) {
  const count = planes.length / size;
  for (let plane = 0; plane < size; plane++)
    for (let i = 0; i < count; i++) out[i * size + plane] = planes[plane * count + i];
}

const DTYPE_SIZES = { 1: 4, 2: 2, 4: 2, 5: 4, 6: 8, 7: 2, 8: 1 }; // as DTYPES in model/kernel_layout.py
const F32 = 1, BF16 = 2, F16 = 7;

/** Return numbers of a dtype as an array of floats. */
function toFloats(planes, dtype) {
  const size = DTYPE_SIZES[dtype], bytes = new Uint8Array(planes.length);
  joinPlanes(planes, size, bytes);
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

/**
 * Restore a matrix in int8: steps up to ±127 and, for each group of columns, the largest weight. The kernel quantizes it
 * again, to the same steps and scales: the largest weight of a group is exact, and all others are within their steps.
 */
function dequantize(steps, largest, rows, columns, group, out) {
  const groups = Math.ceil(columns / group);
  for (let row = 0, i = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, i++) {
      const highest = largest[row * groups + Math.floor(column / group)], step = steps[i];
      out[i] = step === 127 ? highest : step === -127 ? -highest : step * (highest / 127);
    }
}
