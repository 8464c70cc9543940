// A part of a model: views of the layers, heads, experts and columns that one of several ranks
// holds. Nothing is copied but biases and norms.
#pragma once
#include <cstdint>

#include "model/weights.h"

namespace gauntlet::model {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Matrices whose inputs are divided among ranks (o, down) are cut by inputs, so that ranks hold
/// terms of the same sums, or by outputs: then no sum is cut, and inputs have to be gathered.
enum class Cut { inputs, outputs };

struct Slice {
  Range layers;
  Range heads;         // of queries: their rows of q, their sinks
  Range kv_heads;      // may be another rank's, too
  Range experts;       // whole ones, but for:
  Range intermediate;  // of each expert: rows of gate and up
  Range vocab;         // rows of the head; the embedding is held whole
  Range o_outputs;     // where o is cut by outputs
  Range down_outputs;  // and down
  Cut cut = Cut::inputs;
  /// Where inputs are cut, one rank's sums have the bias.
  bool adds_o_bias = true;
  bool adds_down_bias = true;
};

/// All of it.
Slice whole_slice(const ModelConfig& config);

/// The part's own counts are in its config, but for experts and vocabulary, of which tokens of all
/// kinds still speak. Experts keep their numbers; those that are not held have matrices of no rows.
ModelWeights slice_weights(const ModelWeights& weights, const Slice& slice);

/// Bytes in the files of what these weights see.
std::int64_t stored_bytes(const ModelWeights& weights);

}  // namespace gauntlet::model
