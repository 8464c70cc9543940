// Puts the report together: header, filters, sections, theme, and links to rows.
"use strict";

(function main() {
  const {record, summary, unwitnessed} = JSON.parse(document.getElementById("data").textContent);
  const results = record.results.map((result, index) => readResult(result, index, unwitnessed[index]));
  const filters = {chapter: "", status: "", backend: "", text: ""};
  const {canvas, redraw, themeButton} = pageFrame();
  let redrawCeilings = null;
  let redrawLadders = () => {};
  const table = resultsTable(results);

  const options = (values, words = {}) => [
    el("option", {value: ""}, "all"),
    values.map((value) => el("option", {value}, words[value] ?? value)),
  ];
  const present = (field) => [...new Set(results.map((result) => result[field]))];
  const select = (name, values, words) =>
    el(
      "label",
      {},
      el("span", {}, name),
      el("select", {name, onchange: (event) => setFilter(name, event.target.value)}, options(values, words)),
    );
  const statusWords = Object.fromEntries(
    Object.entries(STATUS).map(([name, status]) => [name, `${status.glyph} ${status.words}`]),
  );
  const search = el("input", {
    type: "search",
    name: "text",
    placeholder: "target, technique, reason …",
    "aria-label": "Search",
    oninput: () => setFilter("text", search.value),
  });
  const shownCount = el("output", {class: "shown"});
  const filterBar = el(
    "form",
    {class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault()},
    select("chapter", present("chapter").sort()),
    select(
      "status",
      Object.keys(STATUS).filter((status) => summary.counts[status] > 0),
      statusWords,
    ),
    select("backend", present("backend"), BACKEND_WORDS),
    el("label", {class: "search"}, el("span", {}, "search"), search),
    el("button", {type: "button", onclick: clearFilters}, "Clear"),
    shownCount,
  );

  const haystacks = results.map((result) =>
    [
      result.id,
      result.technique,
      result.title,
      result.claim,
      result.reason,
      ...result.notes,
      result.goal,
      result.kind,
      result.bound_by,
      result.unwitnessed,
      ...result.sides.map((side) => side.name),
      ...result.comparisons.map((comparison) => comparison.witness?.name ?? ""),
      STATUS[result.status].words,
    ]
      .join("\n")
      .toLowerCase(),
  );
  const matches = (result) =>
    ["chapter", "status", "backend"].every((name) => !filters[name] || result[name] === filters[name]) &&
    haystacks[result.index].includes(filters.text.toLowerCase());

  function setFilter(name, value) {
    filters[name] = value;
    filterBar.elements[name].value = value;
    for (const tile of document.querySelectorAll(".tile"))
      tile.setAttribute("aria-pressed", String(tile.dataset.status === filters.status));
    refresh();
  }
  function clearFilters() {
    for (const name of Object.keys(filters)) filterBar.elements[name].value = filters[name] = "";
    setFilter("status", "");
  }

  function header() {
    const tiles = Object.entries(STATUS)
      .filter(([status]) => summary.counts[status] > 0)
      .map(([status]) =>
        el(
          "button",
          {
            type: "button",
            class: `tile s-${status}`,
            "data-status": status,
            "aria-pressed": "false",
            onclick: () => setFilter("status", filters.status === status ? "" : status),
          },
          el("span", {class: "count"}, String(summary.counts[status])),
          el(
            "span",
            {class: "words"},
            el("span", {class: "glyph", "aria-hidden": "true"}, STATUS[status].glyph),
            STATUS[status].words,
          ),
        ),
      );
    const headlines = summary.headlines.map(({backend, speedup, sentence}) =>
      el(
        "div",
        {class: "headline"},
        backendTag({backend}),
        el("span", {class: "figure"}, speedup === null ? "–" : format.ratio(speedup)),
        el("span", {class: "sentence"}, sentence),
      ),
    );
    return el(
      "header",
      {},
      el(
        "div",
        {class: "top"},
        el("h1", {}, "Gauntlet ", el("span", {class: "run-id"}, record.run_id)),
        themeButton(),
      ),
      el("p", {class: "machine"}, summary.machine_line),
      el(
        "p",
        {class: "meta"},
        [
          format.utc(record.started_at),
          `commit ${record.build.commit}`,
          `profile ${record.profile || "none"}`,
        ].join(" · "),
      ),
      el("div", {class: "headlines"}, headlines),
      summary.left_out_sentence ? el("p", {class: "note"}, summary.left_out_sentence) : null,
      el(
        "div",
        {class: "tiles", role: "group", "aria-label": "Counts by status; press one to filter"},
        tiles,
      ),
      el("p", {class: "note"}, summary.counts_sentence),
    );
  }

  function failures() {
    const failed = results.filter(isFailure).sort((a, b) => STATUS[a.status].order - STATUS[b.status].order);
    if (!failed.length) return null;
    return section(
      "failures",
      "Failures",
      null,
      el(
        "ul",
        {class: "failures"},
        failed.map((result) =>
          el(
            "li",
            {},
            statusBadge(result.status),
            el("a", {href: linkTo(result), class: "id"}, result.id),
            backendTag(result),
            el("span", {class: "why"}, result.reason || "no reason recorded"),
          ),
        ),
      ),
    );
  }

  function rooflines() {
    const backends = present("backend").filter((backend) =>
      rooflinePoints(results).some((result) => result.backend === backend),
    );
    const charts = backends.map((backend) =>
      el(
        "figure",
        {},
        el("figcaption", {}, `${BACKEND_WORDS[backend]}: arithmetic`),
        canvas((host, width) =>
          drawRoofline(
            host,
            results.filter((result) => result.backend === backend && matches(result)),
            // Ranks share the CPUs.
            record.ceilings.find((ceilings) => ceilings.backend === (backend === "ranks" ? "cpu" : backend)),
            width,
          ),
        ),
      ),
    );
    const panel = el("div", {});
    redrawCeilings = (shown) =>
      panel.replaceChildren(
        ceilingChart(shown) ?? el("p", {class: "empty"}, "No result here has a ceiling to compare with."),
      );
    return section(
      "roofline",
      "How close to the machine's limits",
      "Ceilings are measured on this machine, not read from a datasheet. Above 100%: a cache served the data, or the ceiling was measured too low.",
      el(
        "p",
        {class: "key"},
        el("span", {class: "k ring"}, "baseline, or first rung"),
        el("span", {class: "k disc"}, "optimized, or last rung"),
        el("span", {class: "k lines"}, "measured ceiling"),
      ),
      el("div", {class: "figures"}, charts),
      el("h3", {}, "Share of the ceiling that binds"),
      el(
        "p",
        {class: "note"},
        "Bar: optimized side or last rung; tick: baseline or first rung. Targets that do no arithmetic are here and not above.",
      ),
      panel,
    );
  }

  function labs() {
    if (!results.some((result) => result.ladder && hasFigures(result))) return null;
    const panel = el("div", {});
    redrawLadders = (shown) => {
      const ladders = shown.filter((result) => result.ladder && hasFigures(result)).map(ladderChart);
      panel.replaceChildren(
        ...(ladders.length ? ladders : [el("p", {class: "empty"}, "No lab matches these filters.")]),
      );
    };
    return section(
      "labs",
      "Labs",
      "Rungs in order. Bar: how many times faster than the first rung, logarithmic, with its 95% interval; the full colour is what the rung added to the one before. Diamond and line: a library's speed.",
      panel,
    );
  }

  function sweeps() {
    const found = sweepsOf(results);
    if (!found.length) return null;
    return section(
      "sweeps",
      "Sweeps",
      "Speedup over one knob; the band is the 95% interval.",
      el(
        "div",
        {class: "figures"},
        found.map((sweep) =>
          el(
            "figure",
            {},
            el("figcaption", {}, sweep[0].id, " ", backendTag(sweep[0])),
            canvas((host, width) => drawSweep(host, sweep, width)),
          ),
        ),
      ),
    );
  }

  function ceilings() {
    const rows = record.ceilings.flatMap(({backend, values}) =>
      Object.entries(values).map(([name, ceiling]) =>
        el(
          "tr",
          {},
          el("th", {scope: "row"}, name),
          el("td", {}, backendTag({backend})),
          el("td", {class: "number"}, format.significant(ceiling.value, 4)),
          el("td", {}, ceiling.unit),
          el("td", {class: "small"}, ceiling.method),
        ),
      ),
    );
    if (!rows.length) return null;
    return section(
      "ceilings",
      "Measured ceilings",
      "The best of several methods each.",
      el(
        "table",
        {class: "plain"},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Ceiling", "On", "Measured", "Unit", "Best method"].map((text, index) =>
              el("th", {scope: "col", class: index === 2 ? "number" : index === 4 ? "small" : ""}, text),
            ),
          ),
        ),
        el("tbody", {}, rows),
      ),
    );
  }

  function environment() {
    const {machine, build} = record;
    const gpus = machine.gpus.map(
      (gpu) =>
        `${gpu.name}, sm_${gpu.compute_major}${gpu.compute_minor}, ${gpu.num_sms} SMs, ` +
        `${format.bytes(gpu.l2_bytes)} L2, ${format.bytes(gpu.memory_bytes)}`,
    );
    return section(
      "environment",
      "Environment",
      null,
      pairs([
        ["Command", record.command_line],
        ["GPU", gpus.join("; ") || `none: ${machine.no_gpu_reason || "no reason recorded"}`],
        [
          "CPU",
          `${machine.cpu.model}, ${machine.cpu.cores} usable cores, ${machine.cpu.numa_nodes} NUMA node(s), ${format.bytes(machine.cpu.memory_bytes)}`,
        ],
        [
          "Caches",
          `L1d ${format.bytes(machine.cpu.l1d_bytes)}, L2 ${format.bytes(machine.cpu.l2_bytes)}, last level ${format.bytes(machine.cpu.last_level_bytes)}`,
        ],
        ["SIMD", machine.cpu.simd.join(" ")],
        [
          "System",
          [machine.os, machine.kernel, machine.hypervisor && `under ${machine.hypervisor}`]
            .filter(Boolean)
            .join(", "),
        ],
        ["CUDA", machine.driver ? `driver ${machine.driver}, runtime ${machine.cuda_runtime}` : ""],
        ["Gauntlet", `${build.version}, commit ${build.commit}, ${build.build_type}`],
        ["Compiler", `${build.compiler} ${build.flags}`],
        ["nvcc", build.cuda_compiler],
      ]),
    );
  }

  const speedups = el("div", {});
  function refresh() {
    const shown = results.filter(matches);
    speedups.replaceChildren(speedupChart(shown));
    redrawCeilings(shown);
    redrawLadders(shown);
    table.show(shown);
    shownCount.textContent =
      shown.length === results.length
        ? `${results.length} results`
        : `${shown.length} of ${results.length} results`;
    redraw();
  }

  function followLink() {
    const anchor = decodeURIComponent(location.hash.slice(1));
    const result = results.find((candidate) => anchorOf(candidate) === anchor);
    if (!result) return;
    if (!matches(result)) clearFilters();
    table.reveal(result);
  }

  const sections = [
    failures(),
    section(
      "speedups",
      "Speedups",
      "Dot: time of the baseline over the optimized side, of a lab's first rung over its last, logarithmic. Line: 95% interval. Left of 1× is slower. Hollow: demonstration.",
      speedups,
    ),
    labs(),
    section("results", "Results", null, table.node),
    rooflines(),
    sweeps(),
    ceilings(),
    environment(),
  ].filter(Boolean);
  const navigation = el(
    "nav",
    {"aria-label": "Sections"},
    sections.map((node) => el("a", {href: `#${node.id}`}, node.querySelector("h2").textContent)),
  );
  document.body.append(header(), navigation, filterBar, el("main", {}, sections));
  refresh();
  followLink();

  addEventListener("hashchange", followLink);
})();
