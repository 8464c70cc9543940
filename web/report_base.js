// What every part of the report uses: building elements, writing numbers, the statuses, the theme's colours.
"use strict";

const STATUS = {
  passed: {words: "passed", glyph: "✓", order: 5},
  no_gain: {words: "no gain", glyph: "≈", order: 4},
  regressed: {words: "regressed", glyph: "↓", order: 3},
  wrong: {words: "wrong", glyph: "✕", order: 0},
  crashed: {words: "crashed", glyph: "!", order: 1},
  timed_out: {words: "timed out", glyph: "◷", order: 2},
  skipped: {words: "skipped", glyph: "–", order: 6},
};

const BACKEND_WORDS = {cuda: "GPU", cpu: "CPU", ranks: "ranks"};

// Children that are strings become text nodes, so no value is ever parsed as markup.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""),
  );
  return node;
}

const format = {
  significant(value, digits = 3) {
    if (value === null || value === undefined) return "not finite";
    if (value === 0) return "0";
    const magnitude = Math.abs(value);
    if (magnitude < 1e-3 || magnitude >= 1e9) return value.toExponential(digits - 1);
    if (magnitude >= 1000) return Math.round(value).toLocaleString("en-US");
    return value.toPrecision(digits);
  },
  // A count short enough for a cell: 4.10e+9 where its digits would say no more.
  short: (value) => (Math.abs(value) >= 1e5 ? value.toExponential(2) : format.significant(value)),
  // Two decimals, three where 1 is near and the third decides.
  factor: (value, near = 2) =>
    value < 0.1 || value >= 10 ? format.significant(value) : value.toFixed(value < near ? 3 : 2),
  ratio: (value) => `${format.factor(value, 0)}×`,
  interval: ({lo, hi}) =>
    lo === null || hi === null ? "interval not known" : `${format.factor(lo)} – ${format.factor(hi)}`,
  // One value, or the two ends of a range in the unit that fits the larger.
  scaled(values, units) {
    const [size, name] = units.find(([unit]) => Math.abs(values.at(-1)) >= unit * 0.9995) ?? units.at(-1);
    return `${values.map((value) => format.significant(value / size)).join(" – ")} ${name}`;
  },
  ns: (...values) =>
    format.scaled(values, [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
      [1, "ns"],
    ]),
  bytes: (value) =>
    format.scaled(
      [value],
      [
        [2 ** 40, "TiB"],
        [2 ** 30, "GiB"],
        [2 ** 20, "MiB"],
        [1024, "KiB"],
        [1, "B"],
      ],
    ),
  gb: (value) =>
    value >= 1000 ? `${format.significant(value / 1000)} TB/s` : `${format.significant(value)} GB/s`,
  gflop: (value) =>
    value >= 1000 ? `${format.significant(value / 1000)} TFLOP/s` : `${format.significant(value)} GFLOP/s`,
  percent: (value) => `${value >= 10 ? Math.round(value) : format.significant(value, 2)}%`,
  utc: (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 16) + " UTC",
};

// A result with what its readers ask for: what it is judged by, and the two sides of that.
function readResult(result, index, unwitnessed) {
  const headline =
    result.comparisons.findLast((comparison) => comparison.kind === "total") ?? result.comparisons[0] ?? null;
  const side = (name) => result.sides.find((candidate) => candidate.name === name);
  return Object.assign(result, {
    index,
    unwitnessed,
    headline,
    first: headline ? side(headline.from) : null,
    best: headline ? side(headline.to) : null,
    ladder: result.sides.some((candidate) => candidate.role === "rung"),
    samples: result.sides.reduce((sum, candidate) => sum + candidate.samples, 0),
  });
}

// Only a verified result has figures: a fast wrong answer has none.
function hasFigures(result) {
  return (
    result.headline !== null &&
    result.headline.speedup.value > 0 &&
    ["passed", "no_gain", "regressed"].includes(result.status)
  );
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + ".";

const isFailure = (result) => ["wrong", "crashed", "timed_out", "regressed"].includes(result.status);

function sweepLabel(result) {
  const value = result.knobs[result.sweep_key];
  return value === undefined ? "" : `${result.sweep_key}=${value}`;
}

const anchorOf = (result) =>
  [result.id, result.ranks ? placeOf(result) : result.backend, sweepLabel(result)].filter(Boolean).join("/");
const linkTo = (result) => "#" + encodeURIComponent(anchorOf(result));

function statusBadge(status) {
  return el(
    "span",
    {class: `badge s-${status}`},
    el("span", {class: "glyph", "aria-hidden": "true"}, STATUS[status].glyph),
    STATUS[status].words,
  );
}

// Where a result comes from: a backend, or so many ranks and what carried their bytes.
const placeOf = ({backend, ranks}) =>
  ranks
    ? `${ranks.count} ${ranks.count === 1 ? "rank" : "ranks"} (${ranks.transport})`
    : (BACKEND_WORDS[backend] ?? backend);

const backendTag = (result) => el("span", {class: `tag b-${result.backend}`}, placeOf(result));

// A custom property's colour as a canvas understands it, for the theme in force.
function themeColor(name) {
  const probe = el("span", {style: {color: `var(${name})`, display: "none"}});
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

function section(id, title, note, ...content) {
  return el(
    "section",
    {id, "aria-labelledby": `${id}-title`},
    el("h2", {id: `${id}-title`}, title),
    note ? el("p", {class: "note"}, note) : null,
    ...content,
  );
}
