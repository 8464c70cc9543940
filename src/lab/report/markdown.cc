#include "lab/report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/report/format.h"
#include "lab/report/summary.h"

namespace gauntlet::lab::report {
namespace {


std::string label(const Result& result) {
  const std::string sweep = result.sweep();
  return markdown_code(sweep.empty() ? result.id : result.id + " " + sweep);
}

std::string interval(const stats::Interval& of) {
  return of.known() ? fmt::format("{} to {}", factor(of.lo), factor(of.hi)) : "unknown";
}

std::string percent(double value) {
  if (!(value > 0)) return "";
  return value < 10 ? fmt::format("{:.2g}%", value) : fmt::format("{:.0f}%", value);
}

std::string witness(const WitnessResult& witness) {
  if (witness.source.empty() || witness.source == "none") return "";
  if (!witness.collected) return "not collected";
  return fmt::format("{} → {}{}", significant(witness.before), significant(witness.after),
                     witness.moved ? "" : " (did not move)");
}

std::string witness(const Result& result) {
  if (!result.is_ladder()) return witness(result.headline().witness);
  int steps = 0, shown = 0;
  for (const ComparisonResult& comparison : result.comparisons) {
    if (comparison.kind != "step") continue;
    ++steps;
    shown += comparison.witness.shows_mechanism();
  }
  return fmt::format("{} of {} steps", shown, steps);
}

std::string status(const Result& result) {
  const std::string words = words_of(result.status);
  return is_failure(result.status) ? "**" + words + "**" : words;
}

std::string speedup(const Result& result) {
  std::string text = ratio(result.headline().speedup.value);
  if (result.kind == "demonstration") text += " †";
  return text;
}

std::vector<std::string> row(const Result& result) {
  std::vector<std::string> cells = {label(result), result.on(), status(result)};
  if (has_figures(result)) {
    cells.insert(cells.end(),
                 {speedup(result), interval(result.headline().speedup),
                  duration_ns(result.first().ns.value), duration_ns(result.best().ns.value),
                  percent(result.best().ceiling_percent), witness(result)});
  }
  return cells;
}

std::string remark(const Result& result) {
  std::string text = fmt::format("- {} on {}: {}", label(result), result.on(), status(result));
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

std::string value(const stats::Interval& of) {
  if (std::isnan(of.value)) return "–";
  if (!of.known()) return significant(of.value);
  return fmt::format("{} ({} to {})", significant(of.value), significant(of.lo),
                     significant(of.hi));
}

/// The figures by which a target is judged whose goal is not speed.
std::string judged_by(const Result& result) {
  std::string text = fmt::format("- {} on {}: judged by {}, not speed", label(result), result.on(),
                                 markdown_text(result.goal));
  const stats::Interval& gain = result.headline().gain;
  if (gain.value > 0) {
    text += fmt::format(": {} is {} better ({})", markdown_text(result.goal_metric),
                        ratio(gain.value), interval(gain));
  }
  const auto first = static_cast<std::size_t>(&result.first() - result.sides.data());
  const auto best = static_cast<std::size_t>(&result.best() - result.sides.data());
  const char* separator = gain.value > 0 ? "; " : ": ";
  for (const auto& [name, metric] : result.metrics) {
    text +=
        fmt::format("{}{} {} → {} {}", separator, markdown_text(name), value(metric.sides[first]),
                    value(metric.sides[best]), markdown_text(metric.unit));
    separator = "; ";
  }
  return text + "\n";
}

const ComparisonResult* comparison_to(const Result& result, const std::string& side,
                                      const char* kind) {
  const auto found = std::ranges::find_if(result.comparisons, [&](const ComparisonResult& c) {
    return c.to == side && c.kind == kind;
  });
  return found == result.comparisons.end() ? nullptr : &*found;
}

/// How the last side stands to libraries, a line each.
std::string yardsticks(const Result& result, const char* before) {
  std::string lines;
  for (const ComparisonResult& comparison : result.comparisons) {
    if (comparison.kind != "yardstick") continue;
    lines += fmt::format("{}{} runs at {} the speed of the yardstick {} ({}).\n", before,
                         markdown_code(comparison.to), ratio(comparison.speedup.value),
                         markdown_code(comparison.from), interval(comparison.speedup));
  }
  return lines;
}

/// A lab, rung by rung: what each adds to the one before, and where that stands to the first.
std::string ladder(const Result& result) {
  MarkdownTable table{.header = {"rung", "time", "step", "95% interval", "verdict", "total",
                                 "of ceiling", "witness"},
                      .alignment = "lrrrlrrl",
                      .rows = {}};
  for (const SideResult& side : result.sides) {
    std::vector<std::string> cells = {markdown_code(side.name), duration_ns(side.ns.value)};
    const ComparisonResult* step = comparison_to(result, side.name, "step");
    const ComparisonResult* total = comparison_to(result, side.name, "total");
    if (step) {
      cells.insert(cells.end(),
                   {ratio(step->speedup.value), interval(step->speedup), words_of(step->verdict),
                    ratio((total ? total : step)->speedup.value)});
    }
    cells.resize(6);
    if (side.role == "yardstick") cells[4] = "yardstick";
    cells.push_back(percent(side.ceiling_percent));
    cells.push_back(step ? witness(step->witness) : "");
    table.rows.push_back(std::move(cells));
  }
  return fmt::format("### {} on {}\n\n{}\n\n{}{}\n", label(result), result.on(),
                     markdown_text(result.title), render(table), yardsticks(result, "\n"));
}

std::string chapter(const std::string& name, const std::vector<const Result*>& results) {
  MarkdownTable table{.header = {"target", "on", "status"}, .alignment = "lll", .rows = {}};
  if (std::any_of(results.begin(), results.end(),
                  [](auto* result) { return has_figures(*result); })) {
    table.header.insert(table.header.end(),
                        {"speedup", "95% interval", "from", "to", "of ceiling", "witness"});
    table.alignment += "rrrrrl";
  }
  std::string remarks, ladders;
  bool has_demonstrations = false;
  for (const Result* result : results) {
    table.rows.push_back(row(*result));
    table.rows.back().resize(table.header.size());
    has_demonstrations |= result->kind == "demonstration" && has_figures(*result);
    if (has_figures(*result) && result->goal != "speed") remarks += judged_by(*result);
    if (has_figures(*result) && result->is_ladder()) ladders += ladder(*result);
    if (has_figures(*result) && !result->is_ladder()) {
      remarks += yardsticks(*result, fmt::format("- {}: ", label(*result)).c_str());
    }
    if (!is_failure(result->status) && !result->reason.empty()) remarks += remark(*result);
    if (const std::string open = unwitnessed(*result); !open.empty()) {
      remarks += fmt::format("- {} on {}: {}\n", label(*result), result->on(), markdown_text(open));
    }
    for (const std::string& note : result->notes) {
      remarks += fmt::format("- {} on {}: {}\n", label(*result), result->on(), markdown_text(note));
    }
  }
  std::string text = "## " + markdown_text(name) + "\n\n" + render(table) + "\n";
  if (has_demonstrations) {
    text += "† demonstration: the baseline exists to teach and is in no mean.\n\n";
  }
  if (!remarks.empty()) text += remarks + "\n";
  return text + ladders;
}

std::string chapters(const RunRecord& record) {
  std::map<std::string, std::vector<const Result*>> by_chapter;
  for (const Result& result : record.results) by_chapter[result.chapter].push_back(&result);
  std::string text;
  for (const auto& [name, results] : by_chapter) text += chapter(name, results);
  return text;
}

std::string ceilings_table(const RunRecord& record) {
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
                     chapters(record), ceilings_table(record), environment(record));
}

}  // namespace gauntlet::lab::report
