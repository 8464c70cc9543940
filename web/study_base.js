// What the sections of a study's page share: words for figures, tables, figures.
"use strict";

const study = JSON.parse(document.getElementById("data").textContent);

const measured = (entry) => entry !== null && entry !== undefined && !("gap" in entry);
const decodes = (layer) => (layer.figures ?? []).filter((figure) => figure.name !== "prompt");
const ms = (value) => `${format.significant(value)} ms`;
const speed = (value) => `${format.significant(value)} tok/s`;
const count = (value) => value.toLocaleString("en-US");
const plainWords = (id) => id.replaceAll("_", " ");
const optionText = (on) => (on.length ? plainWords(on.join(" + ")) : "none");
const layerName = (layer) => `${layer.index} ${layer.name}`;
const workloadText = (name) =>
  ({
    prompt: "prompt",
    makespan: "all done",
    first_token_p50: "first token",
    answer_p50: "whole answer",
    between_tokens_p95: "between tokens",
  })[name] ?? name.replace("decode_", "batch ");

// Rows are lists of cells: the first heads its row, nodes stay as they are, texts become cells.
function gridTable(head, rows, kind = "") {
  const cell = (value) => (value instanceof Node ? value : el("td", {}, value));
  return el(
    "div",
    {class: "table-scroll"},
    el(
      "table",
      {class: `grid ${kind}`},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((text) => (text instanceof Node ? text : el("th", {scope: "col"}, text))),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map(([name, ...cells]) => el("tr", {}, el("th", {scope: "row"}, name), cells.map(cell))),
      ),
    ),
  );
}

const chartFigure = (caption, ...content) => el("figure", {}, el("figcaption", {}, caption), content);
