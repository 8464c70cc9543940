#include "model/tokens/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "core/random.h"
#include "model/tokens/tokenizer_builder.h"

namespace gauntlet::model::inline tokens {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string source_file(const std::string& name) {
  const auto text = read_file(std::string(GAUNTLET_SOURCE_DIR) + "/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

std::string tiny_json() { return source_file("models/gauntlet-tiny/tokenizer.json"); }

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = *Tokenizer::from_json(tiny_json(), "tiny");
  return tokenizer;
}

/// How byte-level BPE spells a byte.
std::string spelled(unsigned char byte) {
  std::string bytes;
  for (char32_t point = 0; point < 324; ++point) {
    std::string spelling;
    append_utf8(point, spelling);
    bytes.clear();
    if (append_spelled_bytes(spelling, bytes) && bytes[0] == static_cast<char>(byte))
      return spelling;
  }
  return "";
}

/// A tokenizer.json with the 256 bytes as tokens 0..255 and what is given beside them.
Json small_json(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  Json json = Json::parse(tiny_json());
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[spelled(static_cast<unsigned char>(byte))] = byte;
  Json list = Json::array();
  for (const auto& [left, right] : merges) {
    list.push_back({left, right});
    if (!vocab.contains(left + right)) vocab[left + right] = vocab.size();
  }
  json["model"]["vocab"] = vocab;
  json["model"]["merges"] = list;
  json["added_tokens"] = Json::array();
  return json;
}

Json added(int id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

std::string error_of(const Json& json) {
  const auto made = Tokenizer::from_json(json.dump(), "t.json");
  return made ? "" : made.error().message;
}

void expect_golden(const std::string& name) {
  const auto tokenizer =
      Tokenizer::from_json(source_file("models/" + name + "/tokenizer.json"), name);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const Json golden = Json::parse(source_file("tests/golden/" + name + ".json"));
  const auto bos = tokenizer->special("<|startoftext|>");
  ASSERT_TRUE(bos);
  for (const Json& one : golden["cases"]) {
    const std::string text = one["text"];
    Ids wanted = one["ids"];
    ASSERT_EQ(wanted.front(), *bos);
    wanted.erase(wanted.begin());
    EXPECT_EQ(tokenizer->encode(text), wanted) << text;
    EXPECT_EQ(tokenizer->decode(wanted), text);
  }
}

TEST(Tokenizer, gives_the_golden_ids_of_gauntlet_tiny) { expect_golden("gauntlet-tiny"); }
TEST(Tokenizer, gives_the_golden_ids_of_gauntlet_draft) { expect_golden("gauntlet-draft"); }

TEST(Tokenizer, gives_the_validation_text_back) {
  const std::string text = source_file("tests/golden/validation.txt");
  EXPECT_EQ(tiny().decode(tiny().encode(text)), text);
}

TEST(Tokenizer, gives_any_bytes_back) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random.next_below(200), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next_below(256));
    EXPECT_EQ(tiny().decode(tiny().encode(bytes)), bytes);
  }
}

TEST(Tokenizer, gives_the_same_in_portions_as_at_once) {
  std::string text;
  for (int i = 0; i < 3; ++i) text += source_file("tests/golden/validation.txt") + "<|end|>";
  for (const auto specials : {SpecialTokens::as_text, SpecialTokens::as_special}) {
    Ids joined;
    int portions = 0;
    tiny().encode(text, specials, [&](std::span<const std::int32_t> ids) {
      joined.insert(joined.end(), ids.begin(), ids.end());
      ++portions;
    });
    EXPECT_EQ(joined, tiny().encode(text, specials));
    EXPECT_GT(portions, 1);
  }
}

TEST(Tokenizer, takes_specials_as_text_or_as_special) {
  const std::string text = "a<|end|>b<|endoftext|>";
  const Ids special = tiny().encode(text, SpecialTokens::as_special);
  EXPECT_THAT(special, ElementsAre(tiny().encode("a")[0], *tiny().special("<|end|>"),
                                   tiny().encode("b")[0], *tiny().special("<|endoftext|>")));
  const Ids plain = tiny().encode(text, SpecialTokens::as_text);
  for (const std::int32_t id : plain) EXPECT_FALSE(tiny().is_special(id));
  EXPECT_EQ(tiny().decode(plain), text);
  EXPECT_EQ(tiny().decode(special), text);
  EXPECT_EQ(tiny().decode(special, SpecialText::skipped), "ab");
}

