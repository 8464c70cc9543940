// Serving: the policies of the last layer, and how the stack takes load.
"use strict";

function loadFigures(load) {
  const x = {
    values: load.map((p) => p.of_saturation),
    label: "load, of saturation",
    text: (v) => `${Math.round(v * 100)}%`,
  };
  const underLoad = (what, y, series) => chartFigure(`${what} under Poisson load`, lineChart({x, y, series}));
  const percentiles = (field) => [
    {name: "p50", tint: "c2", values: load.map((p) => p[field].p50)},
    {name: "p95", tint: "c1", values: load.map((p) => p[field].p95)},
  ];
  const one = (name, tint, field) => [{name, tint, values: load.map((p) => p[field])}];
  return el(
    "div",
    {class: "figures"},
    underLoad("First token", {label: "TTFT, ms", text: ms}, percentiles("ttft_ms")),
    underLoad("Between tokens", {label: "TPOT, ms", text: ms}, percentiles("tpot_ms")),
    underLoad("Throughput", {label: "tok/s", text: speed}, one("tok/s", "c3", "tok_s")),
    underLoad(
      "Queue",
      {label: "waiting for a first token", text: (v) => format.significant(v)},
      one("mean", "c1", "mean_queue"),
    ),
  );
}

function servedTable({before, after}) {
  const pair = ({p50, p95}) => `${format.significant(p50)} / ${format.significant(p95)} ms`;
  const row = (name, o) => [
    name,
    format.significant(o.tok_s),
    pair(o.ttft_ms),
    pair(o.tpot_ms),
    pair(o.answer_ms),
    format.percent((100 * o.reused_tokens) / Math.max(1, o.prompt_tokens)),
    format.significant(o.mean_queue),
  ];
  return gridTable(
    [
      "At 1.5 × saturation",
      "tok/s",
      "TTFT p50 / p95",
      "TPOT p50 / p95",
      "answer p50 / p95",
      "prompt reused",
      "mean queue",
    ],
    [
      row("static batches", before),
      row(`continuous, cached, chunked${after.speculation ? ", guessing" : ""}`, after),
    ],
  );
}

function guessesNote({steps, drafted, accepted, by_position}) {
  if (steps === 0) return "Nothing was guessed.";
  const right = by_position.map((count) => format.percent((100 * count) / steps));
  const reach = right.length > 0 ? right.join(", ") : "none";
  return `${accepted} of ${drafted} guesses were right; of ${steps} drafts, as far as position 1, 2, …: ${reach}.`;
}

function servingSection() {
  const layer = study.layers.find((candidate) => candidate.serving);
  const load = study.sweeps.load.filter(measured);
  const gaps = study.sweeps.load.filter((point) => point.gap);
  if (!layer && load.length < 2) return null;
  const gains = layer?.gain.workloads.map(
    (w) =>
      `${workloadText(w.name)} ${format.ratio(w.ratio.value)} (${format.interval(w.ratio)}), ${LABEL[w.label].words}${w.beside ? ", beside the gain: the price of letting requests in early, which the whole answer includes" : ""}`,
  );
  return section(
    "serving",
    "Serving",
    "Requests with prompts and outputs of mixed lengths, half of them with a beginning in common, through the engine's own loop.",
    layer ? [servedTable(layer.serving), el("p", {class: "note"}, gains.join("; "))] : null,
    layer?.serving.after.speculation
      ? el("p", {class: "note"}, guessesNote(layer.serving.after.speculation))
      : null,
    load.length > 1 ? loadFigures(load) : null,
    gaps.map((p) =>
      el("p", {class: "gap-note"}, `${Math.round(100 * p.of_saturation)}% of saturation: ${p.gap}`),
    ),
  );
}
