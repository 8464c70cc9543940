#include "core/os/system_files.h"

#include <algorithm>
#include <charconv>

#include "core/os/files.h"
#include "core/text/text.h"

namespace gauntlet {

std::filesystem::path SystemFiles::below_root(const std::string& path) const {
  return root_.string() + "/" + path;
}

std::optional<std::string> SystemFiles::text(const std::string& path) const {
  const auto read = read_file(below_root(path));
  if (!read) return std::nullopt;
  return trim(*read);
}

std::optional<std::int64_t> SystemFiles::number(const std::string& path) const {
  const auto read = text(path);
  return read ? leading_number(*read) : std::nullopt;
}

std::optional<std::string> SystemFiles::field(const std::string& path,
                                              const std::string& key) const {
  const auto read = text(path);
  if (!read) return std::nullopt;
  for (const std::string& line : split_lines(*read)) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trim(line.substr(0, colon)) == key) {
      return trim(line.substr(colon + 1));
    }
  }
  return std::nullopt;
}

std::vector<std::string> SystemFiles::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(below_root(folder), error), end;
  while (!error && at != end) {
    names.push_back(at->path().filename().string());
    at.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::int64_t> leading_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::vector<int> parse_cpu_list(const std::string& list) {
  std::vector<int> cpus;
  // More than any kernel's NR_CPUS: a damaged file must not fill the memory.
  constexpr std::int64_t kMostCpus = 65536;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string range = trim(list.substr(at, end - at));
    at = end + 1;
    const auto first = leading_number(range);
    if (!first || *first < 0) continue;
    const std::size_t dash = range.find('-');
    const auto last = dash == std::string::npos ? first : leading_number(range.substr(dash + 1));
    if (!last || *last >= kMostCpus) continue;
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::string format_cpu_list(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  std::string list;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!list.empty()) list += ",";
    list += std::to_string(cpus[first]);
    if (last > first) list += "-" + std::to_string(cpus[last]);
    first = last + 1;
  }
  return list;
}

}  // namespace gauntlet