TEST(Tokenizer, knows_its_specials) {
  EXPECT_EQ(tiny().vocab_size(), 4096);
  EXPECT_EQ(tiny().special("<|start|>"), 4092);
  EXPECT_EQ(tiny().special("start"), std::nullopt);
  EXPECT_EQ(tiny().specials().size(), 9);
  EXPECT_TRUE(tiny().is_special(4095));
  EXPECT_FALSE(tiny().is_special(0));
}

TEST(Tokenizer, decodes_ids_without_a_token_as_nothing) {
  EXPECT_EQ(tiny().decode(Ids{-1, 4096, 1 << 30}), "");
  EXPECT_EQ(tiny().token_bytes(-7), "");
}

TEST(Tokenizer, finds_the_longest_of_added_tokens_that_begin_together) {
  Json json = small_json();
  json["added_tokens"] = {added(300, "<a", true), added(301, "<a>", true), added(302, "|", false)};
  const auto tokenizer = Tokenizer::from_json(json.dump(), "t");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("<a><ab<", SpecialTokens::as_special),
              ElementsAre(301, 300, 'b', '<'));
  EXPECT_THAT(tokenizer->encode("<a|", SpecialTokens::as_text), ElementsAre('<', 'a', 302));
}

TEST(Tokenizer, merges_the_lowest_rank_first_and_leftmost_of_equals) {
  const auto tokenizer =
      Tokenizer::from_json(small_json({{"b", "c"}, {"a", "b"}, {"a", "a"}}).dump(), "t");
  ASSERT_TRUE(tokenizer);
  const auto id = [&](const char* text) { return tokenizer->encode(text)[0]; };
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre('a', id("bc")));
  EXPECT_THAT(tokenizer->encode("aaa"), ElementsAre(id("aa"), 'a'));
}

