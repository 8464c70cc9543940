// What entries of the table of options are put together from.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/option_table.h"

namespace gauntlet::engine {

template <class T>
std::function<void(EngineOptions&)> set(T EngineOptions::*member, T value) {
  return [=](EngineOptions& options) { options.*member = value; };
}
template <class T>
std::function<void(EngineOptions&)> set(T CudaOptions::*member, T value) {
  return [=](EngineOptions& options) { options.cuda.*member = value; };
}

inline const EngineOptions& holder_of(const EngineOptions& options, EngineOptions*) {
  return options;
}
inline const CudaOptions& holder_of(const EngineOptions& options, CudaOptions*) {
  return options.cuda;
}

/// A flag that takes one of a few words.
template <class Holder, class T>
OptionFlag word_flag(std::string name, T Holder::*member,
                     std::vector<std::pair<std::string, T>> words, std::string help) {
  OptionFlag flag{.name = std::move(name), .help = std::move(help), .words = {}};
  for (const auto& [word, value] : words) flag.words.push_back({word, set(member, value)});
  flag.value = [=](const EngineOptions& options) -> std::string {
    for (const auto& [word, value] : words) {
      if (holder_of(options, static_cast<Holder*>(nullptr)).*member == value) return word;
    }
    return "";
  };
  return flag;
}

/// One of a GPU.
template <class T>
OptionFlag cuda_flag(std::string name, T CudaOptions::*member,
                     std::vector<std::pair<std::string, T>> words, std::string help) {
  OptionFlag flag = word_flag(std::move(name), member, std::move(words), std::move(help));
  flag.group = FlagGroup::cuda;
  return flag;
}

/// Sets what another option asked for, and says why; nothing where it is so already.
template <class T>
void force(CudaPlan& plan, T& variant, T forced, const char* line) {
  if (variant == forced) return;
  variant = forced;
  plan.companions.push_back(line);
}

}  // namespace gauntlet::engine
