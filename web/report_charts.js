// The charts: rows of HTML where each target needs its name beside it, uPlot where two axes are needed.
"use strict";

const ROWS_SHOWN = 32;

// One line of a row chart: name, track, value. `track` holds elements positioned by percentages.
function chartRow(result, track, value, hidden) {
  const demo =
    result.kind === "demonstration"
      ? el("span", {class: "tag demo", title: "its baseline exists to teach"}, "demo")
      : null;
  return el(
    "li",
    {class: `row s-${result.status}${hidden ? " beyond" : ""}`},
    el(
      "a",
      {class: "name", href: linkTo(result)},
      el("span", {class: "glyph", title: STATUS[result.status].words}, STATUS[result.status].glyph),
      el("span", {class: "id"}, result.id, sweepLabel(result) ? ` ${sweepLabel(result)}` : ""),
      backendTag(result),
      demo,
    ),
    el("div", {class: "track", "aria-hidden": "true"}, track),
    el("div", {class: "value"}, value),
  );
}

// A list of rows under an axis; a long one is cut until the reader asks for all of it.
function rowChart(kind, axis, rows) {
  const list = el(
    "ol",
    {class: `rows ${kind}`, style: {"--steps": String(axis.steps)}},
    el(
      "li",
      {class: "axis", "aria-hidden": "true"},
      el(
        "div",
        {class: "ticks"},
        axis.ticks.map(([at, text]) => el("span", {style: {left: `${at}%`}}, text)),
      ),
    ),
    rows,
  );
  if (rows.length <= ROWS_SHOWN) return list;
  const more = el(
    "button",
    {
      type: "button",
      class: "more",
      onclick() {
        list.classList.add("all");
        more.remove();
      },
    },
    `Show all ${rows.length}`,
  );
  return el("div", {}, list, more);
}

// Powers of two from lowest to highest, in about so many steps.
function logAxis(lowest, highest, steps = 9) {
  let lo = Math.floor(Math.log2(lowest));
  let hi = Math.ceil(Math.log2(highest));
  const stride = Math.max(1, Math.ceil((hi - lo) / steps));
  lo = Math.floor(lo / stride) * stride;
  hi = Math.ceil(hi / stride) * stride;
  const at = (value) => (100 * (Math.log2(value) - lo)) / (hi - lo);
  const ticks = [];
  for (let power = lo; power <= hi; power += stride)
    ticks.push([at(2 ** power), power < 0 ? `1/${2 ** -power}` : `${2 ** power}×`]);
  return {at, ticks, steps: (hi - lo) / stride};
}

function speedupAxis(results) {
  const known = results.map((result) => result.headline.speedup);
  const ends = (pick) => known.map((speedup) => speedup[pick] ?? speedup.value);
  return logAxis(Math.min(0.8, ...ends("lo")), Math.max(2, ...ends("hi")));
}

function speedupChart(results) {
  const shown = results.filter((result) => result.status !== "skipped");
  const rank = (result) => (hasFigures(result) ? result.headline.speedup.value : Infinity);
  shown.sort((a, b) => rank(b) - rank(a) || a.id.localeCompare(b.id));
  const axis = speedupAxis(shown.filter(hasFigures));
  const one = () => el("i", {class: "one", style: {left: `${axis.at(1)}%`}});
  const rows = shown.map((result, index) => {
    if (!hasFigures(result)) {
      return chartRow(
        result,
        el("span", {class: "no-figure"}, result.reason || "no figures"),
        el("b", {}, STATUS[result.status].words),
        index >= ROWS_SHOWN,
      );
    }
    const {value, lo, hi} = result.headline.speedup;
    const from = axis.at(Math.min(1, value));
    const to = axis.at(Math.max(1, value));
    const track = [
      one(),
      el("i", {class: "stem", style: {left: `${from}%`, width: `${to - from}%`}}),
      lo === null
        ? null
        : el("i", {
            class: "interval",
            style: {left: `${axis.at(lo)}%`, width: `${axis.at(hi) - axis.at(lo)}%`},
          }),
      el("i", {
        class: `dot${result.kind === "demonstration" ? " hollow" : ""}`,
        style: {left: `${axis.at(value)}%`},
      }),
    ];
    return chartRow(
      result,
      track,
      [el("b", {}, format.ratio(value)), el("small", {}, format.interval(result.headline.speedup))],
      index >= ROWS_SHOWN,
    );
  });
  const skipped = results.length - shown.length;
  return el(
    "div",
    {},
    rows.length ? rowChart("speedups", axis, rows) : el("p", {class: "empty"}, "No result here was timed."),
    skipped
      ? el(
          "p",
          {class: "note"},
          `${skipped} skipped ${skipped === 1 ? "target has" : "targets have"} no row: nothing was measured.`,
        )
      : null,
  );
}

