// Any bytes as the weights of a small model: refused, or readable to the last row.
#include <string_view>

#include "model/config.h"
#include "tests/fuzz/read_all.h"

namespace {

constexpr std::string_view kConfig = R"({
  "model_type": "gpt_oss", "num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 32,
  "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "num_local_experts": 2,
  "num_experts_per_tok": 1, "vocab_size": 8, "max_position_embeddings": 64, "sliding_window": 16,
  "rope_theta": 10000.0
})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet;
  const auto* config = reinterpret_cast<const std::uint8_t*>(kConfig.data());
  const model::ModelFiles files("fuzz", {tests::as_file("config.json", config, kConfig.size()),
                                         tests::as_file("model.safetensors", data, size)});
  if (const auto weights = model::load_model(files)) tests::read_all(*weights);
  return 0;
}
