// The study's charts: lines over a sweep, heat maps, points, the rungs of the ladder.
"use strict";

const frame = pageFrame();

const LABEL = {
  gain: {words: "gain", glyph: "✓"},
  no_gain: {words: "no gain", glyph: "≈"},
  loss: {words: "loss", glyph: "↓"},
};

const labelBadge = (label) =>
  el(
    "span",
    {class: `badge g-${label}`},
    el("span", {class: "glyph", "aria-hidden": "true"}, LABEL[label].glyph),
    LABEL[label].words,
  );

// A logarithmic axis of powers of two over the values given, at most nine ticks.
function ratioAxis(values) {
  let lo = Math.floor(Math.log2(Math.min(0.8, ...values)));
  let hi = Math.ceil(Math.log2(Math.max(2, ...values)));
  const stride = Math.max(1, Math.ceil((hi - lo) / 8));
  lo = Math.floor(lo / stride) * stride;
  hi = Math.ceil(hi / stride) * stride;
  const ticks = [];
  const at = (value) => (100 * (Math.log2(value) - lo)) / (hi - lo);
  for (let power = lo; power <= hi; power += stride)
    ticks.push([at(2 ** power), power < 0 ? `1/${2 ** -power}` : `${2 ** power}×`]);
  return {at, ticks, steps: (hi - lo) / stride};
}

// Whole decades, so that a reader can tell a factor from a distance.
function speedAxis(values) {
  const lo = Math.floor(Math.log10(Math.min(...values)));
  const hi = Math.max(lo + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value) => (100 * (Math.log10(value) - lo)) / (hi - lo);
  const ticks = [];
  for (let power = lo; power <= hi; ++power) ticks.push([at(10 ** power), decadeText(10 ** power)]);
  return {at, ticks, steps: hi - lo};
}

const ticksOf = (axis) =>
  el(
    "div",
    {class: "ticks"},
    axis.ticks.map(([at, text]) => el("span", {style: {left: `${at}%`}}, text)),
  );

function ratioTrack(axis, {value, lo, hi}) {
  const from = axis.at(Math.min(1, value));
  const to = axis.at(Math.max(1, value));
  return el(
    "div",
    {class: "track", "aria-hidden": "true", style: {"--steps": String(axis.steps)}},
    el("i", {class: "one", style: {left: `${axis.at(1)}%`}}),
    el("i", {class: "stem", style: {left: `${from}%`, width: `${to - from}%`}}),
    el("i", {class: "interval", style: {left: `${axis.at(lo)}%`, width: `${axis.at(hi) - axis.at(lo)}%`}}),
    el("i", {class: "dot", style: {left: `${axis.at(value)}%`}}),
  );
}

// A tick's number: no more digits than its place needs.
const tickText = (value) =>
  Math.abs(value) >= 1000 ? value.toLocaleString("en-US") : String(+value.toPrecision(3));

// Series over x: [{name, values, lo, hi, color}]; lo and hi draw a band. Missing values are gaps in the line.
function lineChart({x, y, series}) {
  const key = el(
    "p",
    {class: "key dots"},
    series.length > 1 ? series.map(({name, tint}) => el("span", {class: tint}, name)) : null,
  );
  const readout = el("p", {class: "note readout"});
  const describe = (i) =>
    `${x.label} ${x.text(x.values[i])}: ` +
    series
      .filter((s) => s.values[i] !== null)
      .map((s) => `${series.length > 1 ? `${s.name} ` : ""}${y.text(s.values[i])}`)
      .join(", ");
  readout.textContent = describe(x.values.length - 1);
  const host = frame.canvas((node, width) => {
    const colors = series.map(({tint}) => themeColor({c1: "--one", c2: "--two", c3: "--three"}[tint]));
    const known = series
      .flatMap((s) => [...s.values, ...(s.lo ?? []), ...(s.hi ?? [])])
      .filter((v) => v !== null);
    const top = (Math.max(...known) || 1) * 1.08;
    const data = [x.values];
    const lines = [{}];
    const bands = [];
    series.forEach((s, i) => {
      lines.push({
        stroke: colors[i],
        width: 2,
        points: {show: true, size: 7, fill: colors[i], stroke: colors[i]},
      });
      data.push(s.values);
    });
    series.forEach((s) => {
      if (!s.lo) return;
      const hidden = {stroke: "transparent", points: {show: false}};
      bands.push({series: [lines.length, lines.length + 1], fill: themeColor("--band")});
      lines.push(hidden, hidden);
      data.push(s.hi, s.lo);
    });
    const first = x.values[0];
    const last = x.values.at(-1);
    const pad = x.log ? 2 ** 0.3 : (last - first) * 0.06;
    plot(node, {
      width,
      height: 240,
      x: {
        log: x.log ? 2 : undefined,
        range: x.log ? [first / pad, last * pad] : [first - pad, last + pad],
        splits: x.values,
        label: x.label,
        text: x.text,
      },
      y: {
        log: y.log ? 10 : undefined,
        range: [0, top],
        label: y.label,
        text: tickText,
        size: 62,
      },
      data,
      series: lines,
      bands,
      draw() {},
      onMove(u) {
        if (u.cursor.idx !== null && u.cursor.idx !== undefined) readout.textContent = describe(u.cursor.idx);
      },
      label: `${y.label} over ${x.label}: ${x.values.map((_, i) => describe(i)).join("; ")}`,
    });
  });
  return [key, host, readout];
}