function ceilingChart(results) {
  const shown = results.filter((result) => hasFigures(result) && result.best.ceiling_percent > 0);
  if (!shown.length) return null;
  shown.sort((a, b) => b.best.ceiling_percent - a.best.ceiling_percent || a.id.localeCompare(b.id));
  const top = Math.max(
    100,
    Math.ceil(Math.max(...shown.map((r) => Math.max(r.best.ceiling_percent, r.first.ceiling_percent))) / 25) *
      25,
  );
  const at = (percent) => (100 * percent) / top;
  const ticks = [];
  for (let percent = 0; percent <= top; percent += 25) ticks.push([at(percent), `${percent}%`]);
  const rows = shown.map((result, index) => {
    const before = result.first.ceiling_percent;
    const track = [
      el("i", {class: "one", style: {left: `${at(100)}%`}}),
      el("i", {class: "bar", style: {width: `${at(result.best.ceiling_percent)}%`}}),
      before > 0 ? el("i", {class: "before", style: {left: `${at(before)}%`}}) : null,
    ];
    const rate =
      result.bound_by === "compute" ? format.gflop(result.best.gflop_per_s) : format.gb(result.best.gb_per_s);
    return chartRow(
      result,
      track.filter(Boolean),
      [
        el("b", {}, format.percent(result.best.ceiling_percent)),
        el("small", {}, `${rate}${result.bound_by ? ` · ${result.bound_by}` : ""}`),
      ],
      index >= ROWS_SHOWN,
    );
  });
  return rowChart("ceilings", {ticks, steps: top / 25}, rows);
}

// uPlot draws axes and grid; what lies between them is drawn by `draw` with positions in canvas pixels.
function plot(host, {width, height, x, y, data, series, draw, label, bands, onMove}) {
  const text = themeColor("--muted");
  const axis = (of) => ({
    stroke: text,
    label: of.label,
    labelFont: "12px system-ui, sans-serif",
    font: "11px system-ui, sans-serif",
    labelSize: 18,
    grid: {stroke: themeColor("--line"), width: 1},
    ticks: {stroke: themeColor("--line"), width: 1, size: 4},
    values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : of.text(tick))),
    size: of.size,
    ...(of.splits ? {splits: () => of.splits, filter: (_, ticks) => ticks} : {}),
  });
  const chart = new uPlot(
    {
      width,
      height,
      legend: {show: false},
      padding: [10, 24, 0, 0],
      cursor: {drag: {x: false, y: false}, points: {show: false}, y: false, x: false},
      scales: {
        x: {time: false, distr: x.log ? 3 : 1, log: x.log ?? 10, range: x.range},
        y: {distr: y.log ? 3 : 1, log: y.log ?? 10, range: y.range},
      },
      axes: [axis({size: 34, ...x}), axis({size: 58, ...y})],
      series,
      bands,
      hooks: {draw: [draw], setCursor: onMove ? [onMove] : []},
    },
    data,
    host,
  );
  chart.ctx.canvas.setAttribute("role", "img");
  chart.ctx.canvas.setAttribute("aria-label", label);
  return chart;
}

const decades = ([lo, hi]) => {
  const splits = [];
  for (let power = Math.round(Math.log10(lo)); power <= Math.round(Math.log10(hi)); ++power)
    splits.push(10 ** power);
  return splits;
};
const decadeText = (value) =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(+value.toPrecision(1));
const decadeRange = (values) => [
  10 ** Math.floor(Math.log10(Math.min(...values))),
  10 ** Math.ceil(Math.log10(Math.max(...values))),
];

function rooflinePoints(results) {
  return results.filter(
    (result) => hasFigures(result) && result.intensity > 0 && result.best.gflop_per_s > 0,
  );
}

