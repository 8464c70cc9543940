// What the Markdown of a study's sections is written with.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/report/format.h"
#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

using lab::report::markdown_code;
using lab::report::markdown_text;
using lab::report::MarkdownTable;
using Row = std::vector<std::string>;

/// Empty where it is not known.
inline std::string number(double value) {
  return std::isfinite(value) ? lab::report::significant(value) : "";
}
inline std::string number(std::int64_t value) { return std::to_string(value); }
inline std::string number(const std::optional<double>& value) {
  return value ? number(*value) : "";
}
inline std::string number(const stats::Interval& figure) { return number(figure.value); }
inline std::string number(const std::optional<stats::Interval>& figure) {
  return figure ? number(figure->value) : "";
}
inline std::string percent(const std::optional<double>& value) {
  const std::string digits = number(value);
  return digits.empty() ? "" : digits + "%";
}

std::string markdown_of(const Sweeps& sweeps);
std::string markdown_of(const std::vector<TimeResult>& time);

}  // namespace gauntlet::study::inline results
