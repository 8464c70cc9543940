#include "lab/report/format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>
#include <span>

#include "core/check.h"

namespace gauntlet::lab::report {
namespace {

struct Unit {
  double size;
  const char* name;
};

std::string scaled(double value, std::span<const Unit> units) {
  const auto unit = std::find_if(units.begin(), units.end() - 1, [&](const Unit& candidate) {
    return std::abs(value) >= candidate.size * 0.9995;
  });
  return fmt::format("{} {}", significant(value / unit->size), unit->name);
}

/// Width in a terminal, for text without wide characters.
std::size_t num_columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string one_line(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return out;
}

}  // namespace

std::string significant(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : "inf";
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  const std::string scientific = fmt::format("{:.2e}", value);
  if (magnitude < 0.001 || magnitude >= 1e6) return scientific;
  // The exponent after rounding: 0.9999 is 1.00, not 1.000.
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  return fmt::format("{:.{}f}", value, std::max(0, 2 - exponent));
}

std::string factor(double value) {
  if (!(value >= 0.1 && value < 10)) return significant(value);
  return fmt::format("{:.{}f}", value, value < 2 ? 3 : 2);
}

std::string ratio(double value) {
  return (value >= 0.1 && value < 10 ? fmt::format("{:.2f}", value) : significant(value)) + "×";
}

std::string duration_ns(double ns) {
  static constexpr std::array<Unit, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
  return scaled(ns, kUnits);
}

std::string bytes(std::int64_t count) {
  static constexpr std::array<Unit, 5> kUnits{{{1099511627776.0, "TiB"},
                                               {1073741824.0, "GiB"},
                                               {1048576.0, "MiB"},
                                               {1024.0, "KiB"},
                                               {1, "B"}}};
  return scaled(static_cast<double>(count), kUnits);
}

std::string utc(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string markdown_text(std::string_view text) {
  const std::string line = one_line(text);
  const auto in_word = [&](std::size_t at) {
    return at < line.size() && std::isalnum(static_cast<unsigned char>(line[at])) != 0;
  };
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    // snake_case needs no escape and reads better without.
    const bool plain_underscore = line[i] == '_' && in_word(i - 1) && in_word(i + 1);
    if (!plain_underscore &&
        std::string_view("\\`*_[]<|~").find(line[i]) != std::string_view::npos) {
      out += '\\';
    }
    out += line[i];
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  std::string line = one_line(text);
  std::size_t longest = 0, run = 0;
  for (const char c : line) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const char* pad = longest > 0 ? " " : "";
  std::string inside;
  for (const char c : line) inside += c == '|' ? std::string("\\|") : std::string(1, c);
  return fence + pad + inside + pad + fence;
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render(const MarkdownTable& table) {
  const std::size_t num = table.header.size();
  check(table.alignment.size() == num, "a Markdown table needs one alignment per column");
  std::vector<std::size_t> widths(num, 3);
  const auto widen = [&](const std::vector<std::string>& row) {
    check(row.size() == num, "a Markdown table's row has another number of cells than its header");
    for (std::size_t i = 0; i < num; ++i) widths[i] = std::max(widths[i], num_columns(row[i]));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);

  std::string out;
  const auto write = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < num; ++i) {
      const std::string gap(widths[i] - num_columns(row[i]), ' ');
      out += table.alignment[i] == 'r' ? "| " + gap + row[i] + " " : "| " + row[i] + gap + " ";
    }
    out += "|\n";
  };
  write(table.header);
  for (std::size_t i = 0; i < num; ++i) {
    const bool right = table.alignment[i] == 'r';
    out += "| " + std::string(widths[i] - (right ? 1 : 0), '-') + (right ? ": " : " ");
  }
  out += "|\n";
  for (const auto& row : table.rows) write(row);
  return out;
}

}  // namespace gauntlet::lab::report
