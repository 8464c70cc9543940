// Sweeps of the whole stack: batch, context, prompts, precision.
"use strict";

function sweepSection() {
  const {batch, prompts, context, precision} = study.sweeps;
  const known = batch.filter(measured);
  const overBatch = (caption, field, tint, y) =>
    chartFigure(
      caption,
      lineChart({
        x: {values: known.map((p) => p.batch), label: "batch", log: true, text: String},
        y,
        series: [
          {
            name: y.name,
            tint,
            values: known.map((p) => p[field].value),
            lo: known.map((p) => p[field].lo),
            hi: known.map((p) => p[field].hi),
          },
        ],
      }),
    );
  const figures =
    known.length > 1
      ? [
          overBatch("Throughput over batch", "tok_s", "c2", {name: "tok/s", label: "tok/s", text: speed}),
          overBatch("Time per token over batch", "tpot_ms", "c1", {name: "TPOT", label: "ms", text: ms}),
        ]
      : [];
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
      rowText: (v) => `${count(v)} positions`,
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
      rowText: (v) => `${count(v)} tokens`,
      columnText: (v) => `batch ${v}`,
      value: (p) => p.ttft_ms.value,
      text: (p) => ms(p.ttft_ms.value),
    }),
    points.length > 1
      ? [
          el("h3", {}, "Precision: speed against perplexity"),
          el(
            "p",
            {class: "note"},
            `Decoding at batch 1; perplexity over ${count(points[0].scored_tokens)} tokens. Left is better, up is faster.`,
          ),
          scatter({
            x: {label: "perplexity", text: (v) => v.toFixed(3)},
            y: {label: "tok/s", text: (v) => format.significant(v)},
            points: points.map((p) => ({
              x: p.perplexity,
              y: p.tok_s.value,
              name: optionText(p.on),
            })),
          }),
          el(
            "details",
            {},
            el("summary", {}, "The figures"),
            gridTable(
              ["On", "tok/s", "perplexity", "weights"],
              points.map((p) => [
                optionText(p.on),
                format.significant(p.tok_s.value),
                p.perplexity.toFixed(4),
                format.bytes(p.weight_bytes),
              ]),
            ),
          ),
        ]
      : null,
  );
}
