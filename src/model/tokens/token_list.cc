#include "model/tokens/token_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/files/json_scanner.h"
#include "model/tokens/o200k_split.h"
#include "model/tokens/token_table.h"
#include "model/tokens/utf8.h"

namespace gauntlet::model::inline tokens {
namespace {

using nlohmann::ordered_json;

/// Reads a tokenizer.json into a list; whether it makes a tokenizer is Tokenizer's to say.
class JsonTokens {
 public:
  JsonTokens(std::string_view text, std::int64_t vocab)
      : scanner_(text), list_{.model = "gpt2", .pre = "gpt-4o"} {
    list_.tokens.resize(static_cast<std::size_t>(vocab));
    list_.types.resize(static_cast<std::size_t>(vocab));
  }

  Expected<GgufTokens> read(std::string_view where) {
    const bool read = scanner_.object([this](std::string_view key) {
      if (key == "model") return model();
      if (key == "added_tokens") return scanner_.array([this] { return added_token(); });
      return skip();
    });
    if (!read || !scanner_.end()) {
      return Error{.message = fmt::format("{}: {}", where, scanner_.error())};
    }
    for (std::size_t id = 0; id < list_.tokens.size(); ++id) {
      if (list_.types[id] != 0) continue;
      list_.tokens[id] = fmt::format("[PAD{}]", id);
      list_.types[id] = static_cast<std::int32_t>(TokenKind::unused);
    }
    return std::move(list_);
  }

 private:
  bool skip() {
    std::string_view ignored;
    return scanner_.skip(ignored);
  }

