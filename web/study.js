// Puts the study's page together: what was found, the ladder, sweeps, serving, the router, the machine.
"use strict";

function header() {
  const layers = study.layers;
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
  const where = study.backend === "cuda" ? machine.gpus.map((gpu) => gpu.name).join(", ") : machine.cpu.model;
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
      backendTag({backend: study.backend}),
    ),
    el(
      "p",
      {class: "meta"},
      [
        format.utc(study.started_at),
        `commit ${study.build.commit}`,
        `${study.depth} study`,
        `${cells.measured - cells.left_out} of ${cells.planned} cells measured`,
        cells.left_out ? `${cells.left_out} left out for lack of time` : null,
        `${model.layers} layers, ${model.experts} experts, ${model.experts_per_token} per token, ${model.weights === "random" ? "random weights" : "trained weights"}`,
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    el(
      "div",
      {class: "cards"},
      gain
        ? card(
            format.ratio(gain.ratio.value),
            "",
            `the baseline's decode speed at batch 1, with everything on (${format.interval(gain.ratio)})`,
          )
        : null,
      decode
        ? card(
            format.significant(decode.tok_s.value),
            "tok/s",
            decode.percent_of_limit === null
              ? "decoding at batch 1"
              : `decoding at batch 1: ${format.percent(decode.percent_of_limit)} of what ${decode.bound_by} allows`,
          )
        : null,
      best ? card(format.significant(best.tok_s.value), "tok/s", `decoding at batch ${best.batch}`) : null,
      judged.length
        ? card(`${verified} / ${judged.length}`, "", "layers verified against the one before")
        : null,
    ),
  );
}

const findingsSection = () =>
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

function machineSection() {
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
        ["GPU", gpus.map((g) => g.name).join(", ") || study.machine.no_gpu_reason || "not used"],
        ["System", `${study.machine.os}, ${study.machine.kernel}`],
        [
          "Gauntlet",
          `${study.build.version}, commit ${study.build.commit}, ${study.build.compiler}, ${study.build.build_type}`,
        ],
      ].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
  );
}

(function main() {
  const sections = [
    findingsSection(),
    ladderSection(),
    companySection(),
    timeSection(),
    sweepSection(),
    servingSection(),
    routerSection(),
    machineSection(),
  ].filter(Boolean);
  const navigation = el(
    "nav",
    {"aria-label": "Sections"},
    sections.map((node) => el("a", {href: `#${node.id}`}, node.querySelector("h2").textContent)),
  );
  document.body.append(header(), navigation, el("main", {}, sections));
  frame.redraw();
})();
