// Which files decide what a source does: those it includes, and those that implement what it
// includes.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gauntlet::tests::gpu {

/// Files and the digest of each one's code.
struct SourceSet {
  std::map<std::string, std::string> files;

  /// Names this very content.
  std::string id() const;
  bool contains(const std::string& path) const { return files.contains(path); }
};

/// Paths that are in one and not in the other, or differ.
std::vector<std::string> differences(const SourceSet& one, const SourceSet& other);

class SourceTree {
 public:
  using Predicate = std::function<bool(const std::string& path)>;

  /// Reads the sources below src, catalog and tests, and the build's own below cmake.
  explicit SourceTree(const std::filesystem::path& root);

  const std::set<std::string>& paths() const { return paths_; }
  const std::string& text(const std::string& path) const { return texts_.at(path); }
  std::vector<std::string> matching(const Predicate& wanted) const;

  /// The roots with what they include and what implements that, again and again. `left_out` are
  /// neither part of it nor followed.
  SourceSet closure(const std::vector<std::string>& roots, const Predicate& left_out) const;

 private:
  std::string resolve(const std::string& from, const std::string& include) const;
  void find_includes(const std::string& path);
  void find_implementations();

  std::set<std::string> paths_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::string> digests_;
  std::map<std::string, std::vector<std::string>> includes_;
  std::map<std::string, std::vector<std::string>> implementations_;  // by header
};

bool is_test_source(const std::string& path);
/// Compiled only where there is no CUDA.
bool is_cpu_only_source(const std::string& path);

}  // namespace gauntlet::tests::gpu