TEST(Tokenizer, takes_a_whole_piece_only_where_the_file_says_so) {
  Json json = small_json({{"b", "c"}});
  json["model"]["vocab"]["abc"] = 500;
  EXPECT_EQ(Tokenizer::from_json(json.dump(), "t")->encode("abc"), (Ids{'a', 256}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(Tokenizer::from_json(json.dump(), "t")->encode("abc"), (Ids{500}));
}

TEST(Tokenizer, reads_merges_as_pairs_or_strings_before_or_after_the_vocabulary) {
  Json json = small_json({{"a", "b"}, {"\u0120", "ab"}});
  const Ids wanted =
      Tokenizer::from_json(json.dump(), "t")->encode("x ab");  // sorted: merges first
  EXPECT_EQ(wanted.size(), 2);
  json["model"]["merges"] = {"a b", "\u0120 ab"};
  EXPECT_EQ(Tokenizer::from_json(json.dump(), "t")->encode("x ab"), wanted);
  nlohmann::ordered_json ordered = Json(json);
  const Json merges = json["model"]["merges"];
  ordered["model"].erase("merges");
  ordered["model"]["merges"] = merges;
  EXPECT_EQ(Tokenizer::from_json(ordered.dump(), "t")->encode("x ab"), wanted);
}

TEST(Tokenizer, merges_long_pieces_as_it_merges_short_ones) {
  // With only short merges, a long run is the short one repeated.
  const auto tokenizer = Tokenizer::from_json(small_json({{"a", "b"}, {"ab", "ab"}}).dump(), "t");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "abab";
  const Ids ids = tokenizer->encode(text);
  EXPECT_EQ(ids.size(), 1000);
  for (const std::int32_t id : ids) EXPECT_EQ(tokenizer->token_bytes(id), "abab");
}

TEST(Tokenizer, refuses_what_it_does_not_support) {
  Json json = small_json();
  EXPECT_EQ(error_of(json), "");
  const auto broken = [&](const char* pointer, const Json& value) {
    Json copy = json;
    copy[Json::json_pointer(pointer)] = value;
    return error_of(copy);
  };
  EXPECT_THAT(broken("/model/type", "WordPiece"), HasSubstr("only byte-level BPE"));
  EXPECT_THAT(broken("/normalizer", {{"type", "NFC"}}), HasSubstr("normalizer"));
  EXPECT_THAT(broken("/pre_tokenizer", nullptr), HasSubstr("o200k split"));
  EXPECT_THAT(broken("/pre_tokenizer/pretokenizers/0/pattern/Regex", "x"), HasSubstr("o200k"));
  EXPECT_THAT(broken("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasSubstr("o200k"));
  EXPECT_THAT(broken("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder"));
  EXPECT_THAT(broken("/model/dropout", 0.5), HasSubstr("dropout"));
  EXPECT_THAT(broken("/model/vocab/a", 98), HasSubstr("share the id 98"));
  EXPECT_THAT(broken("/model/vocab/xyz", -1), HasSubstr("has the id -1"));
  EXPECT_THAT(broken("/model/vocab/xyz", 1 << 30), HasSubstr("is not between"));
  EXPECT_THAT(broken("/model/vocab/\u4e00", 700), HasSubstr("byte-level BPE does not use"));
  EXPECT_THAT(broken("/model/merges", Json::array({Json::array({"a", "b"})})),
              HasSubstr("the vocabulary lacks"));
  EXPECT_THAT(broken("/model/merges", Json::array({Json::array({"a"})})), HasSubstr("two sides"));
  EXPECT_THAT(broken("/model/merges", Json::array({"ab"})), HasSubstr("space between"));
  EXPECT_THAT(broken("/model/vocab", {{"a", 0}}), HasSubstr("no token for the byte"));
  EXPECT_THAT(broken("/added_tokens", Json::array({Json{{"id", 1}}})),
              HasSubstr("lacks its id or content"));
  EXPECT_THAT(broken("/added_tokens", Json::array({added(5, "<x>", true)})),
              HasSubstr("share the id 5"));
  Json strip = added(300, "<x>", true);
  strip["lstrip"] = true;
  EXPECT_THAT(broken("/added_tokens", Json::array({strip})), HasSubstr("lstrip"));
}

TEST(Tokenizer, refuses_a_file_cut_anywhere) {
  const std::string text = small_json({{"a", "b"}}).dump();
  for (std::size_t size = 0; size < text.size(); size += 7) {
    const auto made = Tokenizer::from_json(text.substr(0, size), "cut.json");
    ASSERT_FALSE(made) << size;
    EXPECT_THAT(made.error().message, HasSubstr("cut.json"));
  }
  EXPECT_FALSE(Tokenizer::from_json(text + "x", "t"));
}

GgufTokens tiny_gguf() {
  const Json json = Json::parse(tiny_json());
  GgufTokens gguf{.model = "gpt2", .pre = "gpt-4o"};
  gguf.tokens.resize(4096);
  gguf.types.assign(4096, 1);
  for (const auto& [token, id] : json["model"]["vocab"].items()) gguf.tokens[id] = token;
  for (const Json& token : json["added_tokens"]) {
    gguf.tokens[token["id"]] = token["content"];
    gguf.types[token["id"]] = 3;
  }
  for (const Json& merge : json["model"]["merges"]) {
    gguf.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return gguf;
}

TEST(Tokenizer, of_gguf_gives_the_ids_of_json) {
  GgufTokens gguf = tiny_gguf();
  gguf.tokens.push_back("[PAD4096]");
  gguf.types.push_back(5);
  const auto tokenizer = Tokenizer::from_gguf(gguf, "tiny.gguf");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = source_file("tests/golden/validation.txt") + "[PAD4096]<|end|>";
  for (const auto specials : {SpecialTokens::as_text, SpecialTokens::as_special}) {
    EXPECT_EQ(tokenizer->encode(text, specials), tiny().encode(text, specials));
  }
  EXPECT_EQ(tokenizer->token_bytes(4096), "[PAD4096]");
}

TEST(Tokenizer, of_gguf_refuses_what_it_does_not_support) {
  const auto broken = [](auto change) {
    GgufTokens gguf = tiny_gguf();
    change(gguf);
    const auto made = Tokenizer::from_gguf(gguf, "t.gguf");
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(broken([](GgufTokens&) {}), "");
  EXPECT_THAT(broken([](GgufTokens& g) { g.pre = "llama-bpe"; }), HasSubstr("gpt-4o"));
  EXPECT_THAT(broken([](GgufTokens& g) { g.types.pop_back(); }), HasSubstr("token types"));
  EXPECT_THAT(broken([](GgufTokens& g) { g.types[3] = 6; }), HasSubstr("type 6"));
  EXPECT_THAT(broken([](GgufTokens& g) { g.tokens[9] = g.tokens[8]; }), HasSubstr("twice"));
  EXPECT_THAT(broken([](GgufTokens& g) { g.merges[0] = "ab"; }), HasSubstr("space between"));
}

}  // namespace
}  // namespace gauntlet::model::inline tokens
