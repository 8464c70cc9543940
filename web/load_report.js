// The page of a load test: headline figures, charts over load or over time, the table, the settings.
"use strict";

(function main() {
  const result = JSON.parse(document.getElementById("data").textContent);
  const {points, sweep, slo} = result;
  const {canvas, redraw, themeButton} = pageFrame();
  const limits = Object.entries(slo).filter(([, limit]) => limit !== null);
  const best = sweep ? sweep.best : 0;
  let shown = best;
  const loadWords = (index) =>
    sweep
      ? sweep.key === "rate"
        ? `${plain(sweep.loads[index])} requests/s`
        : `${sweep.loads[index]} at once`
      : "this run";

  const figure = (title, lines, draw) =>
    el(
      "figure",
      {},
      el("figcaption", {}, title),
      el(
        "p",
        {class: "key"},
        lines.map(({name, color, dashed}) =>
          el(
            "span",
            {class: `k series${dashed ? " dashed" : ""}`, style: {"--series": `var(${color})`}},
            name,
          ),
        ),
      ),
      canvas((host, width) => draw(host, width)),
    );

  function overLoad(title, y, lines) {
    const x = {
      values: sweep.loads,
      name: sweep.key === "rate" ? "rate" : "concurrency",
      label: sweep.key === "rate" ? "offered requests/s" : "requests at once",
      text: plain,
      log: true,
      splits: true,
    };
    const full = lines.map(({name, color, dashed, pick}) => {
      const found = points.map(pick);
      const bare = found.some((value) => typeof value === "number" || value === null);
      return {
        name,
        color,
        dashed,
        dots: !dashed,
        values: bare ? found : found.map((value) => value.value),
        lo: bare ? null : found.map((value) => value.lo ?? value.value),
        hi: bare ? null : found.map((value) => value.hi ?? value.value),
      };
    });
    return figure(title, full, (host, width) => drawLines(host, width, {x, y, lines: full}));
  }

  const time = (label) => ({label, text: seconds, tick: (value) => seconds(value), log: true});
  const rate = (label) => ({
    label,
    text: plain,
    tick: (value) => (value >= 1000 ? `${+(value / 1000).toPrecision(3)}k` : plain(value)),
  });

  function sweepSection() {
    if (!sweep || points.length < 2) return null;
    const latencyChart = (key, name) =>
      overLoad(`${name} over load`, time(`${name}`), [
        {name: "median", color: "--accent", pick: (point) => point[key].median},
        {name: "p95", color: "--regressed", pick: (point) => point[key].p95},
        {name: "p99", color: "--crashed", pick: (point) => point[key].p99},
      ]);
    const answered = [
      {
        name: "answered",
        color: "--accent",
        pick: (point) => point.steady?.requests_per_s ?? point.requests_per_s,
      },
      ...(limits.length ? [{name: "goodput", color: "--passed", pick: (point) => point.goodput_per_s}] : []),
      ...(sweep.key === "rate"
        ? [{name: "offered", color: "--muted", dashed: true, pick: (point) => point.offered_per_s}]
        : []),
    ];
    const words = [
      `At most ${plain(sweep.capacity_per_s)} answers per second.`,
      sweep.sustained === null
        ? "Every load was too much."
        : sweep.saturated
          ? `The highest load below saturation: ${plain(sweep.sustained)}.`
          : "No load here saturated the server.",
      "Bands: 95% intervals.",
    ];
    return section(
      "sweep",
      "Over load",
      words.join(" "),
      el(
        "div",
        {class: "figures"},
        latencyChart("ttft_s", "TTFT"),
        overLoad("Answers per second", rate("requests/s"), answered),
        overLoad("Output tokens per second", rate("tokens/s"), [
          {
            name: "output tokens",
            color: "--accent",
            pick: (point) => point.steady?.output_tokens_per_s ?? point.output_tokens_per_s,
          },
        ]),
        latencyChart("itl_s", "ITL"),
        latencyChart("tpot_s", "TPOT"),
        latencyChart("e2e_s", "E2E"),
      ),
    );
  }

  function runSection() {
    const title = el("h2", {id: "run-title"}, "");
    const chooser = el(
      "select",
      {
        "aria-label": "Which load",
        onchange() {
          shown = Number(chooser.value);
          name();
          redraw();
        },
      },
      points.map((_, index) =>
        el(
          "option",
          {value: index, selected: index === shown},
          loadWords(index) + (index === best && sweep ? " (best)" : ""),
        ),
      ),
    );
    const name = () => {
      title.textContent = sweep ? `One run: ${loadWords(shown)}` : "Over time";
    };
    name();
    const slices = () => points[shown].charts.slices;
    const times = () => ({
      values: slices().in_flight.map((_, index) => (index + 0.5) * slices().seconds),
      name: "at",
      label: "seconds",
      text: (value) => `${format.significant(value)} s`,
    });
    const overTime = (caption, y, line, key) =>
      figure(caption, [line], (host, width) =>
        drawLines(host, width, {x: times(), y, lines: [{...line, values: slices()[key]}]}),
      );
    const lines = LATENCIES.map(([key, words, color]) => ({key, name: words, color}));
    const curves = figure("Percentiles", lines, (host, width) => {
      const found = points[shown].charts.percentile_curves;
      const drawn = lines
        .filter(({key}) => found[key]?.length)
        .map((line) => ({...line, values: found[line.key]}));
      if (!drawn.length) return host.append(el("p", {class: "empty"}, "No request was answered."));
      drawLines(host, width, {
        x: {
          values: drawn[0].values.map((_, index) => index + 1),
          name: "at",
          label: "percentile",
          text: (value) => `${value}%`,
        },
        y: time("seconds"),
        lines: drawn,
      });
    });
    return el(
      "section",
      {id: "run", "aria-labelledby": "run-title"},
      el("div", {class: "top"}, title, sweep ? chooser : null),
      el(
        "div",
        {class: "figures"},
        overTime(
          "Output tokens per second",
          rate("tokens/s"),
          {name: "output tokens", color: "--accent"},
          "output_tokens_per_s",
        ),
        overTime(
          "In flight",
          rate("requests"),
          {name: "requests in flight", color: "--regressed"},
          "in_flight",
        ),
        overTime(
          "TTFT by when a request was due",
          {...time("TTFT"), log: false},
          {name: "median TTFT", color: "--passed", dots: true},
          "ttft_s",
        ),
        curves,
      ),
    );
  }

  const cell = (text, note) => el("td", {class: "number", title: note || null}, text);
  function tableSection() {
    const columns = ["Load", "Requests", "Failed", "Answers/s", "Output tok/s"];
    if (limits.length) columns.push("Goodput/s", "Good");
    for (const [, words] of LATENCIES) columns.push(`${words} median`, `${words} p95`, `${words} p99`);
    columns.push("In flight");
    const rows = points.map((point, index) => {
      const answers = point.steady?.requests_per_s ?? point.requests_per_s;
      const tokens = point.steady?.output_tokens_per_s ?? point.output_tokens_per_s;
      const cells = [
        cell(String(point.requests)),
        cell(String(point.requests - point.ok)),
        cell(plain(answers.value), interval(answers, plain)),
        cell(plain(tokens.value), interval(tokens, plain)),
      ];
      if (limits.length)
        cells.push(
          cell(plain(point.goodput_per_s.value), interval(point.goodput_per_s, plain)),
          cell(format.percent(point.good_share.value * 100)),
        );
      for (const [key] of LATENCIES)
        for (const figureName of ["median", "p95", "p99"])
          cells.push(cell(latency(point, key, figureName), interval(point[key][figureName], seconds)));
      cells.push(cell(`${plain(point.concurrency.mean)} (max ${point.concurrency.max})`));
      return el(
        "tr",
        {},
        el("th", {scope: "row"}, loadWords(index), sweep && index === best ? " ★" : ""),
        cells,
      );
    });
    return section(
      "table",
      "Figures",
      "Point at a figure for its 95% interval. Latencies count from when a request was due.",
      el(
        "div",
        {class: "table-scroll"},
        el(
          "table",
          {class: "plain"},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              columns.map((text, index) => el("th", {scope: "col", class: index ? "number" : ""}, text)),
            ),
          ),
          el("tbody", {}, rows),
        ),
      ),
    );
  }

  function errorSection() {
    const rows = points.flatMap((point, index) =>
      point.errors.map(({kind, count, example}) =>
        el(
          "tr",
          {},
          el("th", {scope: "row"}, kind),
          cell(String(count)),
          el("td", {}, loadWords(index)),
          el("td", {}, example),
        ),
      ),
    );
    if (!rows.length) return null;
    return section(
      "errors",
      "Errors",
      "A request that failed has no latency and is not good.",
      el(
        "div",
        {class: "table-scroll"},
        el(
          "table",
          {class: "plain"},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["Kind", "Count", "Load", "Example"].map((text, index) =>
                el("th", {scope: "col", class: index === 1 ? "number" : ""}, text),
              ),
            ),
          ),
          el("tbody", {}, rows),
        ),
      ),
    );
  }

  function header() {
    const point = points[best];
    const card = (words, value, note) =>
      el(
        "div",
        {class: "headline"},
        el("span", {class: "tag"}, words),
        el("span", {class: "figure"}, value),
        el("span", {class: "sentence"}, note),
      );
    const tokens = point.steady?.output_tokens_per_s ?? point.output_tokens_per_s;
    const median = (key) => latency(point, key, "median");
    const slowest = (key) => `p95 ${latency(point, key, "p95")}, p99 ${latency(point, key, "p99")}`;
    const limitWords = limits
      .map(([name, limit]) => `${name.slice(0, -2).toUpperCase()} ≤ ${seconds(limit)}`)
      .join(" and ");
    return el(
      "header",
      {},
      el(
        "div",
        {class: "top"},
        el("h1", {}, "Load ", el("span", {class: "run-id", style: {"white-space": "normal"}}, result.model)),
        themeButton(),
      ),
      el("p", {class: "machine"}, result.url),
      el(
        "p",
        {class: "meta"},
        [
          format.utc(result.started_at),
          `gauntlet ${result.version}`,
          sweep ? `figures below at the best load, ${loadWords(best)}` : "",
        ]
          .filter(Boolean)
          .join(" · "),
      ),
      el(
        "div",
        {class: "headlines"},
        limits.length
          ? card(
              "goodput",
              `${plain(point.goodput_per_s.value)}/s`,
              [
                limitWords,
                `${format.percent(point.good_share.value * 100)} of the requests`,
                interval(point.goodput_per_s, plain),
              ]
                .filter(Boolean)
                .join("; "),
            )
          : null,
        card("output", `${plain(tokens.value)} tok/s`, interval(tokens, plain) || "over the whole run"),
        card("TTFT median", median("ttft_s"), slowest("ttft_s")),
        card("ITL median", median("itl_s"), slowest("itl_s")),
      ),
    );
  }

  const sections = [
    sweepSection(),
    runSection(),
    tableSection(),
    errorSection(),
    section(
      "settings",
      "Settings",
      null,
      el(
        "dl",
        {class: "settings"},
        [["command", result.command_line], ...Object.entries(result.workload)].map(([name, value]) => [
          el("dt", {}, name),
          el("dd", {}, value),
        ]),
      ),
    ),
  ].filter(Boolean);
  const navigation = el(
    "nav",
    {"aria-label": "Sections"},
    sections.map((node) => el("a", {href: `#${node.id}`}, node.querySelector("h2").textContent)),
  );
  document.body.append(header(), navigation, el("main", {}, sections));
  redraw();
})();
