// Puts the study's page together: what was found, the ladder, what each option is worth, sweeps, router, time, machine.
"use strict";

(function main() {
  const study = JSON.parse(document.getElementById("data").textContent);
  const measured = (entry) => entry !== null && entry !== undefined && !("gap" in entry);
  const layers = study.layers;
  const decodes = (layer) => (layer.figures ?? []).filter((figure) => figure.name !== "prompt");
  const TINTS = ["c1", "c2", "c3"];
  const ms = (value) => `${format.significant(value)} ms`;
  const speed = (value) => `${format.significant(value)} tok/s`;
  const optionText = (on) => (on.length ? on.join(" + ") : "none");
  const workloadText = (name) =>
    ({
      prompt: "prompt",
      makespan: "all done",
      first_token_p50: "first token",
      between_tokens_p95: "between tokens",
    })[name] ?? name.replace("decode_", "batch ");

  function header() {
    const total = measured(study.total) ? study.total : null;
    const decode = total?.figures.find((figure) => figure.name === "decode_1");
    const gain = total?.gain.workloads.find((workload) => workload.name === "decode_1");
    const best = total?.figures.filter((f) => f.name !== "prompt").at(-1);
    const judged = layers.filter((layer) => layer.verification && "verified" in layer.verification);
    const verified = judged.filter((layer) => layer.verification.verified).length;
    const card = (figure, unit, sentence) =>
      el(
        "div",
        {class: "card"},
        el("span", {class: "figure"}, figure, unit ? el("small", {}, unit) : null),
        el("span", {class: "sentence"}, sentence),
      );
    const {cells, model, machine} = study;
    const where =
      study.backend === "cuda" ? machine.gpus.map((gpu) => gpu.name).join(", ") : machine.cpu.model;
    return el(
      "header",
      {},
      el(
        "div",
        {class: "top"},
        el("h1", {}, "Which optimization paid for what ", el("span", {class: "run-id"}, study.study_id)),
        frame.themeButton(),
      ),
      el(
        "p",
        {class: "machine"},
        el("b", {}, model.name),
        ` on ${where}, ${study.backend === "cuda" ? "CUDA" : `${machine.cpu.cores} cores`} `,
        backendTag(study.backend),
      ),
      el(
        "p",
        {class: "meta"},
        [
          format.utc(study.started_at),
          `commit ${study.build.commit}`,
          `${study.depth} study`,
          `${cells.measured} of ${cells.planned} cells measured`,
          `${model.layers} layers, ${model.experts} experts, ${model.experts_per_token} per token, ${model.weights === "random" ? "random weights" : "trained weights"}`,
        ].join(" · "),
      ),
      el(
        "div",
        {class: "cards"},
        gain
          ? card(
              format.ratio(gain.ratio.median),
              "",
              `the baseline's decode speed at batch 1, with everything on (${format.interval(gain.ratio)})`,
            )
          : null,
        decode
          ? card(
              format.significant(decode.tok_s.median),
              "tok/s",
              decode.percent_of_limit === null
                ? "decoding at batch 1"
                : `decoding at batch 1: ${format.percent(decode.percent_of_limit)} of what ${decode.bound_by} allows`,
            )
          : null,
        best ? card(format.significant(best.tok_s.median), "tok/s", `decoding at batch ${best.batch}`) : null,
        judged.length
          ? card(
              `${verified} / ${judged.length}`,
              "",
              "layers verified: the same tokens, or perplexity within its bound",
            )
          : null,
      ),
    );
  }

  const findings = () =>
    section(
      "findings",
      "What was found",
      null,
      el(
        "ul",
        {class: "findings"},
        study.findings.map((sentence) => el("li", {}, sentence)),
      ),
    );

  function rung(layer, speeds, gains) {
    const what = el(
      "div",
      {class: "what"},
      el("b", {}, `${layer.index} ${layer.name}`),
      el("small", {}, layer.options.length ? layer.options.join(", ").replaceAll("_", " ") : layer.title),
    );
    if (layer.absent) return el("li", {class: "rung absent"}, what, el("div", {class: "why"}, layer.absent));
    if (layer.gap)
      return el("li", {class: "rung absent"}, what, el("div", {class: "why gap-note"}, layer.gap));
    const dots = decodes(layer).map((figure, i) => ({
      at: speeds.at(figure.tok_s.median),
      text: format.significant(figure.tok_s.median),
      tint: TINTS[i],
    }));
    const ends = dots.map((dot) => dot.at);
    // A number is left out where it would stand on another; the table below has them all.
    const written = dots.filter((dot, i) =>
      dots.slice(0, i).every((other) => Math.abs(other.at - dot.at) > 9),
    );
    const track = layer.serving
      ? el(
          "div",
          {class: "served"},
          `serves ${speed(layer.serving.after.tok_s)}, ${speed(layer.serving.before.tok_s)} before`,
        )
      : el(
          "div",
          {class: "track", "aria-hidden": "true", style: {"--steps": String(speeds.steps)}},
          dots.length
            ? el("i", {
                class: "line",
                style: {left: `${Math.min(...ends)}%`, width: `${Math.max(...ends) - Math.min(...ends)}%`},
              })
            : null,
          dots.map((dot) => el("i", {class: `dot ${dot.tint}`, style: {left: `${dot.at}%`}})),
          written.map((dot) => el("i", {class: "tag-at", style: {left: `${dot.at}%`}}, dot.text)),
        );
    const truth = layer.verification;
    return el(
      "li",
      {class: `rung g-${layer.gain?.label ?? "no_gain"}`},
      what,
      track,
      layer.gain ? ratioTrack(gains, layer.gain.ratio) : el("div", {class: "track"}),
      el(
        "div",
        {class: "out"},
        layer.gain
          ? el(
              "span",
              {},
              el("b", {}, format.ratio(layer.gain.ratio.median)),
              " ",
              el("small", {class: "muted"}, format.interval(layer.gain.ratio)),
            )
          : el("span", {class: "muted"}, "where it starts"),
        layer.gain ? labelBadge(layer.gain.label) : null,
        truth && "verified" in truth && !truth.verified
          ? el("span", {class: "badge g-wrong"}, "✕ not verified")
          : null,
      ),
    );
  }

  function ladder() {
    const all = layers.flatMap((layer) => decodes(layer).map((figure) => figure.tok_s.median));
    if (!all.length) return null;
    const speeds = speedAxis(all);
    const gains = ratioAxis(layers.filter((l) => l.gain).flatMap((l) => [l.gain.ratio.lo, l.gain.ratio.hi]));
    const batches = decodes(layers.find((layer) => layer.figures)).map((figure) => figure.batch);
    return section(
      "ladder",
      "The ladder",
      "Each layer stands on those before it and is measured in turns with the one before. Gain: the geometric mean over its workloads with its 95% interval; a gain is one whose whole interval lies above 1×.",
      el(
        "ol",
        {class: "ladder"},
        el(
          "li",
          {class: "rung heads", "aria-hidden": "true"},
          el("div", {}, "layer"),
          el(
            "div",
            {},
            "decoding, tok/s: ",
            el(
              "span",
              {class: "dots"},
              batches.map((b, i) => el("span", {class: TINTS[i]}, `batch ${b}`)),
            ),
            ticksOf(speeds),
          ),
          el("div", {}, "gain over the layer before", ticksOf(gains)),
          el("div", {}, "95% interval"),
        ),
        layers.map((layer) => rung(layer, speeds, gains)),
      ),
      layerTable(),
      gainTable(),
      plans(),
    );
  }

  function layerTable() {
    const batches = decodes(layers.find((layer) => layer.figures)).map((figure) => figure.batch);
    const head = [
      "Layer",
      "TTFT",
      "TPOT",
      ...batches.map((b) => `tok/s at ${b}`),
      "of limit at 1",
      "weights",
      "KV per position",
      "verified",
    ];
    const rows = layers
      .filter((layer) => layer.figures)
      .map((layer) => {
        const truth = layer.verification;
        return el(
          "tr",
          {},
          el("th", {scope: "row"}, `${layer.index} ${layer.name}`),
          el("td", {}, ms(layer.ttft_ms.median)),
          el("td", {}, ms(layer.tpot_ms.median)),
          decodes(layer).map((figure) => el("td", {}, format.significant(figure.tok_s.median))),
          el(
            "td",
            {},
            decodes(layer)[0].percent_of_limit === null
              ? "–"
              : format.percent(decodes(layer)[0].percent_of_limit),
          ),
          el("td", {}, format.bytes(layer.weight_bytes)),
          el("td", {}, format.bytes(layer.kv_bytes_per_position)),
          el(
            "td",
            {class: `text${truth?.verified === false ? " bad" : ""}`},
            truth?.sentence ?? truth?.gap ?? "–",
          ),
        );
      });
    return el(
      "div",
      {class: "table-scroll"},
      el(
        "table",
        {class: "grid figures-table"},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            head.map((text) => el("th", {scope: "col", class: text === "verified" ? "text" : ""}, text)),
          ),
        ),
        el("tbody", {}, rows),
      ),
    );
  }

  function gainTable() {
    const shown = layers.filter((layer) => layer.gain && !layer.serving);
    if (!shown.length) return null;
    const names = shown[0].gain.workloads.map((workload) => workload.name);
    const cell = (gain) =>
      el(
        "td",
        {class: `shade g-${gain.label}`, style: {"--depth": gain.label === "no_gain" ? "8%" : "18%"}},
        format.ratio(gain.ratio.median),
        el("small", {}, ` ${format.interval(gain.ratio)}`),
      );
    return [
      el("h3", {}, "Gain by workload"),
      el(
        "div",
        {class: "table-scroll"},
        el(
          "table",
          {class: "grid"},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["Layer", ...names.map(workloadText), "all"].map((text) => el("th", {scope: "col"}, text)),
            ),
          ),
          el(
            "tbody",
            {},
            shown.map((layer) =>
              el(
                "tr",
                {},
                el("th", {scope: "row"}, `${layer.index} ${layer.name}`),
                layer.gain.workloads.map(cell),
                cell(layer.gain),
              ),
            ),
          ),
        ),
      ),
    ];
  }

  function plans() {
    const targets = (layer) =>
      layer.targets.length ? el("p", {class: "targets"}, `alone in ${layer.targets.join(", ")}`) : null;
    return el(
      "details",
      {},
      el(
        "summary",
        {},
        "What runs in each layer, and which targets of the catalogue show its technique alone",
      ),
      el(
        "div",
        {class: "plans"},
        layers
          .filter((layer) => layer.plan || layer.targets.length)
          .map((layer) =>
            el(
              "div",
              {},
              el("b", {}, `${layer.index} ${layer.name}`),
              el(
                "ul",
                {},
                (layer.plan ?? []).map((line) => el("li", {}, line)),
              ),
              targets(layer),
            ),
          ),
      ),
    );
  }

  function company() {
    const shown = study.leave_one_out.filter((entry) => entry.gain);
    if (!shown.length) return null;
    shown.sort((a, b) => b.gain.ratio.median - a.gain.ratio.median);
    const axis = ratioAxis(shown.flatMap((entry) => [entry.gain.ratio.lo, entry.gain.ratio.hi]));
    const gaps = study.leave_one_out.filter((entry) => !entry.gain);
    return section(
      "company",
      "What each option is worth in company",
      "The whole stack over the whole stack without the option. An option whose worth here has another sign than its layer's gain says why.",
      el(
        "ol",
        {class: "worth"},
        el("li", {class: "axis", "aria-hidden": "true"}, ticksOf(axis)),
        shown.map((entry) =>
          el(
            "li",
            {class: `row g-${entry.gain.label}`},
            el(
              "div",
              {class: "name"},
              el("span", {class: "id"}, entry.option.replaceAll("_", " ")),
              el("span", {class: "tag"}, `layer ${entry.layer}`),
            ),
            ratioTrack(axis, entry.gain.ratio),
            el(
              "div",
              {class: "value"},
              el("b", {}, format.ratio(entry.gain.ratio.median)),
              labelBadge(entry.gain.label),
            ),
            entry.agrees === false ? el("div", {class: "remark"}, entry.sentence) : null,
          ),
        ),
      ),
      gaps.map((entry) => el("p", {class: "gap-note"}, `${entry.option}: ${entry.gap}`)),
    );
  }

  function timeSplit() {
    if (!Array.isArray(study.time)) return null;
    return section(
      "time",
      "Where the time goes",
      "One decode step of the whole stack while it is watched. The dark part of each bar is the least time that the measured ceilings allow for it.",
      study.time.map((split) => {
        const parts = [
          ...split.parts.map((part, i) => ({...part, tint: `c${(i % 5) + 1}`})),
          {name: "between kernels", us: split.idle_us, tint: "c6"},
          {name: "host", us: split.host_us, tint: "c6"},
        ].filter((part) => part.us > 0);
        const share = (part) => (100 * part.us) / split.step_us;
        return el(
          "figure",
          {},
          el(
            "figcaption",
            {},
            `Batch ${split.batch}: ${format.ns(split.step_us * 1e3)} a step watched, ${format.ns(split.unwatched_step_us * 1e3)} unwatched`,
          ),
          el(
            "div",
            {class: "stack", "aria-hidden": "true"},
            parts.map((part) =>
              el(
                "i",
                {class: part.tint, style: {width: `${share(part)}%`}, title: part.name},
                part.limit_us
                  ? el("b", {class: "floor", style: {width: `${Math.min(100, part.percent_of_limit)}%`}})
                  : null,
                share(part) > 9 ? el("span", {}, `${part.name} ${format.percent(share(part))}`) : null,
              ),
            ),
          ),
          el(
            "div",
            {class: "table-scroll"},
            el(
              "table",
              {class: "grid"},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  ["Part", "time", "share", "limit", "of limit", "bound by"].map((t) =>
                    el("th", {scope: "col"}, t),
                  ),
                ),
              ),
              el(
                "tbody",
                {},
                parts.map((part) =>
                  el(
                    "tr",
                    {},
                    el("th", {scope: "row"}, part.name),
                    el("td", {}, format.ns(part.us * 1e3)),
                    el("td", {}, format.percent(share(part))),
                    el("td", {}, part.limit_us ? format.ns(part.limit_us * 1e3) : "–"),
                    el("td", {}, part.limit_us ? format.percent(part.percent_of_limit) : "–"),
                    el("td", {}, part.bound_by ?? "–"),
                  ),
                ),
              ),
            ),
          ),
          el(
            "p",
            {class: "next"},
            el("b", {}, `Next bottleneck: ${split.bottleneck.kind}. `),
            `${split.bottleneck.sentence}. `,
            el("span", {class: "targets"}, split.bottleneck.targets.join(", ")),
          ),
        );
      }),
    );
  }

  function sweeps() {
    const {batch, prompts, context, precision} = study.sweeps;
    const figures = [];
    const known = batch.filter(measured);
    if (known.length > 1) {
      const x = {values: known.map((p) => p.batch), label: "batch", log: true, text: String};
      const pick = (field, part) => known.map((p) => p[field][part]);
      figures.push(
        el(
          "figure",
          {},
          el("figcaption", {}, "Throughput over batch"),
          lineChart({
            x,
            y: {label: "tok/s", text: speed},
            series: [
              {
                name: "tok/s",
                tint: "c2",
                values: pick("tok_s", "median"),
                lo: pick("tok_s", "lo"),
                hi: pick("tok_s", "hi"),
              },
            ],
          }),
        ),
        el(
          "figure",
          {},
          el("figcaption", {}, "Time per token over batch"),
          lineChart({
            x,
            y: {label: "ms", text: ms},
            series: [
              {
                name: "TPOT",
                tint: "c1",
                values: pick("tpot_ms", "median"),
                lo: pick("tpot_ms", "lo"),
                hi: pick("tpot_ms", "hi"),
              },
            ],
          }),
        ),
      );
    }
    const unique = (list, field) => [...new Set(list.map((p) => p[field]))];
    const heat = (list, {corner, row, column, rowText, columnText, value, text, small}) =>
      heatTable({
        corner,
        rows: unique(list, row).map((key) => ({key, text: rowText(key)})),
        columns: unique(list, column).map((key) => ({key, text: columnText(key)})),
        cell: (r, c) => {
          const point = list.find((p) => p[row] === r && p[column] === c);
          return measured(point)
            ? {value: value(point), text: text(point), small: small?.(point)}
            : {gap: point?.gap ?? "not measured"};
        },
      });
    const points = precision.filter(measured);
    return section(
      "sweeps",
      "Sweeps",
      "The whole stack. A point that does not fit says why.",
      el("div", {class: "figures"}, figures),
      el("h3", {}, "Latency of a step over context and batch: p50, p95"),
      heat(context, {
        corner: "context",
        row: "context",
        column: "batch",
        rowText: (v) => `${v.toLocaleString("en-US")} positions`,
        columnText: (v) => `batch ${v}`,
        value: (p) => p.p50_ms,
        text: (p) => ms(p.p50_ms),
        small: (p) => `p95 ${format.significant(p.p95_ms)}`,
      }),
      el("h3", {}, "Time to the first token over prompt length and batch"),
      heat(prompts, {
        corner: "prompt",
        row: "length",
        column: "batch",
        rowText: (v) => `${v.toLocaleString("en-US")} tokens`,
        columnText: (v) => `batch ${v}`,
        value: (p) => p.ttft_ms.median,
        text: (p) => ms(p.ttft_ms.median),
      }),
      points.length > 1
        ? [
            el("h3", {}, "Precision: speed against perplexity"),
            el(
              "p",
              {class: "note"},
              `Decoding at batch 1; perplexity over ${points[0].scored_tokens.toLocaleString("en-US")} tokens. Left is better, up is faster.`,
            ),
            scatter({
              x: {label: "perplexity", text: (v) => v.toFixed(3)},
              y: {label: "tok/s", text: (v) => format.significant(v)},
              points: points.map((p) => ({
                x: p.perplexity,
                y: p.tok_s.median,
                name: optionText(p.on).replaceAll("_", " "),
              })),
            }),
            el(
              "details",
              {},
              el("summary", {}, "The figures"),
              el(
                "div",
                {class: "table-scroll"},
                el(
                  "table",
                  {class: "grid"},
                  el(
                    "thead",
                    {},
                    el(
                      "tr",
                      {},
                      ["On", "tok/s", "perplexity", "weights"].map((t) => el("th", {scope: "col"}, t)),
                    ),
                  ),
                  el(
                    "tbody",
                    {},
                    points.map((p) =>
                      el(
                        "tr",
                        {},
                        el("th", {scope: "row"}, optionText(p.on).replaceAll("_", " ")),
                        el("td", {}, format.significant(p.tok_s.median)),
                        el("td", {}, p.perplexity.toFixed(4)),
                        el("td", {}, format.bytes(p.weight_bytes)),
                      ),
                    ),
                  ),
                ),
              ),
            ),
          ]
        : null,
    );
  }

  function serving() {
    const layer = layers.find((candidate) => candidate.serving);
    const load = study.sweeps.load.filter(measured);
    if (!layer && load.length < 2) return null;
    const row = (name, o) =>
      el(
        "tr",
        {},
        el("th", {scope: "row"}, name),
        el("td", {}, format.significant(o.tok_s)),
        el("td", {}, `${format.significant(o.ttft_ms.p50)} / ${format.significant(o.ttft_ms.p95)} ms`),
        el("td", {}, `${format.significant(o.tpot_ms.p50)} / ${format.significant(o.tpot_ms.p95)} ms`),
        el("td", {}, `${format.percent((100 * o.reused_tokens) / Math.max(1, o.prompt_tokens))}`),
        el("td", {}, format.significant(o.mean_queue)),
      );
    const x = {
      values: load.map((p) => p.of_saturation),
      label: "load, of saturation",
      text: (v) => `${Math.round(v * 100)}%`,
    };
    return section(
      "serving",
      "Serving",
      "Requests with prompts and outputs of mixed lengths, half of them with a beginning in common, through the engine's own loop.",
      layer
        ? el(
            "div",
            {class: "table-scroll"},
            el(
              "table",
              {class: "grid"},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  [
                    "At 1.5 × saturation",
                    "tok/s",
                    "TTFT p50 / p95",
                    "TPOT p50 / p95",
                    "prompt reused",
                    "mean queue",
                  ].map((t) => el("th", {scope: "col"}, t)),
                ),
              ),
              el(
                "tbody",
                {},
                row("static batches", layer.serving.before),
                row("continuous, cached, chunked", layer.serving.after),
              ),
            ),
          )
        : null,
      layer
        ? el(
            "p",
            {class: "note"},
            layer.gain.workloads
              .map(
                (w) =>
                  `${workloadText(w.name)} ${format.ratio(w.ratio.median)} (${format.interval(w.ratio)}), ${LABEL[w.label].words}`,
              )
              .join("; "),
          )
        : null,
      load.length > 1
        ? el(
            "div",
            {class: "figures"},
            el(
              "figure",
              {},
              el("figcaption", {}, "First token under Poisson load"),
              lineChart({
                x,
                y: {label: "TTFT, ms", text: ms},
                series: [
                  {name: "p50", tint: "c2", values: load.map((p) => p.ttft_ms.p50)},
                  {name: "p95", tint: "c1", values: load.map((p) => p.ttft_ms.p95)},
                ],
              }),
            ),
            el(
              "figure",
              {},
              el("figcaption", {}, "Between tokens under Poisson load"),
              lineChart({
                x,
                y: {label: "TPOT, ms", text: ms},
                series: [
                  {name: "p50", tint: "c2", values: load.map((p) => p.tpot_ms.p50)},
                  {name: "p95", tint: "c1", values: load.map((p) => p.tpot_ms.p95)},
                ],
              }),
            ),
            el(
              "figure",
              {},
              el("figcaption", {}, "Throughput under Poisson load"),
              lineChart({
                x,
                y: {label: "tok/s", text: speed},
                series: [{name: "tok/s", tint: "c3", values: load.map((p) => p.tok_s)}],
              }),
            ),
            el(
              "figure",
              {},
              el("figcaption", {}, "Queue under Poisson load"),
              lineChart({
                x,
                y: {label: "waiting for a first token", text: (v) => format.significant(v)},
                series: [{name: "mean", tint: "c1", values: load.map((p) => p.mean_queue)}],
              }),
            ),
          )
        : null,
    );
  }

  function router() {
    const r = study.router;
    if (!measured(r)) return null;
    const mean = (r.tokens * r.experts_per_token) / r.experts;
    const most = Math.max(...r.load.flat());
    const uneven = Math.max(
      0,
      r.together.findIndex(({layer}) => layer === r.most_uneven_layer),
    );
    let shown = r.together[uneven];
    let strongest = Math.max(1, ...shown.counts);
    const together = (a, b) => shown.counts[a * r.experts + b];
    const select = el(
      "select",
      {
        "aria-label": "Model layer",
        onchange(event) {
          shown = r.together[Number(event.target.value)];
          strongest = Math.max(1, ...shown.counts);
          frame.redraw();
        },
      },
      r.together.map(({layer}, index) =>
        el("option", {value: index, selected: layer === r.most_uneven_layer}, `layer ${layer}`),
      ),
    );
    return section(
      "router",
      "The router",
      `${r.tokens.toLocaleString("en-US")} tokens of text; each goes to ${r.experts_per_token} of ${r.experts} experts in every layer.`,
      el(
        "div",
        {class: "figures"},
        el(
          "figure",
          {},
          el("figcaption", {}, "Load per expert: a row per model layer"),
          heatCanvas({
            rows: r.load.length,
            columns: r.experts,
            at: (l, e) => r.load[l][e] / most,
            say: (l, e) =>
              `layer ${l}, expert ${e}: ${r.load[l][e].toLocaleString("en-US")} tokens, ${format.factor(r.load[l][e] / mean, 0)} × the mean`,
            label: "Load per expert and model layer",
          }),
          el(
            "div",
            {class: "table-scroll"},
            el(
              "table",
              {class: "grid"},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  el("th", {scope: "col"}, "Model layer"),
                  r.imbalance.map((_, l) => el("th", {scope: "col"}, String(l))),
                ),
              ),
              el(
                "tbody",
                {},
                el(
                  "tr",
                  {},
                  el("th", {scope: "row"}, "busiest over mean"),
                  r.imbalance.map((v) => el("td", {}, format.significant(v))),
                ),
              ),
            ),
          ),
        ),
        el(
          "figure",
          {},
          el("figcaption", {}, "Who is chosen together "),
          el("label", {class: "choose"}, "in", select),
          heatCanvas({
            rows: r.experts,
            columns: r.experts,
            square: true,
            at: (a, b) => together(a, b) / strongest,
            say: (a, b) =>
              a === b
                ? `expert ${a}: ${r.load[shown.layer][a].toLocaleString("en-US")} tokens`
                : `experts ${a} and ${b}: together for ${together(a, b).toLocaleString("en-US")} tokens`,
            label: "Experts chosen together",
          }),
        ),
      ),
    );
  }

  function machine() {
    const order = {fail: 0, warn: 1, unknown: 2, ok: 3};
    const findingsShown = [...study.doctor]
      .sort((a, b) => order[a.level] - order[b.level])
      .filter((f) => f.level === "warn" || f.level === "fail");
    const ceilings = study.ceilings.flatMap(({values}) => Object.entries(values));
    const {cpu, gpus} = study.machine;
    return section(
      "machine",
      "The machine",
      "What the doctor would change, and what the machine was measured to do at most.",
      findingsShown.length
        ? el(
            "table",
            {class: "plain"},
            el(
              "tbody",
              {},
              findingsShown.map((f) =>
                el(
                  "tr",
                  {},
                  el("th", {scope: "row", class: `level-${f.level}`}, f.level),
                  el("td", {}, f.reason, f.fix ? el("div", {class: "muted"}, f.fix) : null),
                ),
              ),
            ),
          )
        : el("p", {}, "The doctor found nothing to change."),
      ceilings.length
        ? el(
            "details",
            {},
            el("summary", {}, "Measured ceilings"),
            el(
              "table",
              {class: "plain"},
              el(
                "tbody",
                {},
                ceilings.map(([name, c]) =>
                  el(
                    "tr",
                    {},
                    el("th", {scope: "row"}, name),
                    el("td", {class: "number"}, format.significant(c.value, 4)),
                    el("td", {}, c.unit),
                    el("td", {class: "small"}, c.method),
                  ),
                ),
              ),
            ),
          )
        : null,
      el(
        "dl",
        {},
        [
          ["Command", study.command_line],
          ["CPU", `${cpu.model}, ${cpu.cores} cores, ${cpu.simd.join(" ")}`],
          ["GPU", gpus.map((g) => g.name).join(", ") || `none: ${study.machine.no_gpu_reason}`],
          ["System", `${study.machine.os}, ${study.machine.kernel}`],
          [
            "Gauntlet",
            `${study.build.version}, commit ${study.build.commit}, ${study.build.compiler}, ${study.build.build_type}`,
          ],
        ].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
      ),
    );
  }

  const sections = [
    findings(),
    ladder(),
    company(),
    timeSplit(),
    sweeps(),
    serving(),
    router(),
    machine(),
  ].filter(Boolean);
  const navigation = el(
    "nav",
    {"aria-label": "Sections"},
    sections.map((node) => el("a", {href: `#${node.id}`}, node.querySelector("h2").textContent)),
  );
  document.body.append(header(), navigation, el("main", {}, sections));
  frame.redraw();
})();
