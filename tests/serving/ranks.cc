// A model on two ranks under mpirun against one rank: eight streams at once get the same bytes,
// plain, by guesses and held to a schema; what the ranks did is shown, and a drain lets streams
// end. serving_ranks GAUNTLET
#include <signal.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/serving/http_client.h"
#include "tests/serving/rank_server.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;

constexpr int kSkipped = 77;
constexpr std::size_t kStreams = 8;

struct Asked {
  std::string path;
  json body;
};

std::vector<Asked> requests() {
  const char* texts[] = {"It was a dark night, and the", "one two three one two three one two",
                         "\"My dear,\" said the old man,", "The ship had been at sea for"};
  std::vector<Asked> all;
  for (std::size_t i = 0; i < kStreams; ++i) {
    json body = {{"stream", true}, {"temperature", 0}, {"max_tokens", 32}};
    if (i % 4 == 1) body.update({{"temperature", 0.8}, {"seed", 7 + i}});
    if (i % 4 == 2) body["max_tokens"] = 1;
    if (i < kStreams - 2) {
      body["prompt"] = texts[i % 4];
      all.push_back({"/v1/completions", body});
      continue;
    }
    const json schema = json::parse(
        R"({"type": "object", "properties": {"title": {"type": "string", "maxLength": 12},
            "year": {"enum": [1850, 1851]}}, "required": ["title", "year"],
            "additionalProperties": false})");
    body["max_tokens"] = 60;
    body["messages"] = {{{"role", "user"}, {"content", texts[i % 4]}}};
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "book"}, {"strict", true}, {"schema", schema}}}};
    all.push_back({"/v1/chat/completions", body});
  }
  return all;
}

/// The choices of all events, one behind the other.
std::string said(const std::optional<Answer>& answer) {
  if (!answer) return "no answer";
  if (answer->status() != 200) return answer->body();
  std::string choices;
  for (std::size_t at = 0; (at = answer->body().find("data: {", at)) != std::string::npos; ++at) {
    const std::size_t end = answer->body().find('\n', at);
    const json event = json::parse(answer->body().substr(at + 6, end - at - 6), nullptr, false);
    if (event.contains("error")) return event.dump();
    choices += event.value("choices", json()).dump() + "\n";
  }
  return choices;
}

std::vector<std::string> play(std::uint16_t port) {
  const std::vector<Asked> all = requests();
  std::vector<std::string> answers(all.size());
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < all.size(); ++i) {
    clients.emplace_back(
        [&, i] { answers[i] = said(ask(port, "POST", all[i].path, all[i].body.dump())); });
  }
  for (std::thread& client : clients) client.join();
  return answers;
}

double of_rank(const std::string& metrics, const std::string& name, int rank) {
  const std::string label = fmt::format("rank=\"{}\"", rank);
  for (std::size_t at = 0; (at = metrics.find("\n" + name + "{", at)) != std::string::npos; ++at) {
    const std::string line = metrics.substr(at + 1, metrics.find('\n', at + 1) - at - 1);
    if (line.find(label) != std::string::npos) {
      return std::strtod(line.c_str() + line.rfind(' '), nullptr);
    }
  }
  return -1;
}

std::string metrics_after(std::uint16_t port, std::chrono::milliseconds pause) {
  std::this_thread::sleep_for(pause);
  const auto answer = ask(port, "GET", "/metrics");
  return answer ? answer->body() : "";
}

/// Once the ranks have said what they did: they do so every second.
std::string metrics_of(std::uint16_t port) {
  return metrics_after(port, std::chrono::milliseconds(1500));
}

