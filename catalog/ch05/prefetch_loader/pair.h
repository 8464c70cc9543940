// How much of the reading hides behind the using, when somebody reads ahead?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::prefetch_loader {

constexpr int kFeatures = 1024;  // bytes per sample
constexpr int kOutputs = 4;

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;   // [batches]: the page of the file where each begins
  const std::int8_t* weights;  // [kOutputs, kFeatures]
  std::int32_t* out;           // [batches * samples, kOutputs]: weights times each sample
  std::int64_t batches;
  std::int64_t samples;  // per batch
};

/// The use of a batch: a linear layer over its samples, [samples, kFeatures].
inline void use_batch(const Params& p, const std::int8_t* batch, std::int32_t* out) {
  for (std::int64_t sample = 0; sample < p.samples; ++sample) {
    const std::int8_t* row = batch + sample * kFeatures;
    for (int output = 0; output < kOutputs; ++output) {
      const std::int8_t* weights = p.weights + output * kFeatures;
      std::int32_t sum = 0;
      for (int i = 0; i < kFeatures; ++i) sum += std::int32_t{row[i]} * weights[i];
      out[sample * kOutputs + output] = sum;
    }
  }
}

}  // namespace gauntlet::ch05::prefetch_loader
