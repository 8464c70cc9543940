#include "study/results/text/markdown.h"

#include <fmt/format.h>

#include "study/results/text/markdown_parts.h"

namespace gauntlet::study::inline results {
namespace {

void append(Row& row, Row more) { row.insert(row.end(), more.begin(), more.end()); }

Row gain_cells(const Gain* gain) {
  if (gain == nullptr) return {"", "", ""};
  const auto& [ratio, label] = gain->all;
  return {number(ratio.value) + "×", fmt::format("{} to {}", number(ratio.lo), number(ratio.hi)),
          stats::words_of(label)};
}

std::string verified_text(const LayerResult& layer) {
  if (!layer.verification) return "";
  if (!layer.verification->verified) return "**no**";
  switch (layer.verification->by) {
    case VerifiedBy::tokens:
      return "same tokens";
    case VerifiedBy::choices:
      return "same choices";
    case VerifiedBy::reference:
    case VerifiedBy::perplexity:
      return name_of(layer.verification->by);
  }
  return "";
}

/// Joules per token at batch 1 and the most, or served.
Row energy_cells(const LayerResult& layer) {
  if (!layer.energy) return {"", ""};
  const auto& points = layer.energy->points;
  if (layer.energy->is_served()) return {"", number(points.front().joules_per_token) + " served"};
  return {number(points.front().joules_per_token), number(points.back().joules_per_token)};
}

std::string energy_note(const StudyResults& results) {
  for (const LayerResult& layer : results.layers) {
    const std::string& note = layer.energy ? layer.energy->source : layer.energy.gap;
    if (!note.empty()) return "\nJ per token: " + markdown_text(note) + ".\n";
  }
  return "";
}

/// What was measured: the GPU where it ran there, the CPU otherwise.
std::string machine_name(const StudyResults& results) {
  const MachineInfo& machine = results.run.machine;
  const bool on_gpu = results.backend == engine::Backend::cuda && !machine.gpus.empty();
  return markdown_text(on_gpu ? machine.gpus.front().name : machine.cpu.model);
}

/// The batches that the first layer with figures decoded at.
std::vector<std::int64_t> batches_of(const StudyResults& results) {
  std::vector<std::int64_t> batches;
  for (const LayerResult& layer : results.layers) {
    if (!layer.engine) continue;
    for (const Figure& figure : layer.engine->figures) {
      if (figure.name != "prompt") batches.push_back(figure.batch);
    }
    break;
  }
  return batches;
}

/// The figure of a workload, by its place: the prompt, then decoding at each batch.
const Figure* figure_at(const LayerResult& layer, std::size_t index) {
  if (!layer.engine || layer.engine->figures.size() <= index) return nullptr;
  return &layer.engine->figures[index];
}

Row layer_row(const LayerResult& layer, std::size_t num_batches) {
  Row row = {fmt::format("{} {}", layer.index, markdown_text(layer.name)),
             fmt::format("{}", fmt::join(layer.options, ", ")), verified_text(layer)};
  append(row, gain_cells(layer.gain ? &*layer.gain : nullptr));
  append(row, layer.engine ? Row{number(layer.engine->ttft_ms), number(layer.engine->tpot_ms)}
                           : Row{"", ""});
  for (std::size_t i = 0; i < num_batches; ++i) {
    const Figure* decode = figure_at(layer, i + 1);
    row.push_back(decode != nullptr ? number(decode->tok_s) : "");
  }
  const Figure* alone = figure_at(layer, 1);
  row.push_back(alone != nullptr ? percent(alone->percent_of_limit) : "");
  row.push_back(layer.engine ? lab::report::bytes(layer.engine->weight_bytes) : "");
  append(row, energy_cells(layer));
  return row;
}

/// What a layer's row has no room for; empty: nothing.
std::string layer_note(const LayerResult& layer) {
  std::string note;
  if (!layer.gap.empty()) note = "gap: " + markdown_text(layer.gap);
  if (layer.verification) {
    note += (note.empty() ? "" : "; ") + markdown_text(layer.verification->sentence);
    const std::string& rest = layer.verification->not_covered;
    if (!rest.empty()) note += "; " + markdown_text(rest);
  }
  if (!layer.targets.empty()) {
    note += "; alone in";
    for (const std::string& target : layer.targets) note += " " + markdown_code(target);
  }
  return note;
}

std::string layers(const StudyResults& results) {
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
  for (const LayerResult& layer : results.layers) {
    table.rows.push_back(layer_row(layer, batches.size()));
  }
  std::string out = "## Layers\n\n" + render(table) + energy_note(results) + "\n";
  for (const LayerResult& layer : results.layers) {
    const std::string note = layer_note(layer);
    if (note.empty()) continue;
    out += fmt::format("- layer {}, {}: {}\n", layer.index, markdown_text(layer.name), note);
  }
  return out + "\n";
}

Row serving_row(std::string name, const ServeFigures& served) {
  return {std::move(name),
          number(served.tok_s),
          number(served.ttft_ms.p50),
          number(served.ttft_ms.p95),
          number(served.tpot_ms.p50),
          number(served.tpot_ms.p95),
          number(served.answer_ms.p50),
          fmt::format("{} of {}", served.reused_tokens, served.prompt_tokens)};
}

/// What became of guesses, and how many drafts were right as far as each position.
std::string guesses_line(int layer, const engine::SpeculationCounts& guessed) {
  if (guessed.steps == 0) return fmt::format("- layer {}: nothing was guessed\n", layer);
  std::vector<std::string> right;
  for (const std::int64_t count : guessed.by_position) {
    right.push_back(fmt::format(
        "{:.0f}%", 100 * static_cast<double>(count) / static_cast<double>(guessed.steps)));
  }
  return fmt::format(
      "- layer {}: {} of {} guesses were right; of {} drafts, as far as position 1, 2, ...: {}\n",
      layer, guessed.accepted, guessed.drafted, guessed.steps,
      right.empty() ? "none" : fmt::format("{}", fmt::join(right, ", ")));
}

std::string serving(const StudyResults& results) {
  MarkdownTable table{.header = {"serving", "tok/s", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms",
                                 "TPOT p95 ms", "answer p50 ms", "prompt tokens reused"},
                      .alignment = "lrrrrrrr",
                      .rows = {}};
  std::string guesses;
  for (const LayerResult& layer : results.layers) {
    if (!layer.serving) continue;
    const auto& [before, after] = *layer.serving;
    table.rows.push_back(serving_row(fmt::format("before layer {}", layer.index), before));
    table.rows.push_back(serving_row(fmt::format("after layer {}", layer.index), after));
    if (after.speculation) guesses += guesses_line(layer.index, *after.speculation);
  }
  if (table.rows.empty()) return "";
  if (!guesses.empty()) guesses += "\n";
  return "## Serving\n\n" + render(table) + "\n" + guesses;
}

std::string company(const StudyResults& results) {
  MarkdownTable table{
      .header = {"option", "layer", "worth in company", "95% interval", "label", "sign", "remark"},
      .alignment = "lrrrlll",
      .rows = {}};
  for (const auto& [option, title, layer, worth] : results.leave_one_out) {
    Row row = {markdown_code(option), std::to_string(layer)};
    append(row, gain_cells(worth ? &worth->gain : nullptr));
    if (worth && worth->sign) {
      append(row, {name_of(worth->sign->sign), markdown_text(worth->sign->sentence)});
    } else {
      append(row, {"", markdown_text(worth.gap)});
    }
    table.rows.push_back(std::move(row));
  }
  return "## Leave one out\n\nThe whole stack over the whole stack without the option.\n\n" +
         render(table) + "\n";
}

std::string router(const StudyResults& results) {
  if (!results.router) return "";
  const RouterLoads& router = *results.router;
  MarkdownTable table{
      .header = {"model layer", "busiest over mean"}, .alignment = "rr", .rows = {}};
  for (std::size_t i = 0; i < router.imbalance.size(); ++i) {
    table.rows.push_back({std::to_string(i), number(router.imbalance[i])});
  }
  return fmt::format("## Router\n\n{} tokens, {} of {} experts each.\n\n{}\n", router.tokens,
                     router.experts_per_token, router.experts, render(table));
}

std::string machine(const StudyResults& results) {
  using Level = lab::doctor::Finding::Level;
  std::string out = "## Machine\n\n";
  for (const lab::doctor::Finding& finding : results.doctor) {
    if (finding.level != Level::warn && finding.level != Level::fail) continue;
    out += fmt::format("- {}: {} {}\n", name_of(finding.level), markdown_text(finding.reason),
                       markdown_text(finding.fix));
  }
  return out + fmt::format("\nCommand: {}\n", markdown_code(results.run.command_line));
}

}  // namespace

std::string render_markdown(const StudyResults& results) {
  std::string out = fmt::format(
      "# Gauntlet study {}\n\n{} on {} · {} · commit {} · {} of {} cells\n\n",
      markdown_text(results.run.run_id), markdown_text(results.model.name), machine_name(results),
      lab::report::utc(results.run.started_at), markdown_text(results.run.build.commit),
      results.cells.measured, results.cells.planned);
  for (const std::string& finding : results.findings) out += "- " + markdown_text(finding) + "\n";
  return out + "\n" + layers(results) + serving(results) + company(results) +
         (results.time ? markdown_of(*results.time) : "") + markdown_of(results.sweeps) +
         router(results) + machine(results);
}

}  // namespace gauntlet::study::inline results
