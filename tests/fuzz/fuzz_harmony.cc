// Any tokens as a model's turn: a chat and a response that clients can read and send back. Two
// bytes are a token, special ones more often than a vocabulary has them; the first byte chooses the
// stop strings.
#include <cstdint>

#include "engine/tiny_tokenizer.h"
#include "server/openai/generate/fault_of_turn.h"
#include "tests/fuzz/served.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet;
  const model::Tokenizer& tokenizer = engine::tiny_tokenizer();
  static const model::Harmony harmony = *model::Harmony::make(tokenizer);
  static const std::vector<std::int32_t> specials = tokenizer.specials();
  if (size == 0) return 0;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 1; i + 1 < size; i += 2) {
    const bool is_special = data[i] >= 0xc0;
    ids.push_back(is_special ? specials[data[i + 1] % specials.size()]
                             : (data[i] << 8 | data[i + 1]) % tokenizer.vocab_size());
  }
  const std::vector<std::string> stops =
      data[0] % 2 == 0 ? std::vector<std::string>{} : std::vector<std::string>{"e", " the", "}"};
  const std::string fault = server::fault_of_turn(harmony, ids, stops);
  tests::demand(fault.empty(), fault);
  return 0;
}
