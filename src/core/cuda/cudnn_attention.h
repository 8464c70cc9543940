// cuDNN through dlopen: causal attention by its graph API. No header of the library is needed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/expected.h"
#include "core/os/dynamic_library.h"

struct CUstream_st;

namespace gauntlet {

/// out = softmax(scale·q·kᵀ, keys up to the query)·v, all [heads, sequence, head_dim] in bf16.
struct CausalAttention {
  std::int64_t heads = 0;  // of all sequences of a batch
  std::int64_t sequence = 0;
  std::int64_t head_dim = 0;
  float scale = 1;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
};

/// libcudnn.so.9 in the loader's path or a toolkit's folders.
LibrarySearch cudnn_search();

/// The engine that cuDNN's heuristic puts first among those that take this attention.
class CudnnAttention {
 public:
  /// An error names the library and the places searched, or what cuDNN said.
  static Expected<std::unique_ptr<CudnnAttention>> open(
      const CausalAttention& attention, const LibrarySearch& search = cudnn_search());
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  void run(CUstream_st* stream);

  /// As cudnnGetVersion() has it: 91900 is 9.19.0.
  std::int64_t version() const;
  /// The plan in cuDNN's own words.
  std::string plan() const;

 private:
  CudnnAttention();
  struct State;
  std::unique_ptr<State> state_;
};

/// For a side whose lab declared the need; throws open()'s sentence where there is none.
std::shared_ptr<CudnnAttention> require_cudnn_attention(const CausalAttention& attention);

}  // namespace gauntlet
