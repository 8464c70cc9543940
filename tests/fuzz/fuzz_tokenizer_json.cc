// Any bytes as a tokenizer.json: refused, or a tokenizer that gives any text back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/tokens/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::from_json(text, "fuzz");
  if (!tokenizer) return 0;
  for (const SpecialTokens specials : {SpecialTokens::as_text, SpecialTokens::as_special}) {
    if (tokenizer->decode(tokenizer->encode(text, specials)) != text) std::abort();
  }
  return 0;
}
