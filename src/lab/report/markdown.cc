#include "lab/report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/report/format.h"
#include "lab/report/summary.h"

namespace gauntlet::lab {
namespace {

using namespace report;

std::string label(const Result& result) {
  std::string text = result.id;
  const auto swept = result.knobs.find(result.sweep_key);
  if (swept != result.knobs.end()) text += fmt::format(" {}={}", swept->first, swept->second);
  return markdown_code(text);
}

std::string interval(const Estimate& estimate) {
  return fmt::format("{} to {}", factor(estimate.lo), factor(estimate.hi));
}

std::string percent(double value) { return value > 0 ? fmt::format("{:.0f}%", value) : ""; }

std::string witness(const WitnessResult& witness) {
  if (witness.source.empty() || witness.source == "none") return "";
  if (!witness.collected) return "not collected";
  return fmt::format("{} → {}{}", significant(witness.baseline), significant(witness.optimized),
                     witness.moved ? "" : " (did not move)");
}

std::string status(const Result& result) {
  const std::string words = words_of(result.status);
  return is_failure(result.status) ? "**" + words + "**" : words;
}

std::string speedup(const Result& result) {
  std::string text = ratio(result.speedup->median);
  if (result.kind == "demonstration") text += " †";
  return text;
}

std::vector<std::string> row(const Result& result) {
  std::vector<std::string> cells = {label(result), name_of(result.backend), status(result)};
  if (has_figures(result)) {
    cells.insert(cells.end(), {speedup(result), interval(*result.speedup),
                               result.baseline ? duration_ns(result.baseline->ns.median) : "",
                               result.optimized ? duration_ns(result.optimized->ns.median) : "",
                               percent(result.ceiling_percent), witness(result.witness)});
  }
  return cells;
}

std::string remark(const Result& result) {
  std::string text =
      fmt::format("- {} on {}: {}", label(result), name_of(result.backend), status(result));
  if (!result.reason.empty()) text += ": " + markdown_text(result.reason);
  if (!result.log.empty() && is_failure(result.status))
    text += " (" + markdown_code(result.log) + ")";
  return text + "\n";
}

std::string failures(const RunRecord& record) {
  std::string lines;
  for (const Status kind : {Status::wrong, Status::crashed, Status::timed_out, Status::regressed}) {
    for (const Result& result : record.results) {
      if (result.status == kind) lines += remark(result);
    }
  }
  return lines.empty() ? "" : "## Failures\n\n" + lines + "\n";
}

std::string headlines(const Summary& summary) {
  std::string lines;
  for (const Headline& headline : summary.headlines) {
    const std::string figure = headline.num_passed > 0 ? " " + ratio(headline.passed_speedup) : "";
    lines += fmt::format("- **{}{}**: {}\n", name_of(headline.backend), figure,
                         headline_sentence(headline));
  }
  const std::string left_out = left_out_sentence(summary);
  if (!left_out.empty()) lines += "\n" + left_out + "\n";
  return lines;
}

/// The figures by which a pair is judged whose goal is not speed.
std::string judged_by(const Result& result) {
  std::string text = fmt::format("- {} on {}: judged by {}, not speed", label(result),
                                 name_of(result.backend), markdown_text(result.goal));
  const char* separator = ": ";
  for (const auto& [name, metric] : result.metrics) {
    text +=
        fmt::format("{}{} {} → {} {}", separator, markdown_text(name), significant(metric.baseline),
                    significant(metric.optimized), markdown_text(metric.unit));
    separator = "; ";
  }
  return text + "\n";
}

std::string chapter(const std::string& name, const std::vector<const Result*>& results) {
  MarkdownTable table{.header = {"target", "on", "status"}, .alignment = "lll", .rows = {}};
  if (std::any_of(results.begin(), results.end(),
                  [](auto* result) { return has_figures(*result); })) {
    table.header.insert(table.header.end(), {"speedup", "95% interval", "baseline", "optimized",
                                             "of ceiling", "witness"});
    table.alignment += "rrrrrl";
  }
  std::string remarks;
  bool has_demonstrations = false;
  for (const Result* result : results) {
    table.rows.push_back(row(*result));
    table.rows.back().resize(table.header.size());
    has_demonstrations |= result->kind == "demonstration" && has_figures(*result);
    if (has_figures(*result) && result->goal != "speed") remarks += judged_by(*result);
    if (!is_failure(result->status) && !result->reason.empty()) remarks += remark(*result);
    for (const std::string& note : result->notes) {
      remarks += fmt::format("- {} on {}: {}\n", label(*result), name_of(result->backend),
                             markdown_text(note));
    }
  }
  std::string text = "## " + markdown_text(name) + "\n\n" + render(table) + "\n";
  if (has_demonstrations) {
    text += "† demonstration: the baseline exists to teach and is in no mean.\n\n";
  }
  return remarks.empty() ? text : text + remarks + "\n";
}

std::string chapters(const RunRecord& record) {
  std::map<std::string, std::vector<const Result*>> by_chapter;
  for (const Result& result : record.results) by_chapter[result.chapter].push_back(&result);
  std::string text;
  for (const auto& [name, results] : by_chapter) text += chapter(name, results);
  return text;
}

std::string ceilings(const RunRecord& record) {
  MarkdownTable table{.header = {"ceiling", "on", "measured", "unit", "best method"},
                      .alignment = "llrll",
                      .rows = {}};
  for (const Ceilings& of_backend : record.ceilings) {
    for (const auto& [name, ceiling] : of_backend.values) {
      table.rows.push_back({markdown_code(name), name_of(of_backend.backend),
                            fmt::format("{:.{}f}", ceiling.value, ceiling.value < 100 ? 1 : 0),
                            markdown_text(ceiling.unit), markdown_text(ceiling.method)});
    }
  }
  return table.rows.empty() ? "" : "## Ceilings of this machine\n\n" + render(table) + "\n";
}

std::string environment(const RunRecord& record) {
  MarkdownTable table{.header = {"", "environment"}, .alignment = "ll", .rows = {}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({name, markdown_text(value)});
  };
  const MachineInfo& machine = record.machine;
  for (const GpuInfo& gpu : machine.gpus) {
    add("GPU", fmt::format("{}, sm_{}{}, {} SMs, {}", gpu.name, gpu.compute_major,
                           gpu.compute_minor, gpu.num_sms, bytes(gpu.memory_bytes)));
  }
  if (machine.gpus.empty()) add("GPU", "none: " + machine.no_gpu_reason);
  add("CPU",
      fmt::format("{}, {} usable cores, {} NUMA node(s), {}", machine.cpu.model, machine.cpu.cores,
                  machine.cpu.numa_nodes, bytes(machine.cpu.memory_bytes)));
  add("SIMD", fmt::format("{}", fmt::join(machine.cpu.simd, " ")));
  add("system", machine.os + ", " + machine.kernel);
  add("hypervisor", machine.hypervisor);
  add("CUDA", machine.driver.empty()
                  ? ""
                  : fmt::format("driver {}, runtime {}", machine.driver, machine.cuda_runtime));
  add("Gauntlet", fmt::format("{}, commit {}, {}", record.build.version, record.build.commit,
                              record.build.build_type));
  add("compiler", record.build.compiler + " " + record.build.flags);
  add("nvcc", record.build.cuda_compiler);
  add("profile", record.profile);
  table.rows.push_back({"command", markdown_code(record.command_line)});
  return "## Environment\n\n" + render(table);
}

}  // namespace

std::string render_markdown(const RunRecord& record) {
  const Summary summary = summarize(record);
  return fmt::format("# Gauntlet run {}\n\n{} · {} · commit {}\n\n{}\n\n{}\n{}{}{}{}",
                     markdown_text(record.run_id), markdown_text(machine_line(record.machine)),
                     utc(record.started_at), markdown_text(record.build.commit),
                     counts_sentence(summary), headlines(summary), failures(record),
                     chapters(record), ceilings(record), environment(record));
}

}  // namespace gauntlet::lab
