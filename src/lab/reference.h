// Reference: what the outputs must be, in float64 or exactly, and how far a rounded computation may
// be from it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/host_array.h"
#include "core/random.h"

namespace gauntlet::lab {

/// A computation's rounding, from which its error bound follows.
struct Rounding {
  DType operands = DType::f32;    // what the inputs are rounded to before they are multiplied
  DType accumulate = DType::f32;  // what sums are kept in
  DType result = DType::f32;      // what the output is stored as
  std::int64_t length = 1;        // terms per sum

  /// Error allowed per unit of magnitude (Σ|terms|): rounding of operands and result, plus
  /// 8·√length roundoffs of the accumulator. Accumulated rounding errors behave like a random walk
  /// (Higham and Mary, 2019), so √length with a factor 8 is sound in practice and far tighter than
  /// the worst case, length.
  double bound() const;
};

/// Expected values of one output: all elements, or some rows of it.
struct ExpectedOutput {
  enum class Compare { exact, rounded };
  Compare compare = Compare::rounded;
  Rounding rounding = {};
  std::vector<std::int64_t> rows = {};  // empty: all elements
  std::int64_t row_length = 0;
  HostArray<double> values = {};        // rounded: [elements] or [rows, row_length]
  HostArray<double> magnitudes = {};    // Σ|terms| of each value; empty: |value|
  HostArray<unsigned char> bytes = {};  // exact
};

class Reference {
 public:
  explicit Reference(std::uint64_t seed) : random_(seed) {}

  /// Starts over for other inputs; the memory of the expected values is kept.
  void restart(std::uint64_t seed) { random_ = Random(seed); }

  /// Declares the number of elements of an output (the lab does this before calling the pair).
  void declare(const std::string& name, DType type, std::int64_t count);

  /// Every element, bit for bit. What these functions return starts as zeros.
  template <class T>
  std::span<T> exact(const std::string& name) {
    auto raw = exact_bytes(name, sizeof(T));
    return {reinterpret_cast<T*>(raw.data()), raw.size() / sizeof(T)};
  }

  /// Every element in float64; magnitudes(name) optionally holds Σ|terms| for sums that cancel.
  std::span<double> values(const std::string& name, Rounding rounding);
  std::span<double> magnitudes(const std::string& name);

  /// For outputs too large to recompute: [rows, row_length] of the chosen rows. The rest is still
  /// checked for elements left unwritten and for NaN.
  std::span<double> rows(const std::string& name, std::int64_t row_length,
                         std::vector<std::int64_t> rows, Rounding rounding);

  /// One random index from each consecutive stratum of `stride`: touches every tile of at least
  /// that height.
  std::vector<std::int64_t> stratified(std::int64_t count, std::int64_t stride);

  const std::map<std::string, ExpectedOutput>& outputs() const { return outputs_; }

 private:
  struct Declared {
    DType type;
    std::int64_t count;
  };
  std::span<unsigned char> exact_bytes(const std::string& name, std::size_t element_bytes);
  const Declared& declared(const std::string& name) const;

  Random random_;
  std::map<std::string, Declared> declared_;
  std::map<std::string, ExpectedOutput> outputs_;
};

}  // namespace gauntlet::lab
