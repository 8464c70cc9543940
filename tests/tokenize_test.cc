// Does `gauntlet tokenize` turn text into ids and back, and refuse what is wrong in one sentence?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace std::string_literals;

Outcome tokenize(std::vector<std::string> arguments) {
  std::vector<std::string> argv = {GAUNTLET_BINARY, "tokenize"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_program(argv);
}

TEST(TokenizeCommand, writes_ids_that_its_own_decode_takes) {
  const Outcome ids = tokenize({"--text", "Once upon a time"});
  EXPECT_EQ(ids.code, 0) << ids.err;
  EXPECT_EQ(ids.out, "46,1229,573,258,570\n");
  EXPECT_EQ(tokenize({"--decode", ids.out}).out, "Once upon a time");
}

TEST(TokenizeCommand, gives_the_bytes_of_a_file_back) {
  const TemporaryFolder folder;
  const std::string bytes = "a\xFF\xE2\x82 \0b\r\n"s;
  std::ofstream(folder / "odd", std::ios::binary) << bytes;
  EXPECT_EQ(tokenize({"--decode", tokenize({"--file", folder / "odd"}).out}).out, bytes);
}

TEST(TokenizeCommand, writes_json) {
  EXPECT_EQ(json::parse(tokenize({"--text", "a<|end|>", "--format", "json"}).out)["count"], 6);
  EXPECT_EQ(
      json::parse(
          tokenize({"--text", "a<|end|>", "--special", "as-special", "--format", "json"}).out),
      json::parse(R"({"ids": [64, 4093], "count": 2})"));
  EXPECT_EQ(json::parse(tokenize({"--text", "", "--format", "json"}).out),
            json::parse(R"({"ids": [], "count": 0})"));
  EXPECT_EQ(
      json::parse(tokenize({"--text", "hi", "--pieces", "--format", "json"}).out)["tokens"][1],
      json::parse(R"({"id": 72, "text": "i"})"));
  const json count = json::parse(tokenize({"--text", "hi", "--count", "--format", "json"}).out);
  EXPECT_EQ(count["count"], 2);
  EXPECT_EQ(count["bytes"], 2);
  EXPECT_GT(count["timing"]["load_ms"], 0);
  EXPECT_EQ(json::parse(tokenize({"--decode", "71,72", "--format", "json"}).out)["text"], "hi");
}

TEST(TokenizeCommand, refuses_what_is_wrong_in_one_sentence) {
  const Outcome word = tokenize({"--decode", "1,x"});
  EXPECT_EQ(word.code, 2);
  EXPECT_THAT(word.err, HasSubstr("'x' is none"));
  EXPECT_THAT(tokenize({"--decode", "4096"}).err, HasSubstr("no token 4096"));
  EXPECT_EQ(tokenize({"--text", "a", "--file", "b"}).code, 2);
  const Outcome missing = run_program({GAUNTLET_BINARY, "tokenize", "--model", "/nowhere"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace gauntlet::tests
