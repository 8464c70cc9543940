#include "load/workload/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "load/numbers.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::int64_t kMost = 1 << 22;

bool is_length(const std::optional<std::int64_t>& value) {
  return value && *value >= 1 && *value <= kMost;
}

}  // namespace

Lengths Lengths::fixed(std::int64_t count) {
  Lengths lengths;
  lengths.low_ = lengths.high_ = count;
  lengths.text_ = std::to_string(count);
  return lengths;
}

Expected<Lengths> Lengths::parse(const std::string& text, const std::string& option) {
  const Error refusal{
      fmt::format("{} takes a count as in 128, uniform:64..512 or lognormal:128,0.8 (median and "
                  "sigma, and a maximum where wanted), lengths from 1 to {}; not '{}'",
                  option, kMost, text),
      ErrorKind::wrong_use};
  Lengths lengths;
  lengths.text_ = text;
  const auto [name, rest] = cut(text, ":");
  if (name == "uniform") {
    const auto [low, high] = cut(rest, "..");
    const auto from = number<std::int64_t>(low), to = number<std::int64_t>(high);
    if (!is_length(from) || !is_length(to) || *from > *to) return refusal;
    lengths.kind_ = Kind::uniform;
    lengths.low_ = *from;
    lengths.high_ = *to;
    return lengths;
  }
  if (name == "lognormal") {
    const auto [median, tail] = cut(rest, ",");
    const auto [sigma, most] = cut(tail, ",");
    const auto middle = number<double>(median), width = number<double>(sigma);
    const auto high = most.empty() ? kMost : number<std::int64_t>(most);
    // Above a maximum below the median, half of the variates or more would be thrown away.
    if (!middle || *middle < 1 || !width || *width < 0 || *width > 4 || !is_length(high) ||
        static_cast<double>(*high) < *middle) {
      return refusal;
    }
    lengths.kind_ = Kind::lognormal;
    lengths.median_ = *middle;
    lengths.sigma_ = *width;
    lengths.high_ = *high;
    return lengths;
  }
  const auto count = number<std::int64_t>(text);
  if (!is_length(count)) return refusal;
  return fixed(*count);
}

std::int64_t Lengths::draw(Variates& variates) const {
  if (kind_ == Kind::fixed) return low_;
  if (kind_ == Kind::uniform) return variates.integer(low_, high_);
  while (true) {
    const double length = std::round(median_ * std::exp(sigma_ * variates.normal()));
    if (length <= static_cast<double>(high_))
      return std::max<std::int64_t>(1, std::llround(length));
  }
}

}  // namespace gauntlet::load::inline workload
