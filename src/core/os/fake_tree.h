// A temporary folder that tests fill with files, as a fake /proc and /sys or to write into.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/check.h"

namespace gauntlet {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "gauntlet_tree_XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr, "a temporary folder can be made");
    root_ = pattern;
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::filesystem::path& root() const { return root_; }

  /// `path` as it would be called on the real machine: "/proc/swaps".
  FakeTree& write(const std::string& path, std::string_view text) {
    const std::filesystem::path file = root_.string() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    check(out.good(), "a file of a fake tree can be written");
    return *this;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace gauntlet
