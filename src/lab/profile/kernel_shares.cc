#include "lab/profile/kernel_shares.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace gauntlet::lab::inline profile {
namespace {

struct Span {
  std::string kernel;
  double start_us;
  double end_us;
};

/// "void gauntlet::(anonymous namespace)::norm_kernel<3>(Norm)" -> "norm_kernel".
std::string short_name(std::string name) {
  for (std::size_t at; (at = name.find("(anonymous namespace)::")) != std::string::npos;) {
    name.erase(at, 23);
  }
  name.resize(std::min(name.find_first_of("<("), name.size()));
  const std::size_t colon = name.rfind("::");
  if (colon != std::string::npos) name.erase(0, colon + 2);
  const std::size_t space = name.rfind(' ');
  return space == std::string::npos ? name : name.substr(space + 1);
}

bool is(const std::string& kernel, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return kernel.find(name) != std::string::npos; });
}

/// A product is told apart by its neighbours.
std::string role(const std::vector<Span>& spans, std::size_t i) {
  const std::string& own = spans[i].kernel;
  if (!is(own, {"decode_", "prefill_", "plain_"})) return own;
  const std::string before = i > 0 ? spans[i - 1].kernel : "";
  const std::string after = i + 1 < spans.size() ? spans[i + 1].kernel : "";
  const char* what = is(after, {"rotate", "attend"})               ? "qkv"
                     : is(after, {"sample"})                       ? "lm_head"
                     : is(before, {"route", "dispatch", "gather"}) ? "gate_up"
                     : is(after, {"route"})                        ? "o"
                                                                   : "down";
  return std::string(what) + ": " + own;
}

}  // namespace

Expected<std::vector<KernelShare>> kernel_shares(const std::string& trace, std::int64_t steps) {
  const auto parsed = nlohmann::json::parse(trace, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("traceEvents")) return Error{"the GPU left no trace"};
  std::vector<Span> spans;
  for (const auto& event : parsed.at("traceEvents")) {
    const std::string category = event.value("cat", "");
    if (category != "kernel" && category != "copy") continue;
    const double start = event.at("ts").get<double>();
    spans.push_back({short_name(event.at("name").get<std::string>()), start,
                     start + event.at("dur").get<double>()});
    if (category == "copy") spans.back().kernel = event.at("name").get<std::string>();
  }
  if (spans.empty()) return Error{"no kernel ran in the trace"};
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start_us < b.start_us; });
  struct Sum {
    double us = 0;
    double launches = 0;
  };
  std::map<std::string, Sum> sums;
  double reached = spans.front().start_us;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].start_us > reached) {
      sums["idle"].us += spans[i].start_us - reached;
      reached = spans[i].start_us;
    }
    Sum& own = sums[role(spans, i)];
    own.launches += 1;
    if (spans[i].end_us > reached) {
      own.us += spans[i].end_us - reached;
      reached = spans[i].end_us;
    }
  }
  std::vector<KernelShare> shares;
  const auto count = static_cast<double>(steps);
  for (const auto& [name, sum] : sums) {
    shares.push_back({name, sum.launches / count, sum.us / count});
  }
  std::sort(shares.begin(), shares.end(), [](const KernelShare& a, const KernelShare& b) {
    return a.us_per_step > b.us_per_step;
  });
  return shares;
}

}  // namespace gauntlet::lab::inline profile
