// The table of results: sorts by any column; each row opens to everything that is known about the target.
"use strict";

const missing = (value) => value === null || value === undefined || value === "";

// A ladder has a witness per step; those of a pair are shown as they moved.
function witnessSummary(result) {
  if (!result.ladder) return witnessCell(result.headline.witness);
  const steps = result.comparisons.filter((comparison) => comparison.kind === "step");
  const shown = steps.filter(({witness}) => witness?.collected && witness.moved).length;
  return `${shown} of ${steps.length} steps`;
}

// value: what is sorted by, missing values last; cell: what is shown, where `shown` (or, without one, where there is a
// value); hide: the width class below which the column is dropped.
const COLUMNS = [
  {key: "id", label: "Target", value: (r) => anchorOf(r), cell: null},
  {key: "backend", label: "On", value: (r) => placeOf(r), cell: (r) => backendTag(r)},
  {key: "status", label: "Status", value: (r) => STATUS[r.status].order, cell: (r) => statusBadge(r.status)},
  {
    key: "speedup",
    label: "Speedup",
    number: true,
    value: (r) => (hasFigures(r) ? r.headline.speedup.value : null),
    cell: (r) => el("b", {}, format.ratio(r.headline.speedup.value)),
  },
  {
    key: "interval",
    label: "95% interval",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.headline.speedup.lo : null),
    cell: (r) => format.interval(r.headline.speedup),
  },
  {
    key: "from",
    label: "From",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.first.ns.value : null),
    cell: (r) => format.ns(r.first.ns.value),
  },
  {
    key: "to",
    label: "To",
    number: true,
    hide: "narrow",
    value: (r) => (hasFigures(r) ? r.best.ns.value : null),
    cell: (r) => format.ns(r.best.ns.value),
  },
  {
    key: "gb",
    label: "GB/s",
    number: true,
    hide: "medium",
    value: (r) => (hasFigures(r) && r.best.gb_per_s) || null,
    cell: (r) => format.significant(r.best.gb_per_s),
  },
  {
    key: "gflop",
    label: "GFLOP/s",
    number: true,
    hide: "wide",
    value: (r) => (hasFigures(r) && r.best.gflop_per_s) || null,
    cell: (r) => format.significant(r.best.gflop_per_s),
  },
  {
    key: "ceiling",
    label: "Of ceiling",
    number: true,
    hide: "small",
    value: (r) => (hasFigures(r) && r.best.ceiling_percent) || null,
    cell: (r) => format.percent(r.best.ceiling_percent),
  },
  {
    key: "spread",
    label: "Spread",
    number: true,
    hide: "wide",
    value: (r) => (hasFigures(r) ? r.best.spread : null),
    cell: (r) => format.percent(100 * r.best.spread),
  },
  {
    key: "witness",
    label: "Witness",
    number: true,
    hide: "medium",
    value: (r) => {
      const witness = r.headline?.witness;
      return witness?.collected ? witness.after / witness.before : null;
    },
    cell: witnessSummary,
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

// A row per figure, a column per side.
function numbersTable(caption, sides, rows) {
  if (!rows.length) return null;
  return el(
    "div",
    {class: "scroll-x"},
    el(
      "table",
      {class: "numbers"},
      el("caption", {}, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["", ...sides.map((side) => side.name), "unit"].map((text) => el("th", {scope: "col"}, text)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map(([name, values, unit]) =>
          el(
            "tr",
            {},
            el("th", {scope: "row"}, name),
            values.map((value) => el("td", {}, value)),
            el("td", {class: "unit"}, unit),
          ),
        ),
      ),
    ),
  );
}

const metricText = ({value, lo, hi}) =>
  value === null
    ? "–"
    : lo === null || hi === null
      ? format.significant(value)
      : [
          format.significant(value),
          el("small", {class: "muted"}, ` ${format.significant(lo)} – ${format.significant(hi)}`),
        ];

const metricRows = (metrics) =>
  Object.entries(metrics).map(([name, metric]) => [name, metric.sides.map(metricText), metric.unit]);

const counterRows = (counters) =>
  Object.entries(counters).map(([name, values]) => [
    name,
    values.map((value) => (value === null ? "–" : format.significant(value))),
    "",
  ]);

function sideRows({sides}) {
  const row = (name, unit, text) => [name, sides.map(text), unit];
  return [
    row("time, median", "", (side) => format.ns(side.ns.value)),
    row("time, 95% interval", "", (side) =>
      side.ns.lo === null ? "not known" : format.ns(side.ns.lo, side.ns.hi),
    ),
    row("spread (IQR / median)", "%", (side) => format.significant(100 * side.spread, 2)),
    row("samples", "", (side) => side.samples.toLocaleString("en-US")),
    row("bandwidth", "GB/s", (side) => format.significant(side.gb_per_s)),
    row("arithmetic", "GFLOP/s", (side) => format.significant(side.gflop_per_s)),
    row("of ceiling", "%", (side) => format.significant(side.ceiling_percent)),
  ];
}

// What decides where the goal is not speed: "request_p99_us 3.10× (2.90 – 3.30)".
function gainText(result) {
  const gain = hasFigures(result) ? result.headline.gain : null;
  if (!gain?.value) return "";
  return `${result.goal_metric} ${format.ratio(gain.value)} (${format.interval(gain)})`;
}

function witnessOutcome(witness) {
  if (!witness || !witness.source || witness.source === "none")
    return `none: ${witness?.meaning || "nothing to read"}`;
  if (!witness.collected) return `not collected: ${witness.why_not || "no reason given"}`;
  return `${format.short(witness.before)} → ${format.short(witness.after)}, ${witness.moved ? "moved as claimed" : "did not move as claimed"}`;
}

function witnessText(result) {
  if (!result.headline) return [];
  if (result.ladder) {
    return result.comparisons
      .filter((comparison) => comparison.kind === "step")
      .map(({to, witness}) => [
        "Witness",
        `${to}: ${witness?.name ? `${witness.name} ` : ""}${witnessOutcome(witness)}`,
      ]);
  }
  const {witness} = result.headline;
  const seen = [["Witness", witnessOutcome(witness)]];
  if (!witness || !witness.source || witness.source === "none") return seen;
  return [
    ...seen,
    ["Shows", witness.meaning],
    ["Read from", `${witness.source} ${witness.name}`],
    ["Expected", witness.expected],
  ];
}

function verificationText({verification}) {
  if (!verification.checks) return "not verified: the target did not get that far";
  return (
    `largest relative error ${format.significant(verification.max_error)}, allowed ${format.significant(verification.bound)}; ` +
    `${verification.checks} checks, ${verification.timed_checks} of them of timed samples; ` +
    `${format.percent(verification.seen_percent)} of the elements seen, ` +
    `${format.percent(verification.recomputed_percent)} recomputed`
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
  // The figures of many sides need the whole width.
  const wide = result.sides.length > 2 ? "block wide-block" : "block";
  const block = (title, ...content) =>
    content.some(Boolean) ? el("div", {class: "block"}, el("h3", {}, title), content) : null;
  const figures = (title, table) => (table ? el("div", {class: wide}, el("h3", {}, title), table) : null);
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
    result.unwitnessed ? el("p", {class: "note"}, sentence(result.unwitnessed)) : null,
    result.notes.map((note) => el("p", {class: "note"}, `Note: ${note}`)),
    el(
      "div",
      {class: "blocks"},
      block(
        "What",
        pairs([
          [result.ladder ? "Lab" : "Pair", result.title],
          ["Technique", result.technique],
          ["Goal", result.goal.replace("_", " ")],
          ["Ran on", result.ranks ? placeOf(result) : ""],
          ["Judged by", gainText(result)],
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
      block("Evidence", pairs([["Verified", verificationText(result)], ...witnessText(result)])),
      block("Conditions", pairs(conditionsText(result))),
      hasFigures(result) ? figures("Sides", numbersTable("Sides", result.sides, sideRows(result))) : null,
      figures("Metrics", numbersTable("Metrics of the target", result.sides, metricRows(result.metrics))),
      figures("Counters", numbersTable("Hardware counters", result.sides, counterRows(result.counters))),
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
            gainText(result) ? ` · ${gainText(result)}` : "",
            result.unwitnessed ? " · mechanism not witnessed" : "",
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
