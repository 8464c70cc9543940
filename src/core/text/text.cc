#include "core/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gauntlet {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// ASCII only: keys and names must not change with the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

/// Optimal string alignment: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

/// Three significant digits, without an exponent and without trailing zeros after the point.
std::string three_digits(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::string nearest(const std::string& wrong, const std::vector<std::string>& valid) {
  const std::string typed = lower(wrong);
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& name : valid) {
    const std::size_t distance = edit_distance(typed, lower(name));
    const std::size_t allowed = std::max<std::size_t>(1, std::max(typed.size(), name.size()) / 3);
    // A distance of the whole word shares nothing with it.
    if (distance > allowed || distance >= typed.size()) continue;
    if (best.empty() || distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string format_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  // 1023.5 rounds to 1024, which belongs to the next unit.
  while (std::abs(bytes) >= 1023.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return three_digits(bytes) + " " + kUnits[unit];
}

std::string format_duration_ns(double ns) {
  if (!std::isfinite(ns)) return fmt::format("{} ns", ns);
  const double size = std::abs(ns);
  if (size < 999.5) return three_digits(ns) + " ns";
  if (size < 999.5e3) return three_digits(ns / 1e3) + " us";
  if (size < 999.5e6) return three_digits(ns / 1e6) + " ms";
  if (size < 59.95e9) return three_digits(ns / 1e9) + " s";
  const char* sign = ns < 0 ? "-" : "";
  const auto seconds = static_cast<std::int64_t>(std::llround(size / 1e9));
  if (seconds < 3600) return fmt::format("{}{} min {:02} s", sign, seconds / 60, seconds % 60);
  const std::int64_t minutes = (seconds + 30) / 60;
  return fmt::format("{}{} h {:02} min", sign, minutes / 60, minutes % 60);
}

std::string format_ratio(double ratio) {
  const double size = std::abs(ratio);
  return fmt::format("{:.{}f}x", ratio, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string format_age(std::int64_t seconds) {
  struct Unit {
    std::int64_t seconds;
    const char* name;
  };
  constexpr std::array<Unit, 5> kUnits = {Unit{365 * 86400, "year"}, Unit{30 * 86400, "month"},
                                          Unit{86400, "day"}, Unit{3600, "hour"},
                                          Unit{60, "minute"}};
  for (const Unit& unit : kUnits) {
    if (seconds < unit.seconds) continue;
    const std::int64_t count = seconds / unit.seconds;
    return fmt::format("{} {}{} ago", count, unit.name, count == 1 ? "" : "s");
  }
  return "just now";
}

std::string slugify(std::string_view text) {
  std::string slug;
  for (char c : lower(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      slug += c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  if (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug;
}

std::string trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    if (is_space(line[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && !is_space(line[end])) ++end;
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace gauntlet
