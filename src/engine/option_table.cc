#include "engine/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/text/text.h"

namespace gauntlet::engine {
namespace {

/// The lines of a plan in their order. One that an option brings anew comes behind these.
constexpr const char* kLines[] = {"device", "threads", "dense", "experts",  "attention",
                                  "layers", "head",    "kv",    "launches", "host memory"};

/// Parts collected by line.
class Lines {
 public:
  Lines() {
    for (const char* line : kLines) order_.emplace_back(line);
  }

  void add(const std::string& line, const std::string& text) {
    if (text.empty()) return;
    if (std::ranges::find(order_, line) == order_.end()) order_.push_back(line);
    std::string& all = texts_[line];
    all += (all.empty() ? "" : ", ") + text;
  }

  std::vector<std::string> all() const {
    std::vector<std::string> lines;
    for (const std::string& line : order_) {
      const auto found = texts_.find(line);
      if (found != texts_.end()) lines.push_back(line + ": " + found->second);
    }
    return lines;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> texts_;
};

template <class AnyPlan, class Option>
void add_parts(Lines& lines, const AnyPlan& plan, const OptionTable& table,
               Option OptionEntry::*backend) {
  using Place = typename PlanPart<AnyPlan>::Place;
  for (const Place place : {Place::in_order, Place::behind}) {
    for (const OptionEntry& entry : table) {
      for (const PlanPart<AnyPlan>& part : (entry.*backend).parts) {
        if (part.place == place) lines.add(part.line, part.text(plan));
      }
    }
  }
}

std::vector<std::string> describe_cuda(const CudaPlan& plan, const OptionTable& table) {
  Lines parts;
  parts.add("device", fmt::format("{}, {} SMs", plan.device, plan.num_sms));
  add_parts(parts, plan, table, &OptionEntry::cuda);
  std::vector<std::string> lines = parts.all();
  lines.push_back("memory: " + plan.memory.describe());
  for (const std::string& companion : plan.companions) lines.push_back("forced: " + companion);
  return lines;
}

}  // namespace

const OptionTable& option_table() {
  static const OptionTable table = [] {
    OptionTable all = shared_options();
    for (OptionEntry& entry : cuda_options()) all.push_back(std::move(entry));
    return all;
  }();
  return table;
}

const OptionEntry& find_option(const std::string& flag) {
  const auto found = std::ranges::find_if(
      option_table(), [&](const OptionEntry& entry) { return entry.flag.name == flag; });
  check(found != option_table().end(), "no such option: " + flag);
  return *found;
}

Expected<Plan> resolve(const EngineOptions& options, const OptionTable& table) {
  Plan plan;
  for (const OptionEntry& entry : table) {
    if (!entry.cpu.resolve) continue;
    if (const auto done = entry.cpu.resolve(options, plan); !done) return done.error();
  }
  return plan;
}

Expected<CudaPlan> resolve(const EngineOptions& options, const GpuTraits& gpu,
                           const OptionTable& table) {
  CudaPlan plan{.device = gpu.name, .num_sms = gpu.num_sms, .variants = options.cuda};
  for (const OptionEntry& entry : table) {
    if (!entry.cuda.resolve) continue;
    if (const auto done = entry.cuda.resolve(options, gpu, plan); !done) return done.error();
  }
  return plan;
}

std::vector<std::string> describe(const Plan& plan, const OptionTable& table) {
  if (plan.cuda) return describe_cuda(*plan.cuda, table);
  Lines lines;
  add_parts(lines, plan, table, &OptionEntry::cpu);
  return lines.all();
}

}  // namespace gauntlet::engine
