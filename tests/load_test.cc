// Does gauntlet load refuse bad options with one sentence, and tell a missing server from a wrong
// use?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using testing::HasSubstr;

Outcome load(const std::string& arguments) {
  std::vector<std::string> argv = {GAUNTLET_BINARY, "load"};
  std::stringstream words(arguments);
  for (std::string word; words >> word;) argv.push_back(word);
  const TemporaryFolder folder;
  return run_program(argv, folder.path());
}

TEST(Load, refuses_bad_options_with_one_sentence) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "--rate"},
      {"--rate 0", "--rate"},
      {"--rate x", "--rate"},
      {"--rate 1 --concurrency 2", "closed"},
      {"--arrivals closed", "--concurrency"},
      {"--arrivals fixed --concurrency 3", "--concurrency"},
      {"--arrivals sometimes --rate 1", "poisson"},
      {"--rate 1 --sweep rate=1..2", "--sweep"},
      {"--sweep rate=2..1", "--sweep"},
      {"--sweep concurrency=1..4 --arrivals poisson", "sweep"},
      {"--rate 1 --url nowhere", "--url"},
      {"--rate 1 --prompt-tokens uniform:9..1", "--prompt-tokens"},
      {"--rate 1 --output-tokens 0", "--output-tokens"},
      {"--rate 1 --shared-prefix 4", "--shared-prefix"},
      {"--rate 1 --slo fast", "--slo"},
      {"--rate 1 --burstiness 0", "--burstiness"},
      {"--rate 1 --requests -1", "--requests"},
      {"--rate 1 --timeout 0", "--timeout"},
      {"--rate 1 --endpoint images", "completions"},
      {"--compare one.json", "--compare"},
      {"--rate 1 --nonsense", "--nonsense"},
  };
  for (const auto& [arguments, word] : cases) {
    const Outcome outcome = load(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(word)) << arguments;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

TEST(Load, says_that_a_server_or_a_file_is_not_there) {
  const Outcome server = load("--rate 1 --requests 1 --url http://127.0.0.1:9");
  EXPECT_EQ(server.code, 3);
  EXPECT_THAT(server.err, HasSubstr("127.0.0.1:9"));
  EXPECT_EQ(std::ranges::count(server.err, '\n'), 1) << server.err;
  EXPECT_EQ(load("--trace nothing.jsonl").code, 3);
  EXPECT_EQ(load("--compare nothing.json nothing.json").code, 3);
}

TEST(Load, measures_itself) {
  const Outcome outcome = load("--self-test --self-test-streams 20 --self-test-tokens 5 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result["events"], 20 * 5);
  EXPECT_EQ(result["failed"], 0);
}

}  // namespace
}  // namespace gauntlet::tests
