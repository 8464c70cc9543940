// Any text as config.json and the files beside it: refused, or a shape that holds what it promises.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = parse_config(text, "fuzz");
  if (!config) config = named_shape("gpt-oss-20b");
  const bool generation = static_cast<bool>(apply_generation_config(text, "fuzz", *config));
  const bool tokenizer = static_cast<bool>(apply_tokenizer_config(text, "fuzz", *config));
  if (generation && tokenizer && !validate(*config, "fuzz")) std::abort();
  return 0;
}