/// What ranks did is shown once they rest, and not when a second is over: by then a client that
/// looks behind its answer has looked.
void check_metrics(std::uint16_t port, Verdict& verdict) {
  const std::string soon = metrics_after(port, std::chrono::milliseconds(100));
  const std::string metrics = metrics_of(port);
  const auto steps = [](const std::string& text, int rank) {
    return of_rank(text, "gauntlet:rank_steps_total", rank);
  };
  verdict.claim(steps(metrics, 0) > 10 && steps(metrics, 0) == steps(metrics, 1),
                fmt::format("both ranks have computed {} steps", steps(metrics, 0)));
  verdict.claim(steps(soon, 0) == steps(metrics, 0) && steps(soon, 1) == steps(metrics, 1),
                fmt::format("and {} and {} soon after the last", steps(soon, 0), steps(soon, 1)));
  for (const int rank : {0, 1}) {
    verdict.claim(of_rank(metrics, "gauntlet:rank_sent_bytes_total", rank) > 1000 &&
                      of_rank(metrics, "gauntlet:rank_wait_seconds_total", rank) > 0 &&
                      of_rank(metrics, "gauntlet:rank_weight_bytes", rank) > 1e6,
                  fmt::format("rank {} tells what it sent, its waits and its weights", rank));
  }
}

/// A stream under way ends as it would have, and then the job.
void check_drain(RankServer& server, Verdict& verdict) {
  std::string answer;
  Socket socket(server.port());
  socket.send(http_request("POST", "/v1/completions",
                           R"({"prompt": "Once", "max_tokens": 200, "stream": true,
                               "ignore_eos": true})"));
  answer = socket.receive();
  kill(server.job().process(0), SIGTERM);
  for (std::string more; !(more = socket.receive()).empty();) answer += more;
  const Outcome outcome = server.job().wait();
  verdict.claim(answer.find("data: [DONE]") != std::string::npos && outcome.code == 0,
                fmt::format("rank 0 drains and the job ends with code {}", outcome.code));
  const std::string left = server.job().left_behind();
  verdict.claim(left.empty(), "nothing is left behind " + left);
}

int run(const std::string& gauntlet, const std::string& draft_model) {
  if (const std::string reason = no_mpi_reason(); !reason.empty()) {
    fmt::print("SKIPPED {}\n", reason);
    return kSkipped;
  }
  Verdict verdict;
  ServerProcess alone(gauntlet, {"--threads", "1"});
  const auto expected = play(alone.port());
  verdict.claim(expected[0].find("\"text\":\"") != std::string::npos &&
                    expected[kStreams - 1].find(R"("finish_reason":"stop")") != std::string::npos,
                "one rank answers");
  verdict.claim(alone.end().empty(), "and ends");
  const std::vector<std::string> ordered = {"--mesh", "tp2", "--rank-sums", "ordered"};
  {
    RankServer server(gauntlet, 2, ordered);
    verdict.claim(play(server.port()) == expected, "two ranks give eight streams the same bytes");
    check_metrics(server.port(), verdict);
    check_drain(server, verdict);
  }
  const std::vector<std::string> drafters[] = {{"ngram"}, {"draft", "--draft-model", draft_model}};
  for (const std::vector<std::string>& drafter : drafters) {
    auto guessing = ordered;
    guessing.insert(guessing.end(), {"--draft-lengths", "fixed", "--speculate"});
    guessing.insert(guessing.end(), drafter.begin(), drafter.end());
    RankServer server(gauntlet, 2, guessing);
    verdict.claim(play(server.port()) == expected, "by guesses of " + drafter[0] + ", too");
    const double accepted =
        metric(metrics_of(server.port()), "gauntlet:spec_decode_num_accepted_tokens_total");
    verdict.claim(accepted > 0, fmt::format("of which {} were right", accepted));
    check_drain(server, verdict);
  }
  ServerProcess threads(gauntlet, {"--threads", "1", "--mesh", "tp2,pp2", "--local-ranks", "4",
                                   "--rank-sums", "ordered"});
  verdict.claim(play(threads.port()) == expected, "as four threads of one process, too");
  const std::string fault = threads.end();
  verdict.claim(fault.empty(), "which drain " + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: serving_ranks GAUNTLET DRAFT_MODEL\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1], argv[2]);
}
