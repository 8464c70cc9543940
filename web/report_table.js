// The table of results: sorts by any column; each row opens to everything that is known about the target.
"use strict";

const missing = (value) => value === null || value === undefined || value === "";

function witnessCell(witness) {
  if (!witness.source || witness.source === "none") return el("span", {class: "muted"}, "none");
  if (!witness.collected) return el("span", {class: "muted"}, "not collected");
  return el(
    "span",
    {class: witness.moved ? "" : "s-wrong ink"},
    `${format.significant(witness.baseline)} → ${format.significant(witness.optimized)}${witness.moved ? "" : " ✕"}`,
  );
}

// value: what is sorted by, missing values last; cell: what is shown, where `shown` (or, without one, where there is a
// value); hide: the width class below which the column is dropped.
const COLUMNS = [
  {key: "id", label: "Target", value: (r) => anchorOf(r), cell: null},
  {key: "backend", label: "On", value: (r) => r.backend, cell: (r) => backendTag(r.backend)},
  {key: "status", label: "Status", value: (r) => STATUS[r.status].order, cell: (r) => statusBadge(r.status)},
  {
    key: "speedup",
    label: "Speedup",
    number: true,
    value: (r) => (hasFigures(r) ? r.speedup.median : null),
    cell: (r) => el("b", {}, format.ratio(r.speedup.median)),
  },
  {
    key: "interval",
    label: "95% interval",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.speedup.lo : null),
    cell: (r) => format.interval(r.speedup),
  },
  {
    key: "baseline",
    label: "Baseline",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.baseline?.median_ns : null),
    cell: (r) => format.ns(r.baseline.median_ns),
  },
  {
    key: "optimized",
    label: "Optimized",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.optimized?.median_ns : null),
    cell: (r) => format.ns(r.optimized.median_ns),
  },
  {
    key: "gb",
    label: "GB/s",
    number: true,
    hide: "medium",
    value: (r) => (hasFigures(r) && r.optimized?.gb_per_s) || null,
    cell: (r) => format.significant(r.optimized.gb_per_s),
  },
  {
    key: "gflop",
    label: "GFLOP/s",
    number: true,
    hide: "wide",
    value: (r) => (hasFigures(r) && r.optimized?.gflop_per_s) || null,
    cell: (r) => format.significant(r.optimized.gflop_per_s),
  },
  {
    key: "ceiling",
    label: "Of ceiling",
    number: true,
    hide: "small",
    value: (r) => (hasFigures(r) && r.ceiling_percent) || null,
    cell: (r) => format.percent(r.ceiling_percent),
  },
  {
    key: "spread",
    label: "Spread",
    number: true,
    hide: "wide",
    value: (r) => (hasFigures(r) ? r.optimized?.spread : null),
    cell: (r) => format.percent(100 * r.optimized.spread),
  },
  {
    key: "witness",
    label: "Witness",
    number: true,
    hide: "medium",
    value: (r) => (r.witness.collected ? r.witness.optimized / r.witness.baseline : null),
    cell: (r) => witnessCell(r.witness),
    shown: hasFigures,
  },
];

function compareBy(column, direction) {
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (missing(x) || missing(y)) return missing(x) - missing(y) || a.index - b.index;
    const order = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y;
    return order * direction || a.index - b.index;
  };
}

const pairs = (entries) => {
  const known = entries.filter(([, value]) => !missing(value));
  return known.length
    ? el(
        "dl",
        {},
        known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
      )
    : null;
};

