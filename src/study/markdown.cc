#include "study/markdown.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "lab/report/format.h"
#include "study/results_parts.h"

namespace gauntlet::study {
namespace {

using lab::report::markdown_code;
using lab::report::markdown_text;
using lab::report::MarkdownTable;
using lab::report::significant;
using nlohmann::json;
using Row = std::vector<std::string>;

std::string text(const json& value) {
  return value.is_string() ? markdown_text(value.get<std::string>()) : "";
}

std::string number(const json& value) {
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return value.is_number() ? significant(value.get<double>()) : "";
}

std::string value(const json& holder, const char* name) {
  return holder.contains(name) ? number(holder.at(name).at("value")) : "";
}

std::string percent(const json& value) { return value.is_number() ? number(value) + "%" : ""; }

std::string words(const json& label) {
  const auto name = label.get<std::string>();
  return name == "no_gain" ? "no gain" : name;
}

Row gain_cells(const json& entry) {
  if (!entry.contains("gain")) return {"", "", ""};
  const json& ratio = entry.at("gain").at("ratio");
  return {number(ratio.at("value")) + "×",
          fmt::format("{} to {}", number(ratio.at("lo")), number(ratio.at("hi"))),
          words(entry.at("gain").at("label"))};
}

void append(Row& row, Row more) { row.insert(row.end(), more.begin(), more.end()); }

/// The figure of a workload, by its place: the prompt, then decoding at each batch.
json figure_at(const json& layer, std::size_t index) {
  return layer.contains("figures") && layer.at("figures").size() > index
             ? layer.at("figures").at(index)
             : json::object();
}

std::string verified(const json& layer) {
  const json verification = layer.value("verification", json());
  if (!is_measured(verification)) return "";
  if (!verification.at("verified").get<bool>()) return "**no**";
  const auto by = verification.at("by").get<std::string>();
  return by == "tokens" ? "same tokens" : by == "choices" ? "same choices" : by;
}

/// Joules per token at batch 1 and the most, or served.
Row energy_cells(const json& layer) {
  if (!layer.contains("energy") || !is_measured(layer.at("energy"))) return {"", ""};
  const json& points = layer.at("energy").at("points");
  const auto joules = [](const json& point) { return number(point.at("joules_per_token")); };
  if (points.front().at("name") == "served") return {"", joules(points.front()) + " served"};
  return {joules(points.front()), joules(points.back())};
}

std::string energy_note(const json& results) {
  for (const json& layer : results.at("layers")) {
    const json energy = layer.value("energy", json());
    if (is_measured(energy)) return "\nJ per token: " + text(energy.at("source")) + ".\n";
    if (energy.is_object()) return "\nJ per token: " + text(energy.at("gap")) + ".\n";
  }
  return "";
}

/// What was measured: the GPU where it ran there, the CPU otherwise.
std::string machine_name(const json& results) {
  const json& machine = results.at("machine");
  if (results.at("backend") != "cuda" || machine.at("gpus").empty()) {
    return text(machine.at("cpu").at("model"));
  }
  return text(machine.at("gpus").front().at("name"));
}

std::vector<std::int64_t> batches_of(const json& results) {
  std::vector<std::int64_t> batches;
  for (const json& layer : results.at("layers")) {
    if (!layer.contains("figures")) continue;
    for (const json& figure : layer.at("figures")) {
      if (figure.at("name") != "prompt") batches.push_back(figure.at("batch"));
    }
    break;
  }
  return batches;
}

std::string layers(const json& results) {
  MarkdownTable table{.header = {"layer", "options", "verified", "gain", "95% interval", "label",
                                 "TTFT ms", "TPOT ms"},
                      .alignment = "lllrrlrr",
                      .rows = {}};
  const auto batches = batches_of(results);
  for (const std::int64_t batch : batches) {
    table.header.push_back(fmt::format("tok/s at {}", batch));
    table.alignment += "r";
  }
  table.header.insert(table.header.end(), {"of limit at 1", "weights", "J/token at 1", "at most"});
  table.alignment += "rrrr";
  for (const json& layer : results.at("layers")) {
    std::string options;
    for (const json& id : layer.at("options")) {
      options += (options.empty() ? "" : ", ") + id.get<std::string>();
    }
    Row row = {fmt::format("{} {}", layer.at("index").get<int>(), text(layer.at("name"))), options,
               verified(layer)};
    append(row, gain_cells(layer));
    append(row, {value(layer, "ttft_ms"), value(layer, "tpot_ms")});
    for (std::size_t i = 0; i < batches.size(); ++i) {
      row.push_back(value(figure_at(layer, i + 1), "tok_s"));
    }
    row.push_back(percent(figure_at(layer, 1).value("percent_of_limit", json())));
    row.push_back(layer.contains("weight_bytes")
                      ? lab::report::bytes(layer.at("weight_bytes").get<std::int64_t>())
                      : "");
    append(row, energy_cells(layer));
    table.rows.push_back(std::move(row));
  }
  std::string out = "## Layers\n\n" + render(table) + energy_note(results) + "\n";
  for (const json& layer : results.at("layers")) {
    std::string note;
    if (layer.contains("gap")) note = "gap: " + text(layer.at("gap"));
    const json verification = layer.value("verification", json());
    if (is_measured(verification))
      note += (note.empty() ? "" : "; ") + text(verification.at("sentence"));
    if (verification.is_object() && verification.contains("not_covered"))
      note += "; " + text(verification.at("not_covered"));
    if (!layer.at("targets").empty()) {
      note += "; alone in";
      for (const json& target : layer.at("targets"))
        note += " " + markdown_code(target.get<std::string>());
    }
    if (!note.empty()) {
      out += fmt::format("- layer {}, {}: {}\n", layer.at("index").get<int>(),
                         text(layer.at("name")), note);
    }
  }
  return out + "\n";
}

std::string serving(const json& results) {
  MarkdownTable table{.header = {"serving", "tok/s", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms",
                                 "TPOT p95 ms", "answer p50 ms", "prompt tokens reused"},
                      .alignment = "lrrrrrrr",
                      .rows = {}};
  for (const json& layer : results.at("layers")) {
    if (!layer.contains("serving")) continue;
    for (const char* side : {"before", "after"}) {
      const json& o = layer.at("serving").at(side);
      table.rows.push_back({fmt::format("{} layer {}", side, layer.at("index").get<int>()),
                            number(o.at("tok_s")), number(o.at("ttft_ms").at("p50")),
                            number(o.at("ttft_ms").at("p95")), number(o.at("tpot_ms").at("p50")),
                            number(o.at("tpot_ms").at("p95")), number(o.at("answer_ms").at("p50")),
                            fmt::format("{} of {}", o.at("reused_tokens").get<std::int64_t>(),
                                        o.at("prompt_tokens").get<std::int64_t>())});
    }
  }
  return table.rows.empty() ? "" : "## Serving\n\n" + render(table) + "\n";
}

std::string leave_one_out(const json& results) {
  MarkdownTable table{
      .header = {"option", "layer", "worth in company", "95% interval", "label", "sign", "remark"},
      .alignment = "lrrrlll",
      .rows = {}};
  for (const json& entry : results.at("leave_one_out")) {
    Row row = {markdown_code(entry.at("option").get<std::string>()),
               std::to_string(entry.at("layer").get<int>())};
    append(row, gain_cells(entry));
    const bool judged = entry.contains("sign");
    row.push_back(judged ? text(entry.at("sign")) : "");
    row.push_back(judged ? text(entry.at("sentence")) : text(entry.value("gap", json())));
    table.rows.push_back(std::move(row));
  }
  return "## Leave one out\n\nThe whole stack over the whole stack without the option.\n\n" +
         render(table) + "\n";
}

/// A table of sweep points; `cells` writes a measured one behind its first `labels` columns.
struct SweepTable {
  std::string title;
  Row header;
  std::vector<std::pair<Row, json>> points;  // labels, point
  std::function<Row(const json&)> cells;
};

std::string render_sweep(const SweepTable& sweep) {
  MarkdownTable table{
      .header = sweep.header, .alignment = std::string(sweep.header.size(), 'r'), .rows = {}};
  for (const auto& [labels, point] : sweep.points) {
    Row row = labels;
    append(row, point.contains("gap") ? Row{"gap: " + text(point.at("gap"))} : sweep.cells(point));
    row.resize(table.header.size());
    table.rows.push_back(std::move(row));
  }
  return "### " + sweep.title + "\n\n" + render(table) + "\n";
}

std::string sweeps(const json& results) {
  const json& all = results.at("sweeps");
  const auto points = [](const json& list, std::vector<const char*> labels) {
    std::vector<std::pair<Row, json>> out;
    for (const json& point : list) {
      Row row;
      for (const char* label : labels) row.push_back(number(point.at(label)));
      out.push_back({row, point});
    }
    return out;
  };
  std::string out = "## Sweeps\n\n";
  out +=
      render_sweep({"Batch",
                    {"batch", "tok/s", "TPOT ms", "of limit", "experts per layer"},
                    points(all.at("batch"), {"batch"}),
                    [](const json& p) -> Row {
                      return {value(p, "tok_s"), value(p, "tpot_ms"),
                              percent(p.at("percent_of_limit")), number(p.at("experts_per_layer"))};
                    }});
  out += render_sweep({"Time to the first token",
                       {"prompt", "batch", "TTFT ms", "tok/s", "of limit"},
                       points(all.at("prompts"), {"length", "batch"}),
                       [](const json& p) -> Row {
                         return {value(p, "ttft_ms"), number(p.at("tok_s")),
                                 percent(p.at("percent_of_limit"))};
                       }});
  out += render_sweep(
      {"Context",
       {"context", "batch", "p50 ms", "p95 ms"},
       points(all.at("context"), {"context", "batch"}),
       [](const json& p) -> Row { return {number(p.at("p50_ms")), number(p.at("p95_ms"))}; }});
  SweepTable precision{
      "Precision", {"on", "tok/s", "perplexity", "weights"}, {}, [](const json& p) -> Row {
        return {value(p, "tok_s"), fmt::format("{:.4f}", p.at("perplexity").get<double>()),
                lab::report::bytes(p.at("weight_bytes").get<std::int64_t>())};
      }};
  for (const json& point : all.at("precision")) {
    std::string on;
    for (const json& id : point.at("on")) on += (on.empty() ? "" : " + ") + id.get<std::string>();
    precision.points.push_back({{on.empty() ? "none" : on}, point});
  }
  out += render_sweep(precision);
  out +=
      render_sweep({"Load, Poisson arrivals",
                    {"of saturation", "requests/s", "tok/s", "TTFT p50 ms", "TTFT p95 ms",
                     "TPOT p95 ms", "mean queue"},
                    points(all.at("load"), {"of_saturation"}),
                    [](const json& p) -> Row {
                      return {number(p.at("offered_per_s")),     number(p.at("tok_s")),
                              number(p.at("ttft_ms").at("p50")), number(p.at("ttft_ms").at("p95")),
                              number(p.at("tpot_ms").at("p95")), number(p.at("mean_queue"))};
                    }});
  return out;
}

std::string time_split(const json& results) {
  if (!results.at("time").is_array()) return "";
  std::string out = "## Where the time goes\n\n";
  for (const json& split : results.at("time")) {
    MarkdownTable table{.header = {"part", "µs", "limit µs", "of limit", "bound by"},
                        .alignment = "lrrrl",
                        .rows = {}};
    for (const json& part : split.at("parts")) {
      table.rows.push_back({markdown_code(part.at("name").get<std::string>()),
                            number(part.at("us")), number(part.at("limit_us")),
                            percent(part.at("percent_of_limit")), text(part.at("bound_by"))});
    }
    table.rows.push_back({"between kernels", number(split.at("idle_us")), "", "", ""});
    table.rows.push_back({"host", number(split.at("host_us")), "", "", ""});
    out += fmt::format("Batch {}, context {}: {} µs a step.\n\n{}\nNext: {}. {}.\n\n",
                       split.at("batch").get<std::int64_t>(),
                       split.at("context").get<std::int64_t>(), number(split.at("step_us")),
                       render(table), text(split.at("bottleneck").at("kind")),
                       text(split.at("bottleneck").at("sentence")));
  }
  return out;
}

std::string router(const json& results) {
  const json& router = results.at("router");
  if (!is_measured(router)) return "";
  MarkdownTable table{
      .header = {"model layer", "busiest over mean"}, .alignment = "rr", .rows = {}};
  for (std::size_t i = 0; i < router.at("imbalance").size(); ++i) {
    table.rows.push_back({std::to_string(i), number(router.at("imbalance").at(i))});
  }
  return fmt::format("## Router\n\n{} tokens, {} of {} experts each.\n\n{}\n",
                     router.at("tokens").get<std::int64_t>(),
                     router.at("experts_per_token").get<std::int64_t>(),
                     router.at("experts").get<std::int64_t>(), render(table));
}

std::string machine(const json& results) {
  std::string out = "## Machine\n\n";
  for (const json& finding : results.at("doctor")) {
    if (finding.at("level") != "warn" && finding.at("level") != "fail") continue;
    out += fmt::format("- {}: {} {}\n", text(finding.at("level")), text(finding.at("reason")),
                       text(finding.at("fix")));
  }
  return out + fmt::format("\nCommand: {}\n",
                           markdown_code(results.at("command_line").get<std::string>()));
}

}  // namespace

std::string render_markdown(const json& results) {
  const json& cells = results.at("cells");
  std::string out = fmt::format(
      "# Gauntlet study {}\n\n{} on {} · {} · commit {} · {} of {} cells\n\n",
      text(results.at("study_id")), text(results.at("model").at("name")), machine_name(results),
      lab::report::utc(results.at("started_at").get<std::int64_t>()),
      text(results.at("build").at("commit")), cells.at("measured").get<int>(),
      cells.at("planned").get<int>());
  for (const json& finding : results.at("findings")) out += "- " + text(finding) + "\n";
  return out + "\n" + layers(results) + serving(results) + leave_one_out(results) +
         time_split(results) + sweeps(results) + router(results) + machine(results);
}

}  // namespace gauntlet::study