  bool put(std::int64_t id, std::string_view text, TokenKind kind) {
    if (id < 0 || id >= static_cast<std::int64_t>(list_.tokens.size())) {
      return scanner_.fail(fmt::format("the token id {} is not in the model's vocabulary of {}", id,
                                       list_.tokens.size()));
    }
    list_.tokens[static_cast<std::size_t>(id)] = text;
    list_.types[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(kind);
    return true;
  }

  bool model() {
    return scanner_.object([this](std::string_view key) {
      if (key == "vocab") {
        return scanner_.object([this](std::string_view token) {
          std::int64_t id = 0;
          return scanner_.integer(id) && put(id, token, TokenKind::normal);
        });
      }
      if (key == "merges") return scanner_.array([this] { return merge(); });
      return skip();
    });
  }

  bool merge() {
    std::string pair, side;
    if (scanner_.peek() == '"') {
      if (!scanner_.string(pair)) return false;
    } else if (!scanner_.array([&] {
                 if (!scanner_.string(side)) return false;
                 pair += pair.empty() ? side : " " + side;
                 return true;
               })) {
      return false;
    }
    list_.merges.push_back(pair);
    return true;
  }

  bool added_token() {
    std::int64_t id = -1;
    std::string content;
    std::string_view special;
    const bool read = scanner_.object([&](std::string_view key) {
      if (key == "id") return scanner_.integer(id);
      if (key == "content") return scanner_.string(content);
      if (key == "special") return scanner_.skip(special);
      return skip();
    });
    const TokenKind kind = special == "true" ? TokenKind::control : TokenKind::user_defined;
    return read && put(id, content, kind);
  }

  JsonScanner scanner_;
  GgufTokens list_;
};

/// How byte-level BPE spells each byte: itself where it is printable, else a letter from U+0100 on.
std::vector<std::string> byte_spellings() {
  std::vector<std::string> spellings;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                           (byte >= 0xAE && byte <= 0xFF);
    append_utf8(printable ? byte : next++, spellings.emplace_back());
  }
  return spellings;
}

constexpr std::pair<std::int64_t, const char*> kPublishedSpecials[] = {
    {199998, "<|startoftext|>"}, {199999, "<|endoftext|>"}, {200002, "<|return|>"},
    {200003, "<|constrain|>"},   {200005, "<|channel|>"},   {200006, "<|start|>"},
    {200007, "<|end|>"},         {200008, "<|message|>"},   {200012, "<|call|>"},
};

}  // namespace

Expected<GgufTokens> read_gguf_tokens(const GgufFile& file) {
  const auto tokens = file.texts("tokenizer.ggml.tokens");
  const auto types = file.integers("tokenizer.ggml.token_type");
  const auto merges = file.texts("tokenizer.ggml.merges");
  for (const auto& [found, key] : {std::pair{tokens.has_value(), "tokens"},
                                   {types.has_value(), "token_type"},
                                   {merges.has_value(), "merges"}}) {
    if (!found) {
      return Error{.message = fmt::format("{}: 'tokenizer.ggml.{}' is missing", file.where(), key)};
    }
  }
  if (types->size() != tokens->size()) {
    return Error{.message = fmt::format("{}: there are {} tokens but {} token types", file.where(),
                                        tokens->size(), types->size())};
  }
  GgufTokens list{.model = std::string(file.text("tokenizer.ggml.model").value_or("")),
                  .pre = std::string(file.text("tokenizer.ggml.pre").value_or("")),
                  .tokens = {tokens->begin(), tokens->end()},
                  .merges = {merges->begin(), merges->end()}};
  for (const std::int64_t type : *types) {
    list.types.push_back(type >= 0 && type < 100 ? static_cast<std::int32_t>(type) : 0);
  }
  return list;
}

Expected<GgufTokens> read_json_tokens(std::string_view text, std::string_view where,
                                      std::int64_t vocab) {
  if (vocab > kMaxTokens) {
    return Error{.message = fmt::format("{}: a vocabulary of {} is more than tokenizers have",
                                        where, vocab)};
  }
  return JsonTokens(text, vocab).read(where);
}

GgufTokens make_tokens(const ModelConfig& config) {
  GgufTokens list{.model = "gpt2", .pre = "gpt-4o"};
  const std::int64_t vocab = config.vocab;
  std::vector<std::string> bytes = byte_spellings();
  bytes.push_back("Ġw");  // with a merge of its own: some readers refuse a list of none
  list.merges.push_back("Ġ w");
  for (std::int64_t id = 0; id < vocab; ++id) {
    list.tokens.push_back(id < static_cast<std::int64_t>(bytes.size())
                              ? bytes[static_cast<std::size_t>(id)]
                              : fmt::format("Ġw{}", id));
  }
  list.types.assign(list.tokens.size(), static_cast<std::int32_t>(TokenKind::normal));
  constexpr std::int64_t kCount = std::size(kPublishedSpecials);
  for (std::int64_t i = 0; i < kCount && vocab >= kCount; ++i) {
    const auto& [published, text] = kPublishedSpecials[i];
    const auto id = static_cast<std::size_t>(vocab == 201088 ? published : vocab - kCount + i);
    list.tokens[id] = text;
    list.types[id] = static_cast<std::int32_t>(TokenKind::control);
  }
  return list;
}

std::string write_tokenizer_json(const GgufTokens& list) {
  ordered_json added = ordered_json::array();
  ordered_json vocab = ordered_json::object();
  auto& entries = vocab.get_ref<ordered_json::object_t&>();
  for (std::size_t id = 0; id < list.tokens.size(); ++id) {
    const auto kind = static_cast<TokenKind>(list.types[id]);
    if (kind == TokenKind::normal) {
      // Not through operator[], which looks through all of them.
      entries.emplace_back(list.tokens[id], id);
    } else if (kind != TokenKind::unused) {
      added.push_back({{"id", id},
                       {"content", list.tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", kind == TokenKind::control}});
    }
  }
  const ordered_json byte_level = {{"type", "ByteLevel"},
                                   {"add_prefix_space", false},
                                   {"trim_offsets", true},
                                   {"use_regex", false}};
  const ordered_json split = {{"type", "Split"},
                              {"pattern", {{"Regex", kO200kPattern}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
  const ordered_json file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", std::move(vocab)},
        {"merges", list.merges}}}};
  return file.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::int64_t id_of(const GgufTokens& tokens, std::string_view text) {
  const auto found = std::find(tokens.tokens.begin(), tokens.tokens.end(), text);
  return found == tokens.tokens.end() ? -1 : found - tokens.tokens.begin();
}

}  // namespace gauntlet::model::inline tokens
