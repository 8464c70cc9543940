// Each drafter against none: the same answers, byte by byte, greedy and seeded, held to a schema
// and stopped, alone and among 15 others. serving_speculation GAUNTLET MODELS
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;

struct Asked {
  std::string path;
  json body;
};

std::vector<Asked> requests() {
  const char* texts[] = {"It was a dark night, and the", "one two three one two three one two",
                         "\"My dear,\" said the old man,", "The ship had been at sea for"};
  std::vector<Asked> all;
  for (int i = 0; i < 16; ++i) {
    json body = {{"prompt", texts[i % 4]}, {"max_tokens", 40}, {"temperature", 0}};
    if (i % 4 == 1) body.update({{"temperature", 0.8}, {"seed", 7 + i}});
    if (i % 4 == 2) body.update({{"stop", {" the", ","}}, {"min_tokens", 6}});
    if (i % 4 == 3) body.update({{"logprobs", 2}, {"n", 2}, {"temperature", 1}, {"seed", i}});
    if (i >= 12) {
      body.erase("prompt");
      body.erase("logprobs");
      body.erase("min_tokens");
      body.erase("stop");
      body["messages"] = {{{"role", "user"}, {"content", texts[i % 4]}}};
      const json schema = json::parse(
          R"({"type": "object", "properties": {"title": {"type": "string", "maxLength": 12},
              "year": {"enum": [1850, 1851]}}, "required": ["title", "year"],
              "additionalProperties": false})");
      body["response_format"] = {
          {"type", "json_schema"},
          {"json_schema", {{"name", "book"}, {"strict", true}, {"schema", schema}}}};
      all.push_back({"/v1/chat/completions", body});
    } else {
      all.push_back({"/v1/completions", body});
    }
  }
  return all;
}

/// What was said, without what differs by design: ids, times, and how many guesses were right.
std::string said(const std::optional<Answer>& answer) {
  if (!answer) return "no answer";
  if (answer->status() != 200) return answer->body();
  return json::parse(answer->body(), nullptr, false).value("choices", json()).dump();
}

struct Said {
  std::vector<std::string> alone, together;
  double drafted = 0;
  double accepted = 0;
  std::string fault;
};

Said play(const std::string& gauntlet, const std::vector<std::string>& options) {
  ServerProcess server(gauntlet, options);
  const std::vector<Asked> all = requests();
  Said result{.together = std::vector<std::string>(all.size())};
  for (const std::size_t i : {0, 1, 2, 3, 12}) {
    result.alone.push_back(said(ask(server.port(), "POST", all[i].path, all[i].body.dump())));
  }
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < all.size(); ++i) {
    clients.emplace_back([&, i] {
      result.together[i] = said(ask(server.port(), "POST", all[i].path, all[i].body.dump()));
    });
  }
  for (std::thread& client : clients) client.join();
  const auto metrics = ask(server.port(), "GET", "/metrics");
  const std::string text = metrics ? metrics->body() : "";
  result.drafted = metric(text, "gauntlet:spec_decode_num_draft_tokens_total");
  result.accepted = metric(text, "gauntlet:spec_decode_num_accepted_tokens_total");
  result.fault = server.end();
  return result;
}

int run(const std::string& gauntlet, const std::string& models) {
  const Said plain = play(gauntlet, {});
  Verdict verdict;
  verdict.claim(plain.drafted == 0 && plain.fault.empty(), "nothing is guessed unless asked for");
  verdict.claim(plain.together[0].find("\"text\":\"") != std::string::npos &&
                    plain.together[12].find("year") != std::string::npos,
                "requests are answered without guesses");
  const std::vector<std::pair<std::string, std::vector<std::string>>> drafters = {
      {"ngram", {}},
      {"draft", {"--draft-model", models + "/gauntlet-draft"}},
      {"eagle3", {"--draft-model", models + "/gauntlet-tiny-eagle3"}},
      {"experts", {"--draft-experts", "2"}},
      {"ngram,experts,eagle3", {"--draft-model", models + "/gauntlet-tiny-eagle3"}}};
  for (const auto& [name, more] : drafters) {
    for (const char* lengths : {"fixed", "measured"}) {
      std::vector<std::string> options = {"--speculate",     name,   "--draft-tokens", "4",
                                          "--draft-lengths", lengths};
      options.insert(options.end(), more.begin(), more.end());
      const Said guessed = play(gauntlet, options);
      const std::string how = name + ", " + lengths + " lengths: ";
      verdict.claim(guessed.alone == plain.alone, how + "alone, the same bytes as without");
      verdict.claim(guessed.together == plain.together, how + "among 15 others, too");
      const bool is_fixed = lengths == std::string("fixed");
      verdict.claim(guessed.fault.empty() && (!is_fixed || guessed.accepted > 0),
                    fmt::format("{}{} of {} guesses accepted {}", how, guessed.accepted,
                                guessed.drafted, guessed.fault));
    }
  }
  for (const auto& [name, more] : drafters) {
    if (name.find("experts") != std::string::npos) continue;  // which cannot branch
    for (const char* lengths : {"fixed", "measured"}) {
      std::vector<std::string> options = {"--speculate",    name, "--draft-tree",    "3,4",
                                          "--draft-tokens", "12", "--draft-lengths", lengths};
      options.insert(options.end(), more.begin(), more.end());
      const Said guessed = play(gauntlet, options);
      const std::string how = name + ", a tree, " + lengths + " lengths: ";
      verdict.claim(guessed.alone == plain.alone, how + "alone, the same bytes as without");
      verdict.claim(guessed.together == plain.together, how + "among 15 others, too");
      const bool is_fixed = lengths == std::string("fixed");
      verdict.claim(guessed.fault.empty() && (!is_fixed || guessed.accepted > 0),
                    fmt::format("{}{} of {} guesses accepted {}", how, guessed.accepted,
                                guessed.drafted, guessed.fault));
    }
  }
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: serving_speculation GAUNTLET MODELS\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1], argv[2]);
}
