// Reads /proc, /sys and /etc below a root that tests replace. What is not there is no error:
// kernels and containers differ in what they show.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gauntlet {

class SystemFiles {
 public:
  explicit SystemFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// The text of a file, named as on the real machine ("/proc/swaps"), trimmed.
  std::optional<std::string> text(const std::string& path) const;
  /// The number a file starts with.
  std::optional<std::int64_t> number(const std::string& path) const;
  /// The value after `key` and a colon in files such as /proc/meminfo.
  std::optional<std::string> field(const std::string& path, const std::string& key) const;
  /// The names in a folder, sorted; empty when there is none.
  std::vector<std::string> list(const std::string& folder) const;

 private:
  std::filesystem::path below_root(const std::string& path) const;
  std::filesystem::path root_;
};

/// The number a text starts with; nothing when it starts with none or it does not fit.
std::optional<std::int64_t> leading_number(const std::string& text);

/// "0-3,8" -> 0 1 2 3 8.
std::vector<int> parse_cpu_list(const std::string& list);
/// 0 1 2 3 8 -> "0-3,8".
std::string format_cpu_list(std::vector<int> cpus);

}  // namespace gauntlet
