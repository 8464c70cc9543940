// Tables for a terminal: columns as wide as their content, numbers to the right.
#pragma once
#include <string>
#include <vector>

namespace gauntlet::cli {

class Table {
 public:
  /// A header that starts with '>' is right-aligned.
  explicit Table(std::vector<std::string> headers);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gauntlet::cli
