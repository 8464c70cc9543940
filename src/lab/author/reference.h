// Reference: what the outputs must be, in float64 or exactly, and how far a rounded computation may
// be from it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/host_array.h"
#include "core/random.h"

namespace gauntlet::lab::inline author {

/// A computation's rounding, from which its error bound follows.
struct Rounding {
  DType operands = DType::f32;    // what the inputs are rounded to before they are multiplied
  DType accumulate = DType::f32;  // what sums are kept in
  DType result = DType::f32;      // what the output is stored as
  std::int64_t length = 1;        // terms per sum
  double ulps = 0;                // of a function that is not a sum, as its library states it

  /// Expected square of the error of a value whose terms have this 2-norm. Rounding errors are
  /// independent, so they add in squares (Higham and Mary, 2019): 2u²/3 of the squared norm for
  /// two rounded operands; u²/3 of each partial sum, which for n terms add up to n/2 squared norms
  /// and n/3 squared values; and what operands cut off instead of rounded lose, 2u of the value.
  double variance(double squared_norm, double squared_value) const;
  /// Largest error allowed: eight standard deviations, half an ulp of the result and `ulps`.
  double bound(double norm, double value) const;
};

/// Expected values of one output: all elements, or some rows of it and sums over all of them.
struct ExpectedOutput {
  enum class Compare { exact, rounded };
  Compare compare = Compare::rounded;
  Rounding rounding = {};
  std::vector<std::int64_t> rows = {};  // empty: all elements
  std::int64_t row_length = 0;
  HostArray<double> values = {};        // rounded: [elements] or [rows, row_length]
  HostArray<double> norms = {};         // √Σterm² of each value; empty: |value|/√length
  HostArray<unsigned char> bytes = {};  // exact

  bool has_row_sums = false;
  HostArray<double> weights = {};  // [row_length]
  HostArray<double> sums = {};     // [all rows]
  HostArray<double> squares = {};  // [all rows]
};

/// A sum over each row of an output that is too large to recompute: it sees every element. For a
/// product C = A·B it costs two products with a vector: A·(B·w) (Freivalds' check).
struct RowSums {
  std::span<const double> weights;  // [row_length], drawn by the lab after the sample
  std::span<double> sums;           // [rows]: Σ_j weights[j] · expected[i, j]
  std::span<double> squares;        // [rows]: Σ_j weights[j]² · Σ_k term[i, j, k]²
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

  /// Every element in float64; norms(name) holds √Σterm² of each for sums.
  std::span<double> values(const std::string& name, Rounding rounding);
  std::span<double> norms(const std::string& name);

  /// For outputs too large to recompute: [rows, row_length] of the chosen rows, and, so that every
  /// element is seen, row_sums() over all rows beside them.
  std::span<double> rows(const std::string& name, std::int64_t row_length,
                         std::vector<std::int64_t> rows, Rounding rounding);
  RowSums row_sums(const std::string& name);

  /// An input as another rank has it: what a collective's result is made of.
  template <class T>
  const T* peer_input(const std::string& name, int rank) const {
    return static_cast<const T*>(peer_bytes(name, rank));
  }
  using Peers = std::function<const void*(const std::string& name, int rank)>;
  void set_peers(Peers peers) { peers_ = std::move(peers); }

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
  const void* peer_bytes(const std::string& name, int rank) const;

  Random random_;
  Peers peers_;
  std::map<std::string, Declared> declared_;
  std::map<std::string, ExpectedOutput> outputs_;
};

}  // namespace gauntlet::lab::inline author
