// The loops whose speed is a CPU's ceiling, one per method. They are written in assembly where the
// instruction matters, so that no compiler can drop or change the work.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gauntlet::lab::inline ceilings {

/// Sizes are multiples of this, pointers aligned to a page.
constexpr std::size_t kMoveGranule = 4096;

struct ReadMethod {
  const char* name;
  void (*run)(const std::byte* from, std::size_t bytes);
};
struct WriteMethod {
  const char* name;
  void (*run)(std::byte* to, std::size_t bytes);
};
struct CopyMethod {
  const char* name;
  void (*run)(std::byte* to, const std::byte* from, std::size_t bytes);
};
struct ArithmeticMethod {
  const char* ceiling;
  const char* name;
  double operations;  // of one iteration
  void (*run)(std::int64_t iterations);
};

/// What this CPU can run.
struct CpuMethods {
  std::vector<ReadMethod> reads;
  std::vector<WriteMethod> writes;
  std::vector<CopyMethod> copies;
  std::vector<ArithmeticMethod> arithmetic;
};
CpuMethods cpu_methods();
/// The AVX2 and AVX-512 methods of this CPU; empty on other architectures.
CpuMethods x86_methods();

}  // namespace gauntlet::lab::inline ceilings
