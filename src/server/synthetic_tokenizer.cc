#include "server/synthetic_tokenizer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace gauntlet::server {
namespace {

constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kControl = 3;
constexpr std::int64_t kNumBytes = 256;

/// How byte-level BPE spells a byte: itself where it is printable in Latin-1, otherwise the next
/// character from U+0100 on.
std::vector<std::string> spelled_bytes() {
  std::vector<std::string> spelled;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < kNumBytes; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    spelled.emplace_back();
    model::append_utf8(printable ? byte : next++, spelled.back());
  }
  return spelled;
}

}  // namespace

Expected<model::Tokenizer> synthetic_tokenizer(std::int64_t vocab) {
  const std::pair<const char*, std::int64_t> specials[] = {
      {"<|startoftext|>", 199998}, {"<|endoftext|>", 199999}, {"<|return|>", 200002},
      {"<|constrain|>", 200003},   {"<|channel|>", 200005},   {"<|start|>", 200006},
      {"<|end|>", 200007},         {"<|message|>", 200008},   {"<|call|>", 200012}};
  constexpr std::int64_t kLastSpecial = 200012;
  if (vocab < kNumBytes + std::ssize(specials)) {
    return Error{
        fmt::format("a vocabulary of {} has no room for the 256 bytes and {} special tokens", vocab,
                    std::ssize(specials)),
        ErrorKind::wrong_use};
  }
  model::GgufTokens tokens{.model = "gpt2", .pre = "gpt-4o", .tokens = spelled_bytes()};
  const std::string space = tokens.tokens[' '];
  for (std::int64_t id = kNumBytes; id < vocab; ++id) {
    tokens.tokens.push_back(fmt::format("{}t{}", space, id));
  }
  tokens.types.assign(static_cast<std::size_t>(vocab), kNormal);
  std::int64_t at_end = vocab - std::ssize(specials);
  for (const auto& [text, id] : specials) {
    const std::int64_t place = vocab > kLastSpecial ? id : at_end++;
    tokens.tokens[place] = text;
    tokens.types[place] = kControl;
  }
  return model::Tokenizer::from_gguf(tokens, "the synthetic tokenizer");
}

}  // namespace gauntlet::server
