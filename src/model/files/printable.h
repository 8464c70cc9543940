// Names out of files, fit for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace gauntlet::model::inline files {

/// What is not plain text is a question mark, and a long name ends in dots.
inline std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  std::string text(name.substr(0, kLongest));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name.size() > kLongest ? text + "..." : text;
}

}  // namespace gauntlet::model::inline files
