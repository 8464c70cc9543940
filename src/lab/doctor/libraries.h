// The CUDA libraries that are opened at run time, and what is lost without each.
#pragma once
#include <string>
#include <vector>

namespace gauntlet::lab::doctor {

struct RuntimeLibrary {
  enum class Use { always, several_gpus };

  std::string name;
  std::string purpose;
  std::string fix;
  Use use = Use::always;
};

std::vector<RuntimeLibrary> runtime_libraries();

}  // namespace gauntlet::lab::doctor
