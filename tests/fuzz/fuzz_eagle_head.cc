// Any bytes as a draft head: what comes before the first zero byte as its config.json, the rest as
// its tensors. Refused, or a head whose every tensor and token id can be read.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/eagle_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet::model;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), size);
  const auto bytes_of = [](std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  const ModelFiles files("fuzz", {{"config.json", "config.json", bytes_of(all.substr(0, end))},
                                  {"model.safetensors", "model.safetensors",
                                   bytes_of(all.substr(std::min(end + 1, size)))}});
  ModelConfig target;
  target.name = "target";
  target.hidden = 32;
  target.vocab = 64;
  target.attention.assign(4, AttentionSpan::full);
  const auto head = load_eagle_head(files, target);
  if (!head) return 0;
  std::vector<float> row(static_cast<std::size_t>(
      std::max({head->fc.cols, head->q.cols, head->o.cols, head->down.cols, head->lm_head.cols})));
  for (const Matrix* matrix : {&head->fc, &head->q, &head->k, &head->v, &head->o, &head->gate,
                               &head->up, &head->down, &head->lm_head}) {
    for (std::int64_t r = 0; r < matrix->rows; ++r) matrix->read_row(r, row.data());
  }
  for (const std::int32_t id : head->target_ids) {
    if (id < 0 || id >= target.vocab) std::abort();
  }
  return 0;
}
