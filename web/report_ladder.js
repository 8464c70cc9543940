// A lab as a ladder: each rung's time, what it added to the one before, and where a library stands.
"use strict";

const GAIN = {
  gain: {words: "gain", glyph: "▲", status: "passed"},
  no_gain: {words: "no gain", glyph: "≈", status: "no_gain"},
  loss: {words: "loss", glyph: "▼", status: "regressed"},
};

function gainBadge(verdict) {
  const {words, glyph, status} = GAIN[verdict];
  return el(
    "span",
    {class: `badge s-${status}`},
    el("span", {class: "glyph", "aria-hidden": "true"}, glyph),
    words,
  );
}

function witnessCell(witness) {
  if (!witness || !witness.source || witness.source === "none") return el("span", {class: "muted"}, "none");
  if (!witness.collected) return el("span", {class: "muted"}, "not collected");
  return el(
    "span",
    {class: witness.moved ? "" : "s-wrong ink"},
    `${format.short(witness.before)} → ${format.short(witness.after)}${witness.moved ? "" : " ✕"}`,
  );
}

// What a side is to the rungs: its step, and how many times faster than the first rung it is.
function rungsOf(result) {
  const to = (side, kind) => result.comparisons.find((c) => c.to === side.name && c.kind === kind);
  let before = 1;
  return result.sides.map((side) => {
    const step = to(side, "step");
    const total = to(side, "total") ?? step;
    const speedup = total?.speedup.value ?? result.first.ns.value / side.ns.value;
    const rung = {side, step, total, speedup, before, yardstick: side.role === "yardstick"};
    before = speedup;
    return rung;
  });
}

function rungTrack(axis, rung, yardsticks) {
  const {side, step, total, speedup, before, yardstick} = rung;
  const span = (from, to) => {
    const ends = [axis.at(from), axis.at(to)].sort((a, b) => a - b);
    return {left: `${ends[0]}%`, width: `${ends[1] - ends[0]}%`};
  };
  return el(
    "div",
    {class: "track", "aria-hidden": "true"},
    yardsticks.map((at) => el("i", {class: "mark", style: {left: `${axis.at(at)}%`}})),
    yardstick
      ? el("i", {class: "diamond", style: {left: `${axis.at(speedup)}%`}, title: side.name})
      : [
          step ? el("i", {class: "reached", style: span(1, before)}) : null,
          step ? el("i", {class: "added", style: span(before, speedup)}) : null,
          total && total.speedup.lo !== null
            ? el("i", {class: "interval", style: span(total.speedup.lo, total.speedup.hi)})
            : el("i", {class: "dot", style: {left: `${axis.at(speedup)}%`}}),
        ],
  );
}

function rungRow(axis, rung, yardsticks) {
  const {side, step, total, yardstick} = rung;
  const verdict = step?.verdict ?? "no_gain";
  const cell = (name, label, content) =>
    el(
      "div",
      {class: content ? name : `${name} none`, role: "cell"},
      el("span", {class: "label"}, label),
      content || el("span", {class: "muted"}, "–"),
    );
  return el(
    "li",
    {class: `lab-row s-${GAIN[verdict].status}${yardstick ? " yardstick" : ""}`, role: "row"},
    el(
      "div",
      {class: "rung-name", role: "rowheader"},
      el("span", {class: "id"}, side.name),
      yardstick ? el("span", {class: "tag"}, "yardstick") : null,
    ),
    rungTrack(axis, rung, yardsticks),
    cell(
      "step",
      "step",
      step
        ? [
            el("b", {}, format.ratio(step.speedup.value)),
            el("small", {}, format.interval(step.speedup)),
            gainBadge(step.verdict),
          ]
        : null,
    ),
    cell("total", "total", total && el("b", {}, format.ratio(total.speedup.value))),
    cell("time", "time", format.ns(side.ns.value)),
    cell("ceiling", "of ceiling", side.ceiling_percent > 0 && format.percent(side.ceiling_percent)),
    cell("seen", "witness", step && witnessCell(step.witness)),
  );
}

function ladderChart(result) {
  const rungs = rungsOf(result);
  const known = rungs.flatMap(({total, speedup}) => [
    total?.speedup.lo ?? speedup,
    total?.speedup.hi ?? speedup,
  ]);
  const axis = logAxis(Math.min(1, ...known), Math.max(1.5, ...known), 6);
  const yardsticks = rungs.filter((rung) => rung.yardstick).map((rung) => rung.speedup);
  const against = result.comparisons
    .filter((comparison) => comparison.kind === "yardstick")
    .map(({from, to, speedup}) =>
      el(
        "p",
        {class: "against"},
        el("span", {class: "id"}, to),
        " runs at ",
        el("b", {}, format.ratio(speedup.value)),
        " the speed of the yardstick ",
        el("span", {class: "id"}, from),
        ` (${format.interval(speedup)}).`,
      ),
    );
  const head = (name, text) => el("div", {class: name, role: "columnheader"}, text);
  return el(
    "article",
    {class: "lab"},
    el(
      "h3",
      {},
      el("a", {href: linkTo(result), class: "id"}, result.id),
      sweepLabel(result) ? el("span", {class: "muted"}, ` ${sweepLabel(result)}`) : null,
      backendTag(result),
      statusBadge(result.status),
      el("b", {class: "figure"}, format.ratio(result.headline.speedup.value)),
    ),
    el("p", {class: "note"}, result.title),
    el(
      "ol",
      {
        class: "lab-rows",
        role: "table",
        "aria-label": `Rungs of ${result.id}`,
        style: {"--steps": String(axis.steps)},
      },
      el(
        "li",
        {class: "lab-row heads", role: "row"},
        head("rung-name", "rung"),
        el(
          "div",
          {class: "ticks", "aria-hidden": "true"},
          axis.ticks.map(([at, text]) => el("span", {style: {left: `${at}%`}}, text)),
        ),
        head("step", "step, 95% interval"),
        head("total", "total"),
        head("time", "time"),
        head("ceiling", "of ceiling"),
        head("seen", "witness"),
      ),
      rungs.map((rung) => rungRow(axis, rung, yardsticks)),
    ),
    against,
    result.unwitnessed ? el("p", {class: "note"}, sentence(result.unwitnessed)) : null,
  );
}
