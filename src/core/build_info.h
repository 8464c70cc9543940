// What produced this binary: recorded in every run's manifest.
#pragma once
#include <string>

namespace gauntlet {

struct BuildInfo {
  std::string version;
  std::string commit;  // "+changes" when the tree was not clean
  std::string compiler;
  std::string flags;
  std::string cuda_compiler;  // empty without a CUDA toolkit
  std::string build_type;
};

BuildInfo build_info();

}  // namespace gauntlet
