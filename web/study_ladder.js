// The ladder: what each layer gained, what it is, and what each option is worth in company.
"use strict";

const TINTS = ["c1", "c2", "c3"];

function rung(layer, speeds, gains) {
  const what = el(
    "div",
    {class: "what"},
    el("b", {}, layerName(layer)),
    el("small", {}, layer.options.length ? plainWords(layer.options.join(", ")) : layer.title),
  );
  if (layer.gap) return el("li", {class: "rung missing"}, what, el("div", {class: "why gap-note"}, layer.gap));
  const dots = decodes(layer).map((figure, i) => ({
    at: speeds.at(figure.tok_s.value),
    text: format.significant(figure.tok_s.value),
    tint: TINTS[i],
  }));
  const ends = dots.map((dot) => dot.at);
  // A number is left out where it would stand on another; the table below has them all.
  const written = dots.filter((dot, i) =>
    dots.slice(0, i).every((other) => Math.abs(other.at - dot.at) > 14),
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
        written.map((dot) =>
          el("i", {class: "tag-at", style: {left: `${Math.min(94, Math.max(6, dot.at))}%`}}, dot.text),
        ),
      );
  const check = layer.verification;
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
            el("b", {}, format.ratio(layer.gain.ratio.value)),
            " ",
            el("small", {class: "muted"}, format.interval(layer.gain.ratio)),
          )
        : el("span", {class: "muted"}, "where it starts"),
      layer.gain ? labelBadge(layer.gain.label) : null,
      check && "verified" in check && !check.verified
        ? el("span", {class: "badge g-wrong"}, "✕ not verified")
        : null,
    ),
  );
}

function ladderSection() {
  const layers = study.layers;
  const all = layers.flatMap((layer) => decodes(layer).map((figure) => figure.tok_s.value));
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
    gainTable(),
    layerTable(),
    checkTable(),
    plans(),
  );
}

function gainTable() {
  const shown = study.layers.filter((layer) => layer.gain && !layer.serving);
  if (!shown.length) return null;
  const names = shown[0].gain.workloads.map((workload) => workloadText(workload.name));
  const cell = (gain) =>
    el(
      "td",
      {class: `shade g-${gain.label}`, style: {"--depth": gain.label === "no_gain" ? "8%" : "18%"}},
      format.ratio(gain.ratio.value),
      el("small", {}, ` ${format.interval(gain.ratio)}`),
    );
  return [
    el("h3", {}, "Gain by workload"),
    gridTable(
      ["Layer", ...names, "all"],
      shown.map((layer) => [layerName(layer), ...layer.gain.workloads.map(cell), cell(layer.gain)]),
    ),
  ];
}

function energyCells(layer) {
  const points = measured(layer.energy) ? layer.energy.points : [];
  const at = (end) => (points.length ? joules(points.at(end).joules_per_token) : "–");
  return [at(0), at(-1)];
}

const joules = (value) =>
  value < 1 ? `${format.significant(1e3 * value)} mJ` : `${format.significant(value)} J`;

function energyNote() {
  const told = study.layers.find((layer) => measured(layer.energy));
  if (told) return el("p", {class: "note"}, `Energy per token: ${told.energy.source}.`);
  const gap = study.layers.find((layer) => layer.energy?.gap)?.energy.gap;
  return gap ? el("p", {class: "note"}, `Energy per token: ${gap}.`) : null;
}

function layerTable() {
  const batches = decodes(study.layers.find((layer) => layer.figures)).map((figure) => figure.batch);
  const energy = study.layers.some((layer) => measured(layer.energy));
  const ends = [batches[0], batches.at(-1)];
  const head = [
    "Layer",
    "TTFT",
    "TPOT",
    ...batches.map((b) => `tok/s at ${b}`),
    "of limit at 1",
    ...(energy ? ends.map((b) => `energy/token at ${b}`) : []),
    "weights",
    "KV per position",
  ];
  const rows = study.layers
    .filter((layer) => layer.figures)
    .map((layer) => {
      const limit = decodes(layer)[0].percent_of_limit;
      return [
        layerName(layer),
        ms(layer.ttft_ms.value),
        ms(layer.tpot_ms.value),
        ...decodes(layer).map((figure) => format.significant(figure.tok_s.value)),
        limit === null ? "–" : format.percent(limit),
        ...(energy ? energyCells(layer) : []),
        format.bytes(layer.weight_bytes),
        format.bytes(layer.kv_bytes_per_position),
      ];
    });
  return [el("h3", {}, "Figures of each layer"), gridTable(head, rows, "figures-table"), energyNote()];
}

// How each layer was verified, and what that check leaves out.
function checkTable() {
  const by = {
    reference: "reference",
    tokens: "same tokens",
    choices: "same choices",
    perplexity: "perplexity",
  };
  const judged = study.layers.filter((layer) => layer.verification);
  const row = (layer) => {
    const check = layer.verification;
    const failed = check.verified === false;
    return [
      layerName(layer),
      el("td", {class: `text${failed ? " bad" : ""}`}, failed ? "✕ not verified" : (by[check.by] ?? "gap")),
      el(
        "td",
        {class: `text${failed ? " bad" : ""}`},
        check.sentence ?? check.gap,
        check.not_covered ? el("div", {class: "muted"}, check.not_covered) : null,
      ),
    ];
  };
  const left = (text) => el("th", {scope: "col", class: "text"}, text);
  return [
    el("h3", {}, "Verified by"),
    gridTable(["Layer", left("check"), left("what it found")], judged.map(row), "check-table"),
  ];
}

function plans() {
  const layers = study.layers;
  const targets = (layer) =>
    layer.targets.length ? el("p", {class: "targets"}, `alone in ${layer.targets.join(", ")}`) : null;
  return el(
    "details",
    {},
    el("summary", {}, "What runs in each layer, and which targets of the catalogue show its technique alone"),
    el(
      "div",
      {class: "plans"},
      layers
        .filter((layer) => layer.plan || layer.targets.length)
        .map((layer) =>
          el(
            "div",
            {},
            el("b", {}, layerName(layer)),
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

function companySection() {
  const shown = study.leave_one_out.filter((entry) => entry.gain);
  if (!shown.length) return null;
  shown.sort((a, b) => b.gain.ratio.value - a.gain.ratio.value);
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
            el("span", {class: "id"}, plainWords(entry.option)),
            el("span", {class: "tag"}, `layer ${entry.layer}`),
          ),
          ratioTrack(axis, entry.gain.ratio),
          el(
            "div",
            {class: "value"},
            el("b", {}, format.ratio(entry.gain.ratio.value)),
            labelBadge(entry.gain.label),
          ),
          entry.sign && entry.sign !== "same" ? el("div", {class: "remark"}, entry.sentence) : null,
        ),
      ),
    ),
    gaps.map((entry) => el("p", {class: "gap-note"}, `${plainWords(entry.option)}: ${entry.gap}`)),
  );
}