function drawRoofline(host, results, ceilings, width) {
  const points = rooflinePoints(results);
  const ceiling = (name) => ceilings?.values[name]?.value ?? 0;
  const bandwidth = Math.max(ceiling("dram_copy"), ceiling("dram_read"));
  const rates = Object.entries(ceilings?.values ?? {})
    .filter(([name]) => /^(fma|matrix)_/.test(name))
    .sort((a, b) => b[1].value - a[1].value);
  const xRange = decadeRange([0.1, 100, ...points.map((p) => p.intensity)]);
  const yRange = decadeRange([
    ...points.flatMap((p) => [p.best.gflop_per_s, p.first.gflop_per_s || p.best.gflop_per_s]),
    ...rates.map(([, rate]) => rate.value),
    ...(bandwidth ? [bandwidth * xRange[0]] : []),
  ]);
  const dpr = window.devicePixelRatio;
  const colors = {
    roof: themeColor("--roof"),
    halo: themeColor("--card"),
    text: themeColor("--muted"),
    ...Object.fromEntries(Object.keys(STATUS).map((s) => [s, themeColor(`--${s}`)])),
  };
  const tip = el("div", {class: "tip", hidden: true});
  const draw = (u) => {
    const {ctx} = u;
    const px = (value) => u.valToPos(value, "x", true);
    const py = (value) => u.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.5 * dpr;
    ctx.strokeStyle = colors.roof;
    ctx.fillStyle = colors.text;
    ctx.font = `${11 * dpr}px system-ui, sans-serif`;
    const line = (x0, y0, x1, y1) => {
      ctx.beginPath();
      ctx.moveTo(px(x0), py(y0));
      ctx.lineTo(px(x1), py(y1));
      ctx.stroke();
    };
    const write = (words, x, y) => {
      ctx.save();
      ctx.strokeStyle = colors.halo;
      ctx.lineWidth = 4 * dpr;
      ctx.strokeText(words, x, y);
      ctx.restore();
      ctx.fillText(words, x, y);
    };
    let above = -Infinity;
    for (const [name, {value}] of rates) {
      const knee = bandwidth ? Math.max(value / bandwidth, xRange[0]) : xRange[0];
      line(knee, value, xRange[1], value);
      if (py(value) - above < 14 * dpr) continue;
      above = py(value);
      // Left of its line, above the slope, nothing can be measured: that is where a name hides no point.
      const words = [`${name} ${format.gflop(value)}`, name].find(
        (text) => px(knee) - u.bbox.left > ctx.measureText(text).width + 12 * dpr,
      );
      ctx.textAlign = "right";
      if (words) write(words, px(knee) - 8 * dpr, py(value) + 4 * dpr);
    }
    if (bandwidth) {
      const end = Math.min(xRange[1], (rates[0]?.[1].value ?? Infinity) / bandwidth);
      line(xRange[0], bandwidth * xRange[0], end, bandwidth * end);
      const angle = Math.atan2(py(bandwidth * 10) - py(bandwidth), px(10) - px(1));
      const start = Math.max(xRange[0], yRange[0] / bandwidth) * 1.6;
      ctx.save();
      ctx.translate(px(start), py(bandwidth * start));
      ctx.rotate(angle);
      ctx.textAlign = "left";
      write(`DRAM ${format.gb(bandwidth)}`, 0, -8 * dpr);
      ctx.restore();
    }
    for (const point of points) {
      ctx.strokeStyle = ctx.fillStyle = colors[point.status];
      const x = px(point.intensity),
        y = py(point.best.gflop_per_s);
      if (point.first.gflop_per_s > 0) {
        const from = py(point.first.gflop_per_s);
        ctx.lineWidth = dpr;
        ctx.beginPath();
        ctx.moveTo(x, from);
        ctx.lineTo(x, y);
        ctx.stroke();
        ctx.lineWidth = 1.5 * dpr;
        ctx.beginPath();
        ctx.arc(x, from, 3.5 * dpr, 0, 2 * Math.PI);
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(x, y, 5 * dpr, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.restore();
  };
  const onMove = (u) => {
    const away = (p) =>
      Math.hypot(
        u.valToPos(p.intensity, "x") - u.cursor.left,
        u.valToPos(p.best.gflop_per_s, "y") - u.cursor.top,
      );
    const nearest = points.reduce((best, p) => (best === null || away(p) < away(best) ? p : best), null);
    tip.hidden = nearest === null || u.cursor.left < 0 || away(nearest) > 24;
    if (tip.hidden) return;
    tip.textContent =
      `${nearest.id}: ${format.gflop(nearest.best.gflop_per_s)} at ${format.significant(nearest.intensity)} FLOP/B, ` +
      `${format.percent(nearest.best.ceiling_percent)} of ceiling, ${format.ratio(nearest.headline.speedup.value)}`;
    tip.style.left = `${Math.min(u.cursor.left + 66, host.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${u.valToPos(nearest.best.gflop_per_s, "y") + 24}px`;
  };
  plot(host, {
    width,
    height: Math.min(380, Math.max(260, width * 0.6)),
    draw,
    onMove,
    x: {log: 10, range: xRange, splits: decades(xRange), label: "FLOPs per byte", text: decadeText},
    y: {log: 10, range: yRange, splits: decades(yRange), label: "GFLOP/s", text: decadeText, size: 50},
    data: [xRange, yRange],
    series: [{}, {paths: () => null, points: {show: false}}],
    label: `Roofline: ${points.length} targets under the measured ceilings; the figures are in the results table`,
  });
  host.append(tip);
}

function sweepsOf(results) {
  const sweeps = new Map();
  for (const result of results) {
    if (!sweepLabel(result)) continue;
    const key = JSON.stringify([result.id, placeOf(result), result.sweep_key]);
    sweeps.set(key, [...(sweeps.get(key) ?? []), result]);
  }
  return [...sweeps.values()].filter((points) => points.length > 1);
}

function drawSweep(host, sweep, width) {
  const key = sweep[0].sweep_key;
  const points = [...sweep].sort((a, b) => a.knobs[key] - b.knobs[key]);
  const xs = points.map((point) => point.knobs[key]);
  const pick = (field) => points.map((point) => (hasFigures(point) ? point.headline.speedup[field] : null));
  const known = [1, ...pick("lo"), ...pick("hi")].filter((value) => value !== null);
  const color = themeColor("--accent");
  const log = xs[0] > 0 && xs.at(-1) / xs[0] >= 8 ? 2 : undefined;
  const pad = log ? 2 ** 0.3 : (xs.at(-1) - xs[0]) * 0.06;
  const readout = el("p", {class: "note readout"}, "");
  const describe = (point) =>
    `${key} = ${point.knobs[key].toLocaleString("en-US")}: ` +
    (hasFigures(point)
      ? `${format.ratio(point.headline.speedup.value)} (${format.interval(point.headline.speedup)}), ${STATUS[point.status].words}`
      : STATUS[point.status].words);
  readout.textContent = describe(points.at(-1));
  plot(host, {
    width,
    height: 240,
    x: {
      log,
      range: log ? [xs[0] / pad, xs.at(-1) * pad] : [xs[0] - pad, xs.at(-1) + pad],
      splits: xs,
      label: key,
      text: (v) =>
        v >= 2 ** 20 && v % 2 ** 20 === 0
          ? `${v / 2 ** 20}Mi`
          : v >= 1024 && v % 1024 === 0
            ? `${v / 1024}Ki`
            : v.toLocaleString("en-US"),
    },
    y: {
      range: [Math.min(0.9, ...known) * 0.95, Math.max(...known) * 1.05],
      label: "speedup",
      text: (v) => `${format.significant(v, 2)}×`,
      size: 54,
    },
    data: [xs, pick("value"), pick("hi"), pick("lo")],
    series: [
      {},
      {stroke: color, width: 2, points: {show: true, size: 7, fill: color}},
      {stroke: "transparent", points: {show: false}},
      {stroke: "transparent", points: {show: false}},
    ],
    bands: [{series: [2, 3], fill: themeColor("--band")}],
    draw(u) {
      u.ctx.save();
      u.ctx.strokeStyle = themeColor("--muted");
      u.ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, u.valToPos(1, "y", true));
      u.ctx.lineTo(u.bbox.left + u.bbox.width, u.valToPos(1, "y", true));
      u.ctx.stroke();
      u.ctx.restore();
    },
    onMove(u) {
      if (u.cursor.idx !== null && u.cursor.idx !== undefined)
        readout.textContent = describe(points[u.cursor.idx]);
    },
    label: `Speedup over ${key}: ${points.map(describe).join("; ")}`,
  });
  host.append(readout);
}
