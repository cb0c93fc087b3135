// About this model: its card, read from Markdown, and its loss curve, as elements without any HTML of others.

const MAX_CARD = 200_000, MAX_POINTS = 2_000; // characters, points of a curve

/** Return the parts of a card: [{kind: "heading" | "text" | "code" | "rows", ...}]. */
function readCard(text) {
  const parts = [];
  const extend = (kind, line) => {
    const last = parts.at(-1);
    if (last?.kind === kind && !last.isClosed) last.lines.push(line);
    else parts.push({ kind, lines: [line] });
  };
  for (const line of text.slice(0, MAX_CARD).split("\n")) {
    const heading = line.match(/^#{1,6} (.*)/);
    if (heading) parts.push({ kind: "heading", lines: [heading[1]] });
    else if (line.startsWith("    ")) extend("code", line.slice(4));
    else if (/^\| *(-+ *\| *)+$/.test(line) || /^[| ]+$/.test(line)) {
      if (!line && parts.length) parts.at(-1).isClosed = true;
    } else if (line.startsWith("|")) extend("rows", line.slice(1).replace(/\|\s*$/, ""));
    else if (/^(---|\*\*\*)$/.test(line)) parts.push({ kind: "line", lines: [] });
    else if (line.trim()) extend("text", line);
    else if (parts.length && parts.at(-1).kind !== "code") parts.at(-1).isClosed = true;
    else if (parts.length) parts.at(-1).lines.push("");
  }
  return parts;
}

/** Return elements that show a card. */
function drawCard(text) {
  return readCard(text).slice(0, 500).map(({ kind, lines }) => {
    if (kind === "heading") return make("h3", {}, shown(lines[0]));
    if (kind === "code") return make("pre", {}, shown(lines.join("\n").trimEnd()));
    if (kind === "line") return make("hr");
    if (kind === "text") return make("p", {}, shown(lines.join(" ").replaceAll("`", "")));
    const rows = lines.map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|").replaceAll("`", "")));
    return make("table", {}, ...rows.map(([name = "", ...cells]) =>
      make("tr", {}, name ? make("th", { scope: "row" }, shown(name)) : make("td"), ...cells.map((cell) => make("td", {}, shown(cell)))))); // prettier-ignore
  });
}

/** Return a picture of the training and validation loss by step; null if there is no curve. */
function drawCurve(curve) {
  const lines = ["training", "validation"].map((name) => [name, (curve[name] ?? []).slice(0, MAX_POINTS)]);
  const points = lines.flatMap(([, line]) => line).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  if (points.length < 2) return null;
  const width = Math.min(560, innerWidth - 80), height = 60 + 0.3 * width, left = 40, bottom = 28; // its letters keep their size
  const steps = points.map(([step]) => step), losses = points.map(([, loss]) => loss);
  const last = Math.max(...steps, 1), high = Math.max(...losses), low = Math.min(...losses, high * 0.9);
  const x = (step) => left + (step / last) * (width - left - 8);
  const y = (loss) => 8 + ((high - loss) / (high - low || 1)) * (height - bottom - 16);
  const picture = drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "curve" });
  picture.append(drawing("title", {}, `Loss by step: from ${high.toFixed(2)} to ${low.toFixed(2)}`));
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const loss = low + part * (high - low), at = y(loss);
    picture.append(drawing("line", { x1: left, x2: width - 8, y1: at, y2: at, class: "grid" }));
    picture.append(drawing("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, loss.toFixed(2)));
  }
  for (const part of [0, 0.5, 1]) {
    const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
    const label = Math.round(part * last).toLocaleString("en") + (part === 1 ? " steps" : "");
    picture.append(drawing("text", { x: x(part * last), y: height - 6, "text-anchor": anchor }, label));
  }
  for (const [name, line] of lines) {
    const path = line.map(([step, loss]) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
    if (line.length) picture.append(drawing("polyline", { points: path, class: name }));
  }
  return make("figure", {}, picture,
    make("figcaption", {}, make("span", { class: "key training" }, "training"), " ",
      make("span", { class: "key validation" }, "validation: text that it never saw"))); // prettier-ignore
}

function drawing(name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}
