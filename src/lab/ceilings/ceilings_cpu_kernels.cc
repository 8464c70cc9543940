// Methods that every 64-bit CPU has: the C library's, and plain loops over 16-byte vectors.
#include "lab/ceilings/ceilings_cpu_kernels.h"

#include <cstring>

namespace gauntlet::lab::inline ceilings {
namespace {

using Words = std::uint64_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(16)));
constexpr int kChains = 8;  // independent sums: enough for a latency of 4 on two units

/// Makes the sums count as used, so that the loop before it cannot be dropped.
template <class Vector>
void use(const Vector (&sums)[kChains]) {
  asm volatile("" : : "m"(sums) : "memory");
}

void read_words(const std::byte* from, std::size_t bytes) {
  Words sums[kChains] = {};
  const auto* words = reinterpret_cast<const Words*>(from);
  for (std::size_t i = 0; i < bytes / sizeof(Words); i += kChains) {
    for (int chain = 0; chain < kChains; ++chain) sums[chain] ^= words[i + chain];
  }
  use(sums);
}

void write_memset(std::byte* to, std::size_t bytes) { std::memset(to, 0x5a, bytes); }

void copy_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

template <class Vector>
void multiply_add(std::int64_t iterations) {
  Vector sums[kChains] = {};
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = sums[chain] * Vector{0.75f, -0.5f} + Vector{1.25f, 0.375f};
    }
  }
  use(sums);
}

template <class Vector>
constexpr double operations() {
  return 2.0 * kChains * sizeof(Vector) / sizeof(Vector{}[0]);
}

}  // namespace

CpuMethods cpu_methods() {
  CpuMethods methods = x86_methods();
  methods.writes.push_back({"memset", write_memset});
  methods.copies.push_back({"memcpy", copy_memcpy});
  if (methods.reads.empty()) methods.reads.push_back({"16-byte loads", read_words});
  if (methods.arithmetic.empty()) {
    methods.arithmetic = {
        {"fma_f32", "16-byte vectors", operations<Floats>(), multiply_add<Floats>},
        {"fma_f64", "16-byte vectors", operations<Doubles>(), multiply_add<Doubles>}};
  }
  return methods;
}

}  // namespace gauntlet::lab::inline ceilings
