#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "lab/author/pair.h"
#include "tests/doubles/doubles/served_load/pair.h"
#include "tests/doubles/doubles/served_load/server.h"

namespace gauntlet::doubles::served_load {
namespace {

using nlohmann::json;

constexpr int kPromptIds = 200;  // plain ones of gauntlet-tiny's tokenizer

std::string request_for(const std::int32_t* prompt) {
  const json body = {{"model", "gauntlet-tiny"},
                     {"prompt", std::vector<std::int32_t>(prompt, prompt + kPromptTokens)},
                     {"max_tokens", 3},
                     {"temperature", 0}};
  return tests::http_request("POST", "/v1/completions", body.dump());
}

std::int32_t hash_of(const std::string& answer) {
  const std::string text = json::parse(answer).at("choices").at(0).at("text");
  return static_cast<std::int32_t>(std::hash<std::string>{}(text) & 0x7fffffff);
}

}  // namespace

void Server::start(std::int64_t clients) {
  if (!process_) {
    process_ =
        std::make_unique<tests::ServerProcess>(std::filesystem::read_symlink("/proc/self/exe"),
                                               std::vector<std::string>{"--threads", "1"});
  }
  while (std::ssize(clients_) < clients) {
    clients_.push_back(std::make_unique<tests::Socket>(process_->port()));
  }
}

void Server::answer(const Params& p, std::int32_t* answers, std::int64_t in_flight) {
  for (std::int64_t begin = 0; begin < p.requests; begin += in_flight) {
    const std::int64_t end = std::min(begin + in_flight, p.requests);
    for (std::int64_t i = begin; i < end; ++i) {
      const bool sent = clients_[static_cast<std::size_t>(i - begin)]->send(
          request_for(p.prompts + i * kPromptTokens));
      check(sent, "the server does not take a request");
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const auto got = clients_[static_cast<std::size_t>(i - begin)]->read_answer();
      check(got && got->status() == 200,
            "the server did not answer: " + (got ? got->body() : "the connection ended"));
      answers[i] = hash_of(got->body());
    }
  }
}

lab::Pair<Params> pair() {
  return {
      .title = "one request at a time → all of them in flight",
      .technique = "batching",
      .knobs = {{.name = "requests", .cpu = 8, .max = 64, .help = "requests of a run"}},
      .cpu =
          lab::BackendFacts{.claim = "A server that knows of several requests steps them together.",
                            .cost =
                                [](const lab::Knobs& knobs) {
                                  const auto bytes = 4 * static_cast<double>(knobs["requests"]);
                                  return lab::Cost{.read_bytes = bytes * kPromptTokens,
                                                   .write_bytes = bytes,
                                                   .level = lab::Cost::Level::cache};
                                },
                            .witness = lab::Witness::fact("in_flight", lab::Witness::Moves::rises,
                                                          4, "requests that wait at a time")},
      .metrics = {{.name = "requests_per_second",
                   .unit = "1/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& knobs) {
                         return static_cast<double>(knobs["requests"]);
                       }}},
      .bind =
          [server = std::make_shared<Server>()](lab::Binder& b) {
            const auto requests = b.knob("requests");
            return Params{.prompts = b.input<std::int32_t>("prompts", requests * kPromptTokens,
                                                           lab::Fill::integers(0, kPromptIds)),
                          .answers = b.output<std::int32_t>("answers", requests),
                          .requests = requests,
                          .server = server};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            p.server->answer(p, r.exact<std::int32_t>("answers").data(), 1);
          },
  };
}

}  // namespace gauntlet::doubles::served_load
