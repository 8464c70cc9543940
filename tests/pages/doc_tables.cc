#include "tests/pages/doc_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>

#include "core/text/text.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string without_code(const std::string& text) {
  static const std::regex kCode("`[^`]*`");
  return std::regex_replace(text, kCode, "``");
}

/// What stands between the bars of a row; a bar within code is none.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::string cell;
  bool in_code = false;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '`') in_code = !in_code;
    if (row[i] == '|' && !in_code && row[i - 1] != '\\') {
      cells.push_back(trim(cell));
      cell.clear();
    } else {
      cell += row[i];
    }
  }
  return cells;
}

bool has_interval(const std::string& text) {
  static const std::regex kInterval(R"([0-9](×)? \[[0-9.,]+, [0-9.,]+\])");
  return std::regex_search(text, kInterval);
}

bool has_unit_of_measure(const std::string& text) {
  static const std::regex kUnit(
      R"([0-9]×|[0-9] ?(%|(µs|us|ms|ns|s|tok/s|[KMGT]B/s|[TG]FLOP/s|J)([^A-Za-z0-9_/]|$)))");
  return std::regex_search(text, kUnit);
}

bool is_number(const std::string& cell) {
  return !cell.empty() && is_digit(cell.front()) &&
         std::ranges::all_of(cell, [](char c) { return is_digit(c) || c == '.' || c == ','; });
}

bool shows_measurement(const std::string& cell) {
  const std::string text = without_code(cell);
  return has_interval(text) || has_unit_of_measure(text);
}

bool shows_measurements(const Row& row) {
  int numbers = 0;
  for (std::size_t i = 1; i < row.cells.size(); ++i) {
    if (shows_measurement(row.cells[i])) return true;
    if (is_number(row.cells[i])) ++numbers;
  }
  return numbers >= 2;
}

std::string comment_in(const std::string& line) {
  const std::string kOpen = "<!-- ", kClose = " -->";
  if (!line.starts_with(kOpen) || !line.ends_with(kClose)) return "";
  return line.substr(kOpen.size(), line.size() - kOpen.size() - kClose.size());
}

/// Where the numbers of a text begin, and how long they are.
std::vector<std::pair<std::size_t, std::size_t>> places_of_numbers(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  bool in_code = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') in_code = !in_code;
    if (in_code || !is_digit(text[i]) || (i > 0 && is_word(text[i - 1]))) continue;
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    while (end + 3 < text.size() && text[end] == ',' && is_digit(text[end + 1]) &&
           is_digit(text[end + 2]) && is_digit(text[end + 3])) {
      end += 4;
    }
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      ++end;
      while (end < text.size() && is_digit(text[end])) ++end;
    }
    places.emplace_back(i, end - i);
    i = end - 1;
  }
  return places;
}

}  // namespace

Page parse_page(std::filesystem::path path, const std::string& text) {
  Page page{.path = std::move(path), .lines = split_lines(text), .tables = {}, .prose = {}};
  bool in_code = false, in_table = false;
  std::string mark;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    if (line.starts_with("```")) in_code = !in_code;
    if (!line.starts_with("|") || in_code) {
      in_table = false;
      mark = comment_in(line);
      if (!in_code && mark.empty() && !line.starts_with("    ")) page.prose.push_back(i);
      continue;
    }
    if (!in_table) {
      page.tables.push_back({.mark = mark, .header = cells_of(line), .rows = {}, .line = i});
      in_table = true;
    } else if (i > page.tables.back().line + 1) {  // below the line of dashes
      page.tables.back().rows.push_back({.line = i, .cells = cells_of(line)});
    }
  }
  return page;
}

std::vector<Page> read_pages(const std::filesystem::path& root) {
  static const std::set<std::string> kNotOurs = {"build", "node_modules", "artifacts", ".git"};
  std::vector<Page> pages;
  for (auto at = std::filesystem::recursive_directory_iterator(root);
       at != std::filesystem::recursive_directory_iterator(); ++at) {
    if (at->is_directory() && kNotOurs.contains(at->path().filename().string())) {
      at.disable_recursion_pending();
    } else if (at->path().extension() == ".md") {
      pages.push_back(parse_page(at->path(), read_text(at->path())));
    }
  }
  return pages;
}

bool shows_measurements(const Table& table) {
  return std::ranges::any_of(table.rows, [](const Row& row) { return shows_measurements(row); });
}

std::string measurement_in_prose(const std::string& line) {
  static const std::regex kMeasured(
      R"([0-9.,]+(×)? \[[0-9.,]+, [0-9.,]+\]|[0-9.,]+ ?(tok|events|requests|[KMGT]B|[TG]FLOP)/s|[0-9]\.[0-9]+×)");
  std::smatch match;
  const std::string text = without_code(line);
  return std::regex_search(text, match, kMeasured) ? match.str() : "";
}

std::vector<std::string> numbers_of(const std::string& cell) {
  std::vector<std::string> numbers;
  for (const auto& [at, length] : places_of_numbers(cell)) {
    numbers.push_back(cell.substr(at, length));
  }
  return numbers;
}

std::string printed_like(const std::string& printed, double value) {
  const auto point = printed.find('.');
  const int decimals =
      point == std::string::npos ? 0 : static_cast<int>(printed.size() - point - 1);
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  auto end = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size()));
  while ((end -= 3) > 0) digits.insert(static_cast<std::size_t>(end), ",");
  return digits;
}

Checked check_table(const Table& table, const FiguresByRow& figures) {
  Checked checked;
  for (const Row& row : table.rows) {
    const std::string name = row.cells.empty() ? "" : row.cells.front();
    const auto fault = [&](const std::string& what) {
      checked.faults.push_back(fmt::format("line {}: '{}' {}", row.line + 1, name, what));
    };
    const auto known = figures.find(name);
    if (known == figures.end()) {
      if (shows_measurements(row)) fault("is not in the record");
      continue;
    }
    bool has_figure = false;
    std::string corrected = "| " + name + " |";
    for (std::size_t i = 1; i < row.cells.size(); ++i) {
      const std::string& column = i < table.header.size() ? table.header[i] : "";
      std::string cell = row.cells[i];
      const auto values = known->second.columns.find(column);
      if (values != known->second.columns.end()) {
        const auto places = places_of_numbers(cell);
        if (places.size() != values->second.size()) {
          fault(fmt::format("has {} figures in '{}', the record {}", places.size(), column,
                            values->second.size()));
        } else {
          has_figure = has_figure || !places.empty();
          for (std::size_t k = places.size(); k-- > 0;) {  // from the end, so that places hold
            const auto& [at, length] = places[k];
            cell.replace(at, length, printed_like(cell.substr(at, length), values->second[k]));
          }
        }
      } else if (column != "aim" && (shows_measurement(cell) || is_number(cell))) {
        fault(fmt::format("has a figure in '{}', which the record lacks", column));
      }
      corrected += cell.empty() ? " |" : " " + cell + " |";
    }
    if (!has_figure) fault("has no figure");
    const bool says_no_gain = corrected.find("`no_gain`") != std::string::npos;
    if (says_no_gain != known->second.no_gain) {
      fault(says_no_gain ? "is a gain in the record" : "is `no_gain` in the record");
    }
    std::string as_it_is = "|";
    for (const std::string& cell : row.cells) as_it_is += cell.empty() ? " |" : " " + cell + " |";
    if (corrected != as_it_is) checked.corrected[row.line] = corrected;
  }
  return checked;
}

}  // namespace gauntlet::tests
