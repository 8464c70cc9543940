// Hugging Face's tokenizer.json. The vocabulary and the merges, nearly all of the file, are read as
// they stream by; the few settings become small JSON trees.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/files/json_scanner.h"
#include "model/files/printable.h"
#include "model/tokens/o200k_split.h"
#include "model/tokens/tokenizer_builder.h"

namespace gauntlet::model::inline tokens {
namespace {

using Json = nlohmann::json;

// Forty times the published file; positions in the table of tokens are 32 bits.
constexpr std::size_t kMaxTokenizerBytes = std::size_t{1} << 30;

class TokenizerJson {
 public:
  explicit TokenizerJson(std::string_view text) : text_(text), scanner_(text) {}

  bool read(TokenizerBuilder& builder) {
    builder_ = &builder;
    if (text_.size() > kMaxTokenizerBytes) return fail("it is larger than 1 GiB, no tokenizer is");
    // Both sizes are those of the published file, in bytes per entry; a bad guess costs little.
    builder.reserve(text_.size() / 140, text_.size() / 60);
    const bool read = scanner_.object([this](std::string_view key) { return member(key); }) &&
                      scanner_.end() && check_settings();
    if (!scanner_.ok()) fail(scanner_.error() + "; the file is cut short or no tokenizer.json");
    return read && add_added_tokens() && builder.finish(whole_);
  }

 private:
  bool fail(std::string sentence) { return builder_->fail(std::move(sentence)); }

  bool member(std::string_view key) {
    if (key == "model") {
      return scanner_.object([this](std::string_view name) { return model_member(name); }) &&
             (!merges_at_ || late_merges());
    }
    const std::string name(key);
    return setting(name == "added_tokens" || name == "normalizer" || name == "pre_tokenizer" ||
                           name == "decoder"
                       ? &settings_[name]
                       : nullptr);
  }

  /// Reads the next value into a tree, or past it.
  bool setting(Json* tree) {
    std::string_view raw;
    if (!scanner_.skip(raw)) return false;
    if (!tree) return true;
    *tree = Json::parse(raw, nullptr, false);
    return !tree->is_discarded() || scanner_.fail("the JSON is wrong before the end of a value");
  }

  bool model_member(std::string_view key) {
    if (key == "vocab") {
      has_vocab_ = true;
      return scanner_.object([this](std::string_view token) {
        std::int64_t id = 0;
        return scanner_.integer(id) && builder_->add_token(id, token);
      });
    }
    if (key == "merges") {
      if (has_vocab_) return merges();
      scanner_.peek();
      merges_at_ = scanner_.position();
      std::string_view raw;
      return scanner_.skip(raw);
    }
    return setting(&settings_["model"][std::string(key)]);
  }

  bool merges() {
    std::string left, right;
    return scanner_.array([&] {
      if (scanner_.peek() == '"') return scanner_.string(left) && builder_->add_merge(left);
      int sides = 0;
      const bool read = scanner_.array([&] {
        return sides++ == 2 ? scanner_.fail("a merge has more than two sides")
                            : scanner_.string(sides == 1 ? left : right);
      });
      if (read && sides != 2) return scanner_.fail("a merge has not two sides");
      return read && builder_->add_merge(left, right);
    });
  }

  /// Merges that stood before the vocabulary.
  bool late_merges() {
    const std::size_t resume_at = scanner_.position();
    scanner_.rewind(*merges_at_);
    if (!merges()) return false;
    scanner_.rewind(resume_at);
    return true;
  }

  bool check_settings() {
    const Json& model = settings_["model"];
    const auto text_of = [](const Json& tree, const char* key) -> std::string {
      const auto at = tree.is_object() ? tree.find(key) : tree.end();
      return at != tree.end() && at->is_string() ? at->get<std::string>() : "";
    };
    const auto off = [](const Json& tree, const char* key) {
      return !tree.is_object() || !tree.contains(key) || tree[key].is_null() || tree[key] == "" ||
             tree[key] == false || tree[key] == 0;
    };
    if (text_of(model, "type") != "BPE") {
      return fail(fmt::format("its model is '{}'; only byte-level BPE is supported",
                              shown(text_of(model, "type"))));
    }
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!off(model, key))
        return fail(fmt::format("its model has a {}, which is not supported", key));
    }
    if (!settings_["normalizer"].is_null()) {
      return fail("it has a normalizer; only tokenizers without one are supported");
    }
    const Json split = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern", {{"Regex", kO200kPattern}}},
           {"behavior", "Isolated"},
           {"invert", false}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    if (!matches(settings_["pre_tokenizer"], split)) {
      return fail(
          "its pre_tokenizer is not the o200k split followed by ByteLevel, the one supported");
    }
    const Json& decoder = settings_["decoder"];
    if (!decoder.is_null() && text_of(decoder, "type") != "ByteLevel") {
      return fail(fmt::format("its decoder is '{}'; only ByteLevel is supported",
                              shown(text_of(decoder, "type"))));
    }
    whole_ = off(model, "ignore_merges") ? WholePieces::are_merged : WholePieces::are_tokens;
    return true;
  }

  /// Whether `tree` has all that `wanted` has; it may have more members.
  static bool matches(const Json& tree, const Json& wanted) {
    if (wanted.is_array()) {
      return tree.is_array() &&
             std::equal(tree.begin(), tree.end(), wanted.begin(), wanted.end(), matches);
    }
    if (!wanted.is_object()) return tree == wanted;
    if (!tree.is_object()) return false;
    for (const auto& [key, value] : wanted.items()) {
      if (!tree.contains(key) || !matches(tree[key], value)) return false;
    }
    return true;
  }

  bool add_added_tokens() {
    const Json& tokens = settings_["added_tokens"];
    if (!tokens.is_array() && !tokens.is_null()) return fail("its added_tokens are no list");
    for (const Json& token : tokens) {
      if (!token.is_object() || !token.contains("id") || !token["id"].is_number_integer() ||
          !token.contains("content") || !token["content"].is_string()) {
        return fail("an added token lacks its id or content");
      }
      const std::string& content = token["content"].get_ref<const std::string&>();
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (token.value(key, Json(false)) != false) {
          return fail(
              fmt::format("added token {} is {}, which is not supported", token["id"].dump(), key));
        }
      }
      const bool special = token.value("special", Json(false)) == true;
      if (!builder_->add_added(token["id"].get<std::int64_t>(), content,
                               special ? AddedTokens::Kind::special : AddedTokens::Kind::plain)) {
        return false;
      }
    }
    return true;
  }

  std::string_view text_;
  JsonScanner scanner_;
  TokenizerBuilder* builder_ = nullptr;
  Json settings_ = Json::object();
  bool has_vocab_ = false;
  std::optional<std::size_t> merges_at_;
  WholePieces whole_ = WholePieces::are_merged;
};

}  // namespace

Expected<Tokenizer> Tokenizer::from_json(std::string_view text, std::string_view where) {
  TokenizerBuilder builder;
  if (!TokenizerJson(text).read(builder)) {
    return Error{fmt::format("{}: {}", where, builder.error())};
  }
  return builder.take();
}

}  // namespace gauntlet::model::inline tokens
