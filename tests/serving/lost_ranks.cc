// A rank that is killed, or hangs, at a moment of chance: the job is over in time and says which
// rank it was, open streams are told, and nothing is left behind.
// serving_lost_ranks GAUNTLET ROUNDS [SEED [cuda]]
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/random.h"
#include "tests/serving/http_client.h"
#include "tests/serving/rank_server.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;
constexpr double kLongest_s = 10;

/// On a GPU, where ranks take longer to start and a small model comes to its last position in a
/// second.
struct Gauntlet {
  std::string path;
  std::string backend = "cpu";

  bool on_gpu() const { return backend == "cuda"; }
  /// Computes for longer than any rank lives.
  std::vector<std::string> endless(const std::string& mesh) const {
    if (on_gpu()) {
      return {path,       "bench", "--backend", "cuda", "--mesh",        mesh, "--prefill", "256",
              "--decode", "2048",  "--batch",   "1,8",  "--repetitions", "40"};
    }
    return {path, "generate", "--backend", "cpu",          "--threads",    "1",     "--mesh",
            mesh, "--prompt", "It was",    "--ignore-eos", "--max-tokens", "100000"};
  }
};

struct Loss {
  int ranks = 2;
  int victim = 1;
  int signal = SIGKILL;
  double after_s = 0;  // the beginning of the work
  int streams = 4;     // of a server; none: it is idle

  std::string mesh() const { return fmt::format("tp{}", ranks); }
  std::string text() const {
    return fmt::format("rank {} of {} {} after {:.2f} s{}", victim, ranks,
                       signal == SIGKILL ? "killed" : "stopped", after_s,
                       streams == 0 ? ", idle" : "");
  }
};

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Waits for the end of the job.
void check_end(RankJob& job, const Loss& loss, Clock::time_point lost_at, const std::string& what,
               Verdict& verdict) {
  const Outcome outcome = job.wait();
  const double took_s = seconds_since(lost_at);
  const std::string name = fmt::format("rank {}", loss.victim);
  const bool is_named = outcome.err.find(name) != std::string::npos;
  const std::string left = job.left_behind();
  const bool holds = outcome.code != 0 && took_s < kLongest_s && is_named && left.empty();
  verdict.claim(
      holds,
      fmt::format("{}, {}: over after {:.2f} s with code {}, {}{}", what, loss.text(), took_s,
                  outcome.code, is_named ? "named" : "NOT named", left.empty() ? "" : ", " + left));
  if (!holds) verdict.note(outcome.err);
}

void lose_computing(const Gauntlet& program, const Loss& loss, Verdict& verdict) {
  RankJob job(loss.ranks, program.endless(loss.mesh()));
  pause(loss.after_s);
  const auto lost_at = Clock::now();
  kill(job.process(loss.victim), loss.signal);
  check_end(job, loss, lost_at, program.on_gpu() ? "bench" : "generate", verdict);
}

/// Reads until the server closes; counts streams that have begun.
std::string all_of(Socket& socket, std::atomic<int>& begun) {
  std::string answer;
  bool has_begun = false;
  for (std::string more; !(more = socket.receive()).empty();) {
    answer += more;
    if (!has_begun && answer.find("data: ") != std::string::npos) has_begun = ++begun > 0;
  }
  return answer;
}

void lose_serving(const Gauntlet& program, const Loss& loss, Verdict& verdict) {
  RankServer server(program.path, loss.ranks, {"--mesh", loss.mesh()}, program.backend);
  std::vector<std::string> answers(static_cast<std::size_t>(loss.streams));
  std::atomic<int> begun = 0;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    clients.emplace_back([&, i] {
      Socket socket(server.port());
      socket.send(http_request("POST", "/v1/completions",
                               R"({"prompt": "It was", "max_tokens": 3000, "stream": true,
                                   "ignore_eos": true})"));
      answers[i] = all_of(socket, begun);
    });
  }
  if (program.on_gpu()) {
    for (int i = 0; i < 1000 && begun < loss.streams; ++i) pause(0.01);
    verdict.claim(begun == loss.streams, fmt::format("{} streams have begun", begun.load()));
  }
  pause(loss.after_s);
  const auto lost_at = Clock::now();
  kill(server.job().process(loss.victim), loss.signal);
  for (std::thread& client : clients) client.join();
  // Whoever was served by the rank that is lost hears nothing more.
  const std::string sentence = fmt::format("rank {} ", loss.victim);
  for (const std::string& answer : answers) {
    if (loss.victim == 0 || answer.find("data: ") == std::string::npos) continue;
    const std::size_t error = answer.find("{\"error\":");
    const bool is_told =
        error != std::string::npos && answer.find(sentence, error) != std::string::npos;
    verdict.claim(
        is_told,
        "a stream is told " +
            (is_told ? sentence : answer.substr(answer.size() > 300 ? answer.size() - 300 : 0)));
  }
  check_end(server.job(), loss, lost_at, "serve", verdict);
}

/// A GPU's: one job for each round, and one of them serves.
int run_on_gpu(const Gauntlet& program, int rounds, Random random, Verdict& verdict) {
  const auto below = [&](int count) { return static_cast<int>(random.next() % count); };
  lose_serving(program, {.victim = 1, .after_s = below(200) / 1000.0}, verdict);
  for (int round = 1; round < rounds; ++round) {
    lose_computing(program, {.victim = below(2), .after_s = below(4000) / 1000.0}, verdict);
  }
  return verdict.exit_code();
}

int run(const Gauntlet& program, int rounds, std::uint64_t seed) {
  if (const std::string reason = no_mpi_reason(); !reason.empty()) {
    fmt::print("SKIPPED {}\n", reason);
    return kSkipped;
  }
  Verdict verdict;
  verdict.note(fmt::format("seed {}", seed));
  Random random(seed);
  if (program.on_gpu()) return run_on_gpu(program, rounds, random, verdict);
  const auto chance = [&](int below) { return static_cast<int>(random.next() % below); };
  for (int round = 0; round < rounds; ++round) {
    for (const int ranks : {2, 4}) {
      const auto loss = [&] {
        return Loss{.ranks = ranks, .victim = chance(ranks), .after_s = chance(1500) / 1000.0};
      };
      lose_computing(program, loss(), verdict);
      lose_serving(program, loss(), verdict);
    }
  }
  lose_serving(program, {.victim = 1, .signal = SIGSTOP, .after_s = 0.5}, verdict);
  lose_serving(program, {.victim = 1, .after_s = 0.5, .streams = 0}, verdict);
  if (rounds > 1) {
    lose_serving(program, {.victim = 1, .signal = SIGSTOP, .after_s = 0.5, .streams = 0}, verdict);
  }
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: serving_lost_ranks GAUNTLET ROUNDS [SEED [cuda]]\n");
    return 2;
  }
  const std::uint64_t seed =
      argc > 3 ? std::strtoull(argv[3], nullptr, 10) : std::random_device()();
  return gauntlet::tests::run({.path = argv[1], .backend = argc > 4 ? argv[4] : "cpu"},
                              std::atoi(argv[2]), seed);
}
