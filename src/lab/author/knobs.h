// Knobs: a pair's sizes and settings, with a default per backend; --set and --sweep change them.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet::lab::inline author {

/// ranks: several processes, or threads of one, each with buffers of its own, on the CPU.
enum class BackendKind { cpu, cuda, ranks };
inline constexpr std::array kBackends = {BackendKind::cpu, BackendKind::cuda, BackendKind::ranks};

constexpr const char* name_of(BackendKind kind) {
  switch (kind) {
    case BackendKind::cpu:
      return "cpu";
    case BackendKind::cuda:
      return "cuda";
    case BackendKind::ranks:
      return "ranks";
  }
  return "?";
}
std::optional<BackendKind> backend_from(const std::string& name);

struct Knob {
  std::string name;
  std::int64_t cpu = 0;   // default on the CPU and its ranks
  std::int64_t cuda = 0;  // default on a GPU; 0: the CPU's
  std::int64_t min = 1;
  std::int64_t max = std::int64_t{1} << 40;
  std::int64_t multiple_of = 1;
  std::string help;
};

/// Values of all of a pair's knobs, checked.
class Knobs {
 public:
  using Overrides = std::map<std::string, std::int64_t>;

  static Knobs defaults(const std::vector<Knob>& declared, BackendKind backend);

  /// Applies overrides; an unknown name or a value out of range is an error that says what is
  /// valid.
  Expected<Knobs> with(const std::vector<Knob>& declared, const Overrides& overrides) const;

  std::int64_t operator[](const std::string& name) const;
  const std::map<std::string, std::int64_t>& all() const { return values_; }

 private:
  std::map<std::string, std::int64_t> values_;
};

}  // namespace gauntlet::lab::inline author
