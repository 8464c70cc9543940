#include "lab/targets/suites.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/text/text.h"

namespace gauntlet::embedded {
std::string_view suites();
}

namespace gauntlet::lab::inline targets {
namespace {

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(trim(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

}  // namespace

Expected<std::vector<Suite>> parse_suites(const std::string& text) {
  std::vector<Suite> suites;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    const auto wrong = [&](const std::string& what) {
      return Error{fmt::format("suites line {}: {}", number, what)};
    };
    if (trim(line).empty() || line.starts_with('#')) continue;
    const auto fields = split_tabs(line);
    if (fields.size() != 3) {
      return wrong(fmt::format("{} fields, expected name, patterns and purpose separated by tabs",
                               fields.size()));
    }
    Suite suite{.name = fields[0], .patterns = split_words(fields[1]), .purpose = fields[2]};
    if (suite.name.empty() || suite.name.find_first_of(" ,:*?[") != std::string::npos) {
      return wrong(fmt::format("'{}' is no name of a suite", suite.name));
    }
    if (suite.patterns.empty()) return wrong(fmt::format("'{}' has no patterns", suite.name));
    if (suite.purpose.empty()) return wrong(fmt::format("'{}' has no purpose", suite.name));
    if (std::ranges::any_of(suites, [&](const Suite& s) { return s.name == suite.name; })) {
      return wrong(fmt::format("'{}' is there twice", suite.name));
    }
    suites.push_back(std::move(suite));
  }
  if (suites.empty()) return Error{"suites: the file lists none"};
  return suites;
}

Expected<std::vector<Suite>> load_suites() { return parse_suites(std::string(embedded::suites())); }

std::string suite_names(const std::vector<Suite>& suites) {
  std::string names;
  for (std::size_t i = 0; i < suites.size(); ++i) {
    if (i > 0) names += i + 1 == suites.size() ? " or " : ", ";
    names += suites[i].name;
  }
  return names;
}

}  // namespace gauntlet::lab::inline targets