// A table whose cells are the darker the larger their value, on a logarithmic scale.
function heatTable({corner, columns, rows, cell}) {
  const values = rows
    .flatMap((row) => columns.map((column) => cell(row.key, column.key).value))
    .filter((v) => v > 0);
  const lo = Math.log(Math.min(...values));
  const hi = Math.log(Math.max(...values));
  const depth = (value) => 8 + 62 * (hi > lo ? (Math.log(value) - lo) / (hi - lo) : 0.5);
  return el(
    "div",
    {class: "table-scroll"},
    el(
      "table",
      {class: "grid heat"},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", {scope: "col"}, corner),
          columns.map((c) => el("th", {scope: "col"}, c.text)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => {
          const cells = columns.map((column) => cell(row.key, column.key));
          const reasons = new Set(cells.map((c) => c.gap));
          const whole = reasons.size === 1 && cells[0].gap;
          return el(
            "tr",
            {},
            el("th", {scope: "row"}, row.text),
            whole
              ? el("td", {class: "gap", colspan: columns.length}, whole)
              : cells.map((c) =>
                  c.gap
                    ? el("td", {class: "gap"}, c.gap)
                    : el(
                        "td",
                        {style: {"--depth": `${depth(c.value)}%`}},
                        c.text,
                        c.small ? el("small", {}, ` ${c.small}`) : null,
                      ),
                ),
          );
        }),
      ),
    ),
  );
}

// A matrix of many small cells on a canvas; `at(row, column)` in [0, 1], `say(row, column)` for the pointer.
function heatCanvas({rows, columns, at, say, label, square}) {
  const readout = el("p", {class: "note readout"}, "Point at a cell.");
  const host = frame.canvas((node, width) => {
    const across = Math.min(width, square ? 420 : width);
    const cell = Math.max(2, Math.floor(across / columns));
    const tall = square ? cell : Math.max(cell, 14);
    const dpr = devicePixelRatio;
    const board = el("canvas", {
      role: "img",
      "aria-label": label,
      width: columns * cell * dpr,
      height: rows * tall * dpr,
      style: {width: `${columns * cell}px`, height: `${rows * tall}px`, "max-width": "100%"},
    });
    const ctx = board.getContext("2d");
    ctx.fillStyle = themeColor("--raised");
    ctx.fillRect(0, 0, board.width, board.height);
    ctx.fillStyle = themeColor("--heat");
    const gap = cell > 6 ? dpr : 0;
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        ctx.globalAlpha = Math.min(1, Math.max(0, at(r, c)));
        ctx.fillRect(c * cell * dpr, r * tall * dpr, cell * dpr - gap, tall * dpr - gap);
      }
    board.addEventListener("pointermove", (event) => {
      const box = board.getBoundingClientRect();
      const c = Math.floor(((event.clientX - box.left) / box.width) * columns);
      const r = Math.floor(((event.clientY - box.top) / box.height) * rows);
      if (r >= 0 && r < rows && c >= 0 && c < columns) readout.textContent = say(r, c);
    });
    node.append(board);
  });
  host.classList.add("heat-plot");
  return [host, readout];
}

// Points with names beside them.
function scatter({x, y, points}) {
  return frame.canvas((node, width) => {
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    const spread = Math.max(...xs) - Math.min(...xs) || Math.abs(xs[0]) * 0.01 || 1;
    const color = themeColor("--accent");
    const text = themeColor("--text");
    const halo = themeColor("--card");
    const range = [Math.min(...xs) - spread * 0.15, Math.max(...xs) + spread * 0.15];
    plot(node, {
      width,
      height: 300,
      x: {range, label: x.label, text: x.text},
      y: {range: [0, Math.max(...ys) * 1.15], label: y.label, text: y.text, size: 62},
      data: [range, [0, 0]],
      series: [{}, {paths: () => null, points: {show: false}}],
      draw(u) {
        const {ctx} = u;
        const dpr = devicePixelRatio;
        ctx.save();
        ctx.font = `${11 * dpr}px system-ui, sans-serif`;
        ctx.textBaseline = "middle";
        const middle = u.bbox.left + u.bbox.width / 2;
        const taken = [];
        for (const p of [...points].sort((a, b) => b.y - a.y)) {
          const px = u.valToPos(p.x, "x", true);
          const py = u.valToPos(p.y, "y", true);
          ctx.fillStyle = color;
          ctx.beginPath();
          ctx.arc(px, py, 5 * dpr, 0, 2 * Math.PI);
          ctx.fill();
          let at = py;
          while (taken.some((t) => Math.abs(t.y - at) < 13 * dpr && Math.abs(t.x - px) < 150 * dpr))
            at += 13 * dpr;
          taken.push({x: px, y: at});
          ctx.textAlign = px > middle ? "right" : "left";
          const aside = px + (px > middle ? -9 : 9) * dpr;
          ctx.strokeStyle = halo;
          ctx.lineWidth = 3 * dpr;
          ctx.strokeText(p.name, aside, at);
          ctx.fillStyle = text;
          ctx.fillText(p.name, aside, at);
        }
        ctx.restore();
      },
      label: points.map((p) => `${p.name}: ${x.text(p.x)}, ${y.text(p.y)}`).join("; "),
    });
  });
}
