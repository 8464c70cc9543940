// The charts of a load test: lines over load or over time, with bands for intervals.
"use strict";

const LATENCIES = [
  ["ttft_s", "TTFT", "--accent"],
  ["itl_s", "ITL", "--passed"],
  ["tpot_s", "TPOT", "--regressed"],
  ["e2e_s", "E2E", "--crashed"],
];
const seconds = (value) => (value === null || value === undefined ? "–" : format.ns(value * 1e9));
const latency = (point, key, name) => (point[key].count ? seconds(point[key][name].value) : "–");
const plain = (value) => (value === null || value === undefined ? "–" : format.significant(value));
const interval = (figure, text) =>
  figure.lo === null || figure.hi === null ? "" : `${text(figure.lo)} – ${text(figure.hi)}`;

// Lines over a common x, each with a band where it has an interval; a readout follows the pointer.
function drawLines(host, width, {x, y, lines}) {
  const xs = x.values;
  const data = [xs];
  const series = [{}];
  const bands = [];
  const known = [];
  for (const line of lines) {
    const color = themeColor(line.color);
    data.push(line.values);
    series.push({
      stroke: color,
      width: 2,
      dash: line.dashed ? [6, 5] : undefined,
      spanGaps: true,
      points: {show: Boolean(line.dots), size: 6, fill: color},
    });
    known.push(...line.values);
    if (!line.lo) continue;
    data.push(line.hi, line.lo);
    known.push(...line.hi, ...line.lo);
    series.push(
      {stroke: "transparent", points: {show: false}},
      {stroke: "transparent", points: {show: false}},
    );
    bands.push({
      series: [series.length - 2, series.length - 1],
      fill: color.replace("rgb(", "rgba(").replace(")", ", 0.16)"),
    });
  }
  const values = known.filter((value) => value !== null && value !== undefined && value > 0);
  const most = values.length ? Math.max(...values) : 1;
  const least = values.length ? Math.min(...values) : 1;
  const lowDecade = Math.floor(Math.log10(least));
  const decadesOfY = [10 ** lowDecade, 10 ** Math.max(lowDecade + 1, Math.ceil(Math.log10(most)))];
  const describe = (index) =>
    `${x.name} ${x.text(xs[index])}: ` +
    lines.map((line) => `${line.name} ${y.text(line.values[index] ?? null)}`).join(", ");
  const readout = el("p", {class: "note readout"}, describe(xs.length - 1));
  const logX = x.log && xs[0] > 0 && xs.at(-1) / xs[0] >= 4;
  const pad = logX ? 1.12 : (xs.at(-1) - xs[0]) * 0.03 || 0.5;
  plot(host, {
    width,
    height: 260,
    x: {
      label: x.label,
      text: x.text,
      log: logX ? 2 : undefined,
      range: logX ? [xs[0] / pad, xs.at(-1) * pad] : [xs[0] - pad, xs.at(-1) + pad],
      splits: x.splits ? thinned(xs, width, logX) : undefined,
    },
    y: {
      label: y.label,
      text: (value) => y.tick(value),
      log: y.log ? 10 : undefined,
      range: y.log ? decadesOfY : [0, most * 1.08],
      splits: y.log ? decades(decadesOfY) : undefined,
      size: 62,
    },
    data,
    series,
    bands,
    draw() {},
    onMove(u) {
      if (u.cursor.idx !== null && u.cursor.idx !== undefined) readout.textContent = describe(u.cursor.idx);
    },
    label: `${y.label} over ${x.label}: ${describe(0)}; ${describe(xs.length - 1)}`,
  });
  host.append(readout);
}

// Loads that have room for their number.
function thinned(xs, width, log) {
  const at = (value) => (log ? Math.log(value) : value);
  const span = at(xs.at(-1)) - at(xs[0]) || 1;
  const kept = [];
  for (const value of xs) {
    if (!kept.length || ((at(value) - at(kept.at(-1))) / span) * (width - 90) > 38) kept.push(value);
  }
  return kept;
}
