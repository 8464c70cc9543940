// What a loader accepted must be readable: the first and the last row of every matrix.
#pragma once
#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace gauntlet::tests {

inline void read_all(const model::ModelWeights& weights) {
  std::vector<float> row;
  const auto read = [&](const model::Matrix& matrix) {
    row.resize(static_cast<std::size_t>(matrix.cols));
    matrix.read_row(0, row.data());
    matrix.read_row(matrix.rows - 1, row.data());
  };
  read(weights.embedding);
  read(weights.lm_head);
  for (const model::LayerWeights& layer : weights.layers) {
    for (const model::Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.router}) {
      read(*matrix);
    }
    for (const model::ExpertWeights& expert : layer.experts) {
      for (const model::Matrix* matrix : {&expert.gate, &expert.up, &expert.down}) read(*matrix);
    }
  }
}

/// Bytes as the one file of a model.
inline model::ModelFile as_file(const char* name, const std::uint8_t* data, std::size_t size) {
  return {.name = name, .where = name, .bytes = std::as_bytes(std::span(data, size))};
}

}  // namespace gauntlet::tests
