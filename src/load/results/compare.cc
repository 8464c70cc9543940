#include "load/results/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "load/results/figure_json.h"

namespace gauntlet::load::inline results {
namespace {

void add(std::vector<Comparison>& out, const std::string& load, const std::string& figure,
         const stats::Interval& a, const stats::Interval& b) {
  const stats::Interval ratio = stats::ratio(a, b);
  out.push_back({.load = load,
                 .figure = figure,
                 .a = a,
                 .b = b,
                 .ratio = ratio,
                 .change = stats::change(ratio)});
}

void add_point(std::vector<Comparison>& out, const std::string& load, const PointResult& a,
               const PointResult& b, bool has_slo) {
  if (has_slo) add(out, load, "goodput /s", a.goodput_per_s, b.goodput_per_s);
  add(out, load, "requests /s", a.requests_per_s, b.requests_per_s);
  add(out, load, "output tok/s", a.output_tokens_per_s, b.output_tokens_per_s);
  const auto latency = [&](const std::string& name, const stats::Percentiles& of_a,
                           const stats::Percentiles& of_b) {
    add(out, load, name + " mean s", of_a.mean, of_b.mean);
    add(out, load, name + " median s", of_a.median, of_b.median);
    add(out, load, name + " p95 s", of_a.p95, of_b.p95);
    add(out, load, name + " p99 s", of_a.p99, of_b.p99);
  };
  latency("TTFT", a.ttft_s, b.ttft_s);
  latency("ITL", a.itl_s, b.itl_s);
  latency("TPOT", a.tpot_s, b.tpot_s);
  latency("E2E", a.e2e_s, b.e2e_s);
}

bool is_same_load(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(a); }

}  // namespace

std::vector<Comparison> compare(const LoadResult& a, const LoadResult& b) {
  std::vector<Comparison> out;
  const bool has_slo = a.slo.is_given() && b.slo.is_given();
  if (!a.sweep_key || !b.sweep_key) {
    add_point(out, "run", a.points[a.best], b.points[b.best], has_slo);
    return out;
  }
  const PointResult& best_a = a.points[a.best];
  const PointResult& best_b = b.points[b.best];
  const std::string best = fmt::format("best ({:.3g}, {:.3g})", a.loads[a.best], b.loads[b.best]);
  if (has_slo) {
    add(out, best, "goodput /s", best_a.goodput_per_s, best_b.goodput_per_s);
  } else {
    add(out, best, "requests /s", best_a.requests_per_s, best_b.requests_per_s);
  }
  add(out, best, "output tok/s", best_a.output_tokens_per_s, best_b.output_tokens_per_s);
  for (std::size_t i = 0; i < a.loads.size(); ++i) {
    for (std::size_t j = 0; j < b.loads.size(); ++j) {
      if (a.sweep_key != b.sweep_key || !is_same_load(a.loads[i], b.loads[j])) continue;
      add_point(out, fmt::format("{:.3g}", a.loads[i]), a.points[i], b.points[j], has_slo);
    }
  }
  return out;
}

std::string json_text(const std::vector<Comparison>& comparisons) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Comparison& row : comparisons) {
    rows.push_back({{"load", row.load},
                    {"figure", row.figure},
                    {"a", figure_json(row.a)},
                    {"b", figure_json(row.b)},
                    {"ratio", row.ratio.value > 0 ? figure_json(row.ratio) : nullptr},
                    {"change", stats::name_of(row.change)}});
  }
  return rows.dump(1) + "\n";
}

}  // namespace gauntlet::load::inline results
