// One line that is rewritten in place on a terminal; silent anywhere else.
#pragma once
#include <string>

namespace gauntlet::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  void clear();

 private:
  bool terminal_ = false;
  bool shown_ = false;
};

}  // namespace gauntlet::cli
