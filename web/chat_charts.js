// The cards beside the chat: one chart each, drawn by uPlot from readings of /metrics.
"use strict";

const POINTS_SHOWN = 120; // of a second each
const WINDOW_S = 15; // over which percentiles are taken

// What may lie between two lines of an axis.
const STEPS = Array.from({length: 14}, (_, i) => [1, 2, 5].map((step) => step * 10 ** (i - 5))).flat();

const colorOf = {
  cache: new Map(),
  get(name) {
    if (!this.cache.has(name)) this.cache.set(name, themeColor(name));
    return this.cache.get(name);
  },
};

const withUnit = (value, unit, digits = 3) =>
  value === null ? "–" : `${format.significant(value, digits)} ${unit}`;
const milliseconds = (value) => (value === null ? "–" : format.ns(value * 1e9));
const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`);
const short = (value) =>
  value >= 1e6
    ? `${+(value / 1e6).toPrecision(3)}M`
    : value >= 1e3
      ? `${+(value / 1e3).toPrecision(3)}k`
      : `${+value.toPrecision(3)}`;

const caption = (title, note, now) =>
  el("figcaption", {title: note}, el("b", {}, title), el("span", {class: "now"}, now));

// `series`: [{label, color, read(span, window) -> number or null, text(value)}]; `top`: the least
// that the axis holds; `least`: between two of its lines.
function lineCard({title, note, series, axis = short, top = 1, least = 0}) {
  const host = el("div", {class: "chart"});
  const values = series.map(() => el("b", {}, "–"));
  const node = el(
    "figure",
    {class: "card"},
    caption(
      title,
      note,
      series.map(({label, color}, i) =>
        el(
          "span",
          {style: {"--series": `var(${color})`}},
          el("i", {"aria-hidden": "true"}),
          values[i],
          ` ${label}`,
        ),
      ),
    ),
    host,
  );
  const data = [[], ...series.map(() => [])];
  let chart = null;
  const draw = () => {
    if (host.clientWidth === 0) return;
    if (chart) return chart.setSize({width: host.clientWidth, height: 68});
    chart = new uPlot(
      {
        width: host.clientWidth,
        height: 68,
        legend: {show: false},
        cursor: {show: false},
        padding: [6, 2, 4, 0],
        scales: {
          x: {time: false, range: (_, first, last) => [Math.min(first, last - 30), last]},
          y: {range: (_, __, high) => [0, Math.max(top, (high ?? 0) * 1.12)]},
        },
        axes: [
          {show: false},
          {
            size: 46,
            font: "11px system-ui, sans-serif",
            gap: 4,
            space: 18,
            stroke: () => colorOf.get("--muted"),
            grid: {stroke: () => colorOf.get("--line"), width: 1},
            ticks: {show: false},
            incrs: STEPS.filter((step) => step >= least),
            values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "0" : axis(tick))),
          },
        ],
        series: [
          {},
          ...series.map(({color}, i) => ({
            stroke: () => colorOf.get(color),
            fill: i === 0 ? () => colorOf.get("--band") : undefined,
            width: 1.75,
            points: {show: false},
          })),
        ],
      },
      data,
      host,
    );
    chart.ctx.canvas.setAttribute("role", "img");
  };
  new ResizeObserver(draw).observe(host);
  return {
    node,
    push(span, window, at) {
      data[0].push(at);
      series.forEach(({read, text}, i) => {
        const value = span ? read(span, window) : null;
        data[i + 1].push(value);
        values[i].textContent = text(value);
      });
      if (data[0].length > POINTS_SHOWN) for (const list of data) list.shift();
      chart?.setData(data);
      chart?.ctx.canvas.setAttribute(
        "aria-label",
        `${title}: ${series.map(({label}, i) => `${label} ${values[i].textContent}`).join(", ")}`,
      );
    },
    redraw: () => chart?.redraw(false),
  };
}

// A row per layer, a column per expert; the darker, the more of the layer's tokens it got.
function expertCard() {
  const canvas = el("canvas", {class: "heat", role: "img"});
  const words = el("b", {}, "–");
  const where = el("span", {class: "where"}, "of the mean has the busiest expert");
  const node = el(
    "figure",
    {class: "card", hidden: true},
    caption(
      "Experts",
      "tokens by expert in the last seconds, over the mean of its layer",
      el("span", {}, words, " ", where),
    ),
    canvas,
  );
  let load = null;
  const draw = () => {
    if (!load || canvas.clientWidth === 0) return;
    const scale = devicePixelRatio;
    const cell = Math.max(4, Math.min(14, 96 / load.length));
    canvas.style.height = `${Math.round(cell * load.length)}px`;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(cell * load.length * scale);
    const context = canvas.getContext("2d");
    const width = canvas.width / load[0].length;
    const height = canvas.height / load.length;
    const gap = width >= 5 * scale ? scale : 0;
    context.fillStyle = colorOf.get("--accent");
    load.forEach((experts, layer) =>
      experts.forEach((times, expert) => {
        context.globalAlpha = Math.min(1, 0.06 + times / 4);
        context.fillRect(expert * width, layer * height, width - gap, height - gap);
      }),
    );
  };
  new ResizeObserver(draw).observe(canvas);
  const say = (layer, expert) =>
    `${load[layer][expert].toFixed(1)}× of the mean: layer ${layer}, expert ${expert}`;
  canvas.addEventListener("mousemove", ({offsetX, offsetY}) => {
    if (!load) return;
    const layer = Math.floor((offsetY / canvas.clientHeight) * load.length);
    const expert = Math.floor((offsetX / canvas.clientWidth) * load[0].length);
    if (load[layer]?.[expert] !== undefined) canvas.title = say(layer, expert);
  });
  return {
    node,
    push(span, window) {
      if (!window) return;
      load = window.expertLoad() ?? load ?? new Span(new Reading("", 0), window.to).expertLoad();
      if (!load) return;
      node.hidden = false;
      const busiest = load.flatMap((experts, layer) =>
        experts.map((times, expert) => ({times, layer, expert})),
      );
      const {times, layer, expert} = busiest.reduce((a, b) => (b.times > a.times ? b : a));
      words.textContent = `${times.toFixed(1)}×`;
      where.textContent = `of the mean, expert ${expert} of layer ${layer}`;
      canvas.setAttribute(
        "aria-label",
        `Load of ${load[0].length} experts in ${load.length} layers: ${say(layer, expert)}`,
      );
      draw();
    },
    redraw: draw,
  };
}

const latency = (name, q) => (span, window) => window.quantile(name, q);

function serverCards() {
  const count = (value) => (value === null ? "–" : String(Math.round(value)));
  const cards = [
    lineCard({
      title: "Throughput",
      note: "tokens per second",
      top: 10,
      series: [
        {
          label: "tok/s made",
          color: "--accent",
          read: (span) => span.rate("gauntlet:generation_tokens_total"),
          text: (v) => (v === null ? "–" : format.significant(v)),
        },
        {
          label: "tok/s read",
          color: "--regressed",
          read: (span) => span.rate("gauntlet:prompt_tokens_total"),
          text: (v) => (v === null ? "–" : format.significant(v)),
        },
      ],
    }),
    lineCard({
      title: "Requests",
      least: 1,
      top: 4,
      series: [
        {
          label: "running",
          color: "--accent",
          read: (span) => span.to.value("gauntlet:num_requests_running"),
          text: count,
        },
        {
          label: "waiting",
          color: "--regressed",
          read: (span) => span.to.value("gauntlet:num_requests_waiting"),
          text: count,
        },
      ],
    }),
    ...[
      ["First token", "gauntlet:time_to_first_token_seconds"],
      ["Between tokens", "gauntlet:inter_token_latency_seconds"],
    ].map(([title, name]) =>
      lineCard({
        title,
        note: `over the last ${WINDOW_S} seconds`,
        top: 0.001,
        axis: (value) => (value >= 1 ? `${short(value)} s` : `${short(value * 1e3)} ms`),
        series: [
          {label: "median", color: "--accent", read: latency(name, 0.5), text: milliseconds},
          {label: "p95", color: "--regressed", read: latency(name, 0.95), text: milliseconds},
        ],
      }),
    ),
    lineCard({
      title: "KV cache",
      note: `use now, and prompt tokens found in the prefix cache over the last ${WINDOW_S} seconds`,
      axis: (value) => `${Math.round(100 * value)}%`,
      top: 0.1,
      series: [
        {
          label: "in use",
          color: "--accent",
          read: (span) => span.to.value("gauntlet:kv_cache_usage_perc"),
          text: percent,
        },
        {
          label: "prefix hits",
          color: "--passed",
          read: (_, window) =>
            window.ratio("gauntlet:prefix_cache_hits_total", "gauntlet:prefix_cache_queries_total"),
          text: percent,
        },
      ],
    }),
    expertCard(),
  ];
  const gpu = [
    lineCard({
      title: "GPU",
      axis: (value) => `${Math.round(100 * value)}%`,
      series: [
        {
          label: "busy",
          color: "--accent",
          read: (span) => span.to.mean("gauntlet:gpu_utilization_ratio"),
          text: percent,
        },
        {
          label: "memory",
          color: "--passed",
          read: (span) =>
            span.to.value("gauntlet:gpu_memory_used_bytes") /
            span.to.value("gauntlet:gpu_memory_total_bytes"),
          text: percent,
        },
      ],
    }),
    lineCard({
      title: "GPU power",
      top: 100,
      axis: (value) => `${short(value)} W`,
      series: [
        {
          label: "drawn",
          color: "--accent",
          read: (span) => span.to.value("gauntlet:gpu_power_watts"),
          text: (v) => withUnit(v, "W"),
        },
      ],
    }),
  ];
  for (const card of gpu) card.node.hidden = true;
  return {cards: [...cards, ...gpu], showGpu: () => gpu.forEach((card) => (card.node.hidden = false))};
}

// Reads /metrics once a second while somebody looks, and feeds the cards. `onState` hears "ready", "offline" or "locked".
function watchServer(host, onState) {
  const {cards, showGpu} = serverCards();
  host.replaceChildren(...cards.map((card) => card.node));
  const readings = [];
  async function read() {
    const at = performance.now() / 1000;
    try {
      const reading = new Reading(await (await ask("metrics")).text(), at);
      const last = readings.at(-1);
      if (last && reading.value("process_start_time_seconds") !== last.value("process_start_time_seconds"))
        readings.length = 0;
      readings.push(reading);
      while (readings.length > 2 && at - readings[1].at > WINDOW_S) readings.shift();
      if (reading.samples.has("gauntlet:gpu_utilization_ratio")) showGpu();
      if (readings.length > 1) {
        const span = new Span(readings.at(-2), reading);
        const window = new Span(readings[0], reading);
        for (const card of cards) card.push(span, window, at);
      }
      onState("ready");
    } catch (error) {
      const locked = error instanceof KeyMissing;
      onState(locked ? "locked" : "offline");
      if (locked) return false;
      for (const card of cards) card.push(null, null, at);
    }
    return true;
  }
  async function loop() {
    while (document.visibilityState === "hidden" || (await read()))
      await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  loop();
  return {
    resume: loop,
    redraw() {
      colorOf.cache.clear();
      for (const card of cards) card.redraw();
    },
  };
}