function numbersTable(caption, rows) {
  if (!rows.length) return null;
  return el(
    "table",
    {class: "numbers"},
    el("caption", {}, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["", "baseline", "optimized", "unit"].map((text) => el("th", {scope: "col"}, text)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(([name, baseline, optimized, unit]) =>
        el(
          "tr",
          {},
          el("th", {scope: "row"}, name),
          el("td", {}, baseline),
          el("td", {}, optimized),
          el("td", {class: "unit"}, unit),
        ),
      ),
    ),
  );
}

const metricRows = (metrics) =>
  Object.entries(metrics).map(([name, metric]) => [
    name,
    format.significant(metric.baseline),
    format.significant(metric.optimized),
    metric.unit,
  ]);

function sideRows({baseline, optimized}) {
  if (!baseline || !optimized) return [];
  const row = (name, unit, text) => [name, text(baseline), text(optimized), unit];
  return [
    row("time, median", "", (side) => format.ns(side.median_ns)),
    row("time, 95% interval", "", (side) => format.ns(side.lo_ns, side.hi_ns)),
    row("spread (IQR / median)", "%", (side) => format.significant(100 * side.spread, 2)),
    row("samples", "", (side) => side.samples.toLocaleString("en-US")),
    row("bandwidth", "GB/s", (side) => format.significant(side.gb_per_s)),
    row("arithmetic", "GFLOP/s", (side) => format.significant(side.gflop_per_s)),
    row("of ceiling", "%", (side) => format.significant(side.ceiling_percent)),
  ];
}

function witnessText(witness) {
  if (!witness.source || witness.source === "none")
    return [["Witness", `none: ${witness.meaning || "nothing to read"}`]];
  const outcome = !witness.collected
    ? `not collected: ${witness.why_not || "no reason given"}`
    : `${format.significant(witness.baseline)} → ${format.significant(witness.optimized)}, ${witness.moved ? "moved as claimed" : "did not move as claimed"}`;
  return [
    ["Witness", outcome],
    ["Shows", witness.meaning],
    ["Read from", `${witness.source} ${witness.name}`],
    ["Expected", witness.expected],
  ];
}

function verificationText({verification}) {
  if (!verification.checks) return "not verified: the target did not get that far";
  return (
    `largest relative error ${format.significant(verification.max_error)}, allowed ${format.significant(verification.bound)}; ` +
    `${verification.checks} checks over ${format.percent(verification.checked_percent)} of the elements`
  );
}

function conditionsText({conditions, samples, seconds}) {
  const range = (lo, hi) =>
    lo === hi ? format.significant(hi, 4) : `${format.significant(lo, 4)} – ${format.significant(hi, 4)}`;
  if (!conditions.blocks) return [["Wall time", `${format.significant(seconds)} s`]];
  return [
    [
      "Measured in",
      `${conditions.processes} processes, ${conditions.blocks} blocks, ${samples.toLocaleString("en-US")} samples, ` +
        `${conditions.cold ? "cold" : "hot"} cache, ${format.significant(seconds)} s`,
    ],
    [
      "Dropped",
      conditions.dropped_blocks ? `${conditions.dropped_blocks} of the blocks, thermally slowed` : "",
    ],
    [
      "SM clock",
      conditions.sm_clock_mhz_max
        ? `${range(conditions.sm_clock_mhz_min, conditions.sm_clock_mhz_max)} MHz`
        : "",
    ],
    ["Power", conditions.power_w_max ? `up to ${format.significant(conditions.power_w_max)} W` : ""],
    [
      "Temperature",
      conditions.temperature_c_max ? `up to ${format.significant(conditions.temperature_c_max)} °C` : "",
    ],
    [
      "Throttling",
      conditions.throttle_reasons.join(", ") || (conditions.sm_clock_mhz_max ? "none seen" : ""),
    ],
  ];
}

function details(result) {
  const block = (title, ...content) =>
    content.some(Boolean) ? el("div", {class: "block"}, el("h3", {}, title), content) : null;
  return el(
    "div",
    {class: "details"},
    result.reason
      ? el(
          "p",
          {class: `reason s-${result.status}`},
          el("b", {}, `${STATUS[result.status].words}: `),
          result.reason,
        )
      : null,
    el("p", {class: "claim"}, result.claim),
    result.notes.map((note) => el("p", {class: "note"}, `Note: ${note}`)),
    el(
      "div",
      {class: "blocks"},
      block(
        "What",
        pairs([
          ["Pair", result.title],
          ["Technique", result.technique],
          ["Goal", result.goal.replace("_", " ")],
          ["Kind", result.kind],
          [
            "Knobs",
            Object.entries(result.knobs)
              .map(([name, value]) => `${name}=${value}`)
              .join("  "),
          ],
          ["Bound by", result.bound_by],
          ["Intensity", result.intensity ? `${format.significant(result.intensity)} FLOP/byte` : ""],
          ["Log", result.log],
        ]),
      ),
      block("Evidence", pairs([["Verified", verificationText(result)], ...witnessText(result.witness)])),
      block("Conditions", pairs(conditionsText(result))),
      hasFigures(result) ? block("Sides", numbersTable("Both sides", sideRows(result))) : null,
      block("Metrics", numbersTable("Metrics of the pair", metricRows(result.metrics))),
      block("Counters", numbersTable("Hardware counters", metricRows(result.counters))),
    ),
  );
}

// Roles are spelled out because the phone layout's display: grid would take the native ones away.
// The table keeps its rows; show(results) puts the given ones in the current order.
function resultsTable(all) {
  let sort = {key: null, direction: 1};
  let shown = all;
  const rows = new Map();
  const body = el("tbody", {});
  const headers = COLUMNS.map((column) =>
    el(
      "th",
      {scope: "col", class: `${column.number ? "number " : ""}${column.hide ?? ""}`},
      el(
        "button",
        {type: "button", "data-sort": column.key, onclick: () => sortBy(column.key)},
        column.label,
        el("span", {class: "arrow", "aria-hidden": "true"}),
      ),
    ),
  );
  const table = el(
    "table",
    {class: "results", role: "table"},
    el("caption", {class: "hidden-text"}, "Results, one row per target and backend"),
    el("thead", {}, el("tr", {}, headers)),
    body,
  );
  const chooser = el(
    "select",
    {id: "sort-by", onchange: () => sortBy(chooser.value)},
    el("option", {value: ""}, "run order"),
    COLUMNS.map((column) => el("option", {value: column.key}, column.label)),
  );

  function sortBy(key) {
    const column = COLUMNS.find((candidate) => candidate.key === key);
    const first = column?.number ? -1 : 1;
    sort = !column ? {key: null, direction: 1} : {key, direction: sort.key === key ? -sort.direction : first};
    COLUMNS.forEach((candidate, index) => {
      const here = candidate.key === sort.key;
      if (here) headers[index].setAttribute("aria-sort", sort.direction > 0 ? "ascending" : "descending");
      else headers[index].removeAttribute("aria-sort");
    });
    chooser.value = sort.key ?? "";
    fill();
  }

  function toggle(result, open) {
    const row = rows.get(result);
    const isOpen = row.detail !== null;
    if (isOpen === (open ?? !isOpen)) return;
    row.button.setAttribute("aria-expanded", String(!isOpen));
    row.main.classList.toggle("open", !isOpen);
    if (isOpen) {
      row.detail.remove();
      row.detail = null;
    } else {
      row.detail = el(
        "tr",
        {class: "detail", role: "row", id: `detail-${result.index}`},
        el("td", {role: "cell", colspan: COLUMNS.length}, details(result)),
      );
      row.main.after(row.detail);
    }
  }

  function makeRow(result) {
    const button = el(
      "button",
      {
        type: "button",
        class: "opener",
        "aria-expanded": "false",
        "aria-controls": `detail-${result.index}`,
        onclick: (event) => {
          event.stopPropagation();
          toggle(result);
        },
      },
      el("span", {class: "chevron", "aria-hidden": "true"}),
      el(
        "span",
        {class: "id"},
        result.id,
        sweepLabel(result) ? el("span", {class: "muted"}, ` ${sweepLabel(result)}`) : null,
      ),
    );
    const cells = COLUMNS.map((column) => {
      if (column.key === "id") {
        return el(
          "th",
          {scope: "row", role: "rowheader"},
          button,
          el(
            "span",
            {class: "technique"},
            result.technique,
            result.kind === "demonstration" ? " · demonstration" : "",
          ),
        );
      }
      const empty = column.shown ? !column.shown(result) : missing(column.value(result));
      return el(
        "td",
        {role: "cell", class: `${column.number ? "number " : ""}${column.hide ?? ""}`},
        empty ? el("span", {class: "muted"}, "–") : column.cell(result),
      );
    });
    const main = el(
      "tr",
      {
        class: "main",
        role: "row",
        id: anchorOf(result),
        onclick: (event) => {
          if (!event.target.closest("a, button") && getSelection().isCollapsed) toggle(result);
        },
      },
      cells,
    );
    return {main, button, detail: null};
  }

  function fill() {
    const order =
      sort.key === null
        ? [...shown]
        : [...shown].sort(
            compareBy(
              COLUMNS.find((column) => column.key === sort.key),
              sort.direction,
            ),
          );
    body.replaceChildren(
      ...order.flatMap((result) => {
        const {main, detail} = rows.get(result);
        return detail ? [main, detail] : [main];
      }),
    );
    if (!order.length)
      body.append(
        el("tr", {}, el("td", {class: "empty", colspan: COLUMNS.length}, "No result matches these filters.")),
      );
  }

  for (const result of all) rows.set(result, makeRow(result));
  fill();
  return {
    node: el(
      "div",
      {},
      el(
        "p",
        {class: "table-tools"},
        el("label", {for: "sort-by", class: "sort-label"}, "Sort by "),
        chooser,
        el(
          "button",
          {type: "button", onclick: () => shown.forEach((result) => toggle(result, true))},
          "Open all",
        ),
        el(
          "button",
          {type: "button", onclick: () => shown.forEach((result) => toggle(result, false))},
          "Close all",
        ),
      ),
      el("div", {class: "table-scroll"}, table),
    ),
    show(results) {
      shown = results;
      fill();
    },
    reveal(result) {
      toggle(result, true);
      rows.get(result).main.scrollIntoView({block: "start"});
      rows.get(result).button.focus({preventScroll: true});
    },
  };
}
