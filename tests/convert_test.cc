// Does `gauntlet convert` keep its promises: the built-in model without a file beside it, one
// sentence and the right exit code for every mistake, nothing overwritten unasked?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

struct Here {
  TemporaryFolder folder;

  Outcome operator()(Words arguments) const {
    arguments.insert(arguments.begin(), {GAUNTLET_BINARY, "convert"});
    return run_program(arguments, folder.path());
  }
  fs::path operator/(const char* name) const { return fs::path(folder.path()) / name; }
};

TEST(ConvertCommand, carries_a_model_in_the_binary) {
  const Here here;
  const Outcome outcome = here({"gauntlet-tiny", "tiny.gguf", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("model"), "gauntlet-tiny");
  EXPECT_GT(fs::file_size(here / "tiny.gguf"), 17000000u);
  EXPECT_EQ(here({"tiny.gguf", "folder"}).code, 0);
  EXPECT_TRUE(fs::exists(here / "folder" / "config.json"));
}

TEST(ConvertCommand, asks_before_it_replaces) {
  const Here here;
  const Words words = {"gauntlet-draft", "draft.gguf"};
  ASSERT_EQ(here(words).code, 0);
  const Outcome again = here(words);
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.err, "gauntlet: draft.gguf is there already; --force replaces it\n");
  EXPECT_EQ(here({"gauntlet-draft", "draft.gguf", "--force"}).code, 0);
}

TEST(ConvertCommand, answers_every_mistake_with_one_sentence) {
  const Here here;
  const std::tuple<Words, int, const char*> mistakes[] = {
      {{}, 2, "give a model and an output"},
      {{"gauntlet-tiny"}, 2, "give a model and an output"},
      {{"gauntlet-tinny", "x.gguf"}, 3, "did you mean 'gauntlet-tiny'?"},
      {{"/none", "x.gguf"}, 3, "there is no model at '/none'"},
      {{"gauntlet-tiny", "none/x.gguf"}, 3, "cannot write none/x.gguf: No such file"},
      {{"--weights", "random"}, 2, "takes one path"},
      {{"--weights", "random", "a", "b"}, 2, "takes one path"},
      {{"--weights", "random", "--shape", "gpt-oss-20", "x"}, 2, "did you mean 'gpt-oss-20b'?"},
      {{"--weights", "random", "--layers", "99", "x"}, 2, "has 24 layers"},
      {{"gauntlet-tiny", "x.gguf", "--seed", "3"}, 2, "are for --weights random"},
  };
  for (const auto& [words, code, sentence] : mistakes) {
    const Outcome outcome = here(words);
    EXPECT_EQ(outcome.code, code) << testing::PrintToString(words);
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_TRUE(fs::is_empty(here.folder.path()));
}

}  // namespace
}  // namespace gauntlet::tests
