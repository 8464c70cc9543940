// What does a token cost outside of the engine: handing out, writing, sending, and the client's
// reading? Against a server that computes nothing and says the same bytes at the same times.
// serving_cost GAUNTLET STREAMS TOKENS ROUNDS
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/serving/http_client.h"
#include "tests/serving/replay.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostTimesNull = 1.3;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string request(std::size_t stream, int tokens) {
  return http_request(
      "POST", "/v1/completions",
      fmt::format(
          R"({{"prompt":[{},17,40,90],"max_tokens":{},"temperature":1,"seed":{},"ignore_eos":true,)"
          R"("stream":true,"stream_options":{{"include_usage":true}}}})",
          100 + stream, tokens, stream));
}

struct Wave {
  std::vector<Piece> pieces;
  bool is_whole = true;
  double client_cpu_s = 0;
};

/// All streams at once, read by one thread as they come.
Wave run_wave(std::uint16_t port, std::size_t num_streams, int tokens) {
  std::vector<std::unique_ptr<Socket>> sockets;
  std::vector<Answer> answers(num_streams);
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < num_streams; ++i) {
    sockets.push_back(std::make_unique<Socket>(port));
    epoll_event interest{.events = EPOLLIN, .data = {.u64 = i}};
    epoll_ctl(poll, EPOLL_CTL_ADD, sockets[i]->handle(), &interest);
  }
  Wave wave;
  const double cpu_begin_s = own_cpu_s();
  for (std::size_t i = 0; i < num_streams; ++i) sockets[i]->send(request(i, tokens));
  const Clock::time_point begin = Clock::now();
  constexpr int kSilence_ms = 60'000;
  std::vector<epoll_event> events(num_streams);
  for (std::size_t left = num_streams; left > 0;) {
    const int ready = epoll_wait(poll, events.data(), static_cast<int>(events.size()), kSilence_ms);
    if (ready <= 0) break;
    for (int e = 0; e < ready; ++e) {
      const std::size_t i = events[e].data.u64;
      std::string bytes = sockets[i]->receive();
      const bool goes_on = !bytes.empty() && answers[i].feed(bytes) && !answers[i].is_done();
      wave.pieces.push_back({.at_s = seconds_since(begin), .stream = i, .bytes = std::move(bytes)});
      if (goes_on) continue;
      epoll_ctl(poll, EPOLL_CTL_DEL, sockets[i]->handle(), nullptr);
      --left;
    }
  }
  wave.client_cpu_s = own_cpu_s() - cpu_begin_s;
  close(poll);
  for (const Answer& answer : answers) {
    const auto read = answer.is_done() ? read_stream(answer.body()) : std::nullopt;
    wave.is_whole &= read && read->completion_tokens == tokens;
  }
  return wave;
}

/// CPU time of the threads that do not compute; those are called "engine" and "engine worker".
double cpu_outside_s(pid_t server) {
  double sum_s = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", server))) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    double ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    if (!name.starts_with("engine")) sum_s += ns * 1e-9;
  }
  return sum_s;
}

struct Cost {
  double delivery_us = 0;
  double sending_us = 0;
  double client_us = 0;
  double outside_us() const { return delivery_us + sending_us + client_us; }
};

/// With the lowest and the highest, between which the true one lies for eight rounds in 99 of 100.
struct Median {
  explicit Median(std::vector<double> values) {
    std::ranges::sort(values);
    value = values[values.size() / 2];
    lowest = values.front();
    highest = values.back();
  }
  std::string text() const {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", value, lowest, highest);
  }

  double value = 0;
  double lowest = 0;
  double highest = 0;
};

double delivery_s(const ServerProcess& server) {
  const auto answer = ask(server.port(), "GET", "/metrics");
  return answer ? metric(answer->body(), "gauntlet:delivery_cpu_seconds_total") : 0;
}

int run(const std::string& gauntlet, std::size_t num_streams, int tokens, int rounds) {
  ServerProcess server(gauntlet, {"--max-sequences", std::to_string(num_streams)});
  Verdict verdict;
  run_wave(server.port(), num_streams, 16);
  const double count = static_cast<double>(num_streams) * tokens;
  std::vector<double> ratios, server_ratios;
  double num_writes = 0;
  for (int round = 0; round < rounds; ++round) {
    const double delivery_begin_s = delivery_s(server);
    const double outside_begin_s = cpu_outside_s(server.process());
    const Wave wave = run_wave(server.port(), num_streams, tokens);
    const double outside_s = cpu_outside_s(server.process()) - outside_begin_s;
    const Cost ours = {.delivery_us = (delivery_s(server) - delivery_begin_s) * 1e6 / count,
                       .sending_us = outside_s * 1e6 / count,
                       .client_us = wave.client_cpu_s * 1e6 / count};
    Replay replay(wave.pieces, num_streams);
    const Wave again = run_wave(replay.port(), num_streams, tokens);
    const double replay_s = replay.cpu_s();
    const Cost null = {.sending_us = replay_s * 1e6 / count,
                       .client_us = again.client_cpu_s * 1e6 / count};
    verdict.claim(wave.is_whole && again.is_whole && replay_s > 0,
                  fmt::format("round {}: every stream brought its tokens, twice, in {} writes",
                              round + 1, wave.pieces.size()));
    verdict.note(fmt::format(
        "us a token: handing out {:.2f}, sending {:.2f}, client {:.2f}; null "
        "server {:.2f}, its client {:.2f}",
        ours.delivery_us, ours.sending_us, ours.client_us, null.sending_us, null.client_us));
    num_writes += static_cast<double>(wave.pieces.size());
    ratios.push_back(ours.outside_us() / null.outside_us());
    server_ratios.push_back((ours.delivery_us + ours.sending_us) / null.sending_us);
  }
  verdict.note(
      fmt::format("without the clients: {} times the null server", Median(server_ratios).text()));
  const Median ratio(ratios);
  verdict.claim(ratio.value <= kMostTimesNull,
                fmt::format("a token costs {} times what it costs at a null server, at {:.1f} "
                            "tokens a write",
                            ratio.text(), static_cast<double>(rounds) * count / num_writes));
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: serving_cost GAUNTLET STREAMS TOKENS ROUNDS\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1], std::stoul(argv[2]), std::stoi(argv[3]), std::stoi(argv[4]));
}
