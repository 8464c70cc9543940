// Where a step's time goes, and which experts the text went to.
"use strict";

function timeSection() {
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
        gridTable(
          ["Part", "time", "share", "limit", "of limit", "bound by"],
          parts.map((part) => [
            part.name,
            format.ns(part.us * 1e3),
            format.percent(share(part)),
            part.limit_us ? format.ns(part.limit_us * 1e3) : "–",
            part.limit_us ? format.percent(part.percent_of_limit) : "–",
            part.bound_by ?? "–",
          ]),
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

function routerSection() {
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
    `${count(r.tokens)} tokens of text; each goes to ${r.experts_per_token} of ${r.experts} experts in every layer.`,
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
            `layer ${l}, expert ${e}: ${count(r.load[l][e])} tokens, ${format.factor(r.load[l][e] / mean, 0)} × the mean`,
          label: "Load per expert and model layer",
        }),
        gridTable(
          ["Model layer", ...r.imbalance.map((_, l) => String(l))],
          [["busiest over mean", ...r.imbalance.map((v) => format.significant(v))]],
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
              ? `expert ${a}: ${count(r.load[shown.layer][a])} tokens`
              : `experts ${a} and ${b}: together for ${count(together(a, b))} tokens`,
          label: "Experts chosen together",
        }),
      ),
    ),
  );
}
