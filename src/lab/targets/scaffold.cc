#include "lab/targets/scaffold.h"

#include <fmt/format.h>

#include <regex>
#include <string_view>
#include <vector>

namespace gauntlet::embedded {
std::string_view pair_h_in();
std::string_view pair_cc_in();
std::string_view side_cc_in();
std::string_view side_cu_in();
}  // namespace gauntlet::embedded

namespace gauntlet::lab::inline targets {
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Drops the lines between @begin x@ and @end x@ where x is not wanted, and the marks themselves.
std::string keep_sections(const std::string& text, bool cpu, bool cuda) {
  std::string kept, section;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end == std::string::npos ? text.size() : end + 1;
    if (line.starts_with("@begin ")) {
      section = line.substr(7, line.size() - 8);
    } else if (line.starts_with("@end ")) {
      section.clear();
    } else if (section.empty() || (section == "cpu" && cpu) || (section == "cuda" && cuda)) {
      kept += line + "\n";
    }
  }
  return kept;
}

}  // namespace

Expected<ScaffoldRequest> parse_pair_name(const std::string& text) {
  std::smatch match;
  if (!std::regex_match(text, match, std::regex("(ch[0-9]{2}|labs)[/:]([a-z][a-z0-9_]*)"))) {
    return Error{fmt::format("'{}' is not a pair's name: write chapter/name, as in ch07/my_pair, "
                             "with small letters, digits and underscores",
                             text),
                 ErrorKind::wrong_use};
  }
  return ScaffoldRequest{.chapter = match[1], .name = match[2], .technique = ""};
}

std::map<std::string, std::string> scaffold_files(const ScaffoldRequest& request) {
  const bool cpu = request.sides != ScaffoldRequest::Sides::cuda;
  const bool cuda = request.sides != ScaffoldRequest::Sides::cpu;
  const auto expand = [&](std::string_view pattern, const std::string& side) {
    std::string text = keep_sections(std::string(pattern), cpu, cuda);
    text = replace_all(text, "@CHAPTER@", request.chapter);
    text = replace_all(text, "@NAME@", request.name);
    text = replace_all(text, "@TECHNIQUE@", request.technique);
    return replace_all(text, "@SIDE@", side);
  };
  std::map<std::string, std::string> files{{"pair.h", expand(embedded::pair_h_in(), "")},
                                           {"pair.cc", expand(embedded::pair_cc_in(), "")}};
  for (const std::string side : {"baseline", "optimized"}) {
    if (cpu) files[side + ".cc"] = expand(embedded::side_cc_in(), side);
    if (cuda) files[side + ".cu"] = expand(embedded::side_cu_in(), side);
  }
  return files;
}

}  // namespace gauntlet::lab::inline targets
