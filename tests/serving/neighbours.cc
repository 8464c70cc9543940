// A stream that always says the same, beside neighbours: does it stay the same to the bit, and as
// smooth beside one that attacks as beside as many that are honest?
// serving_neighbours GAUNTLET ROUNDS TOKENS SECONDS [PART OF AN ATTACK'S NAME]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/attacks.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostTimesHonest = 3;
/// A gap is at least the server's interval between two writes of a stream.
constexpr double kInterval_s = 0.008;
/// What whoever looks after a server waits for its health.
constexpr double kMostHealth_s = 0.25;
constexpr auto kSettling = std::chrono::milliseconds(300);

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Canary {
  int status = 0;
  bool is_whole = false;
  std::string events;  // but for the time at which it was made
  double p99_gap_s = 0;
  double tokens_per_s = 0;
};

/// The 99th percentile of the gaps between tokens, most of which are 0: they come together.
double p99(std::vector<double> gaps) {
  std::ranges::sort(gaps);
  return gaps.empty() ? 0 : gaps[(gaps.size() - 1) * 99 / 100];
}

Canary sing(std::uint16_t port, int num_tokens) {
  Canary canary;
  Socket socket(port);
  socket.send(http_request(
      "POST", "/v1/completions",
      fmt::format(R"({{"prompt":"It was the best of times","max_tokens":{},"stream":true,
"ignore_eos":true,"seed":7,"temperature":1,"stream_options":{{"include_usage":true}}}})",
                  num_tokens),
      "x-request-id: canary\r\nConnection: close\r\n"));
  Answer answer;
  std::vector<double> gaps_s;
  std::size_t seen = 0;
  Clock::time_point first, last;
  while (!answer.is_done()) {
    const std::string bytes = socket.receive();
    const auto now = Clock::now();
    if (bytes.empty() || !answer.feed(bytes)) break;
    std::size_t num_new = 0;
    for (std::size_t at = answer.body().find("\n\n", seen); at != std::string::npos;
         at = answer.body().find("\n\n", seen)) {
      seen = at + 2;
      ++num_new;
    }
    if (num_new == 0) continue;
    if (first == Clock::time_point()) {
      first = now;
    } else {
      gaps_s.push_back(seconds_between(last, now));
    }
    gaps_s.insert(gaps_s.end(), num_new - 1, 0.0);
    last = now;
  }
  static const std::regex kCreated("\"created\":[0-9]+");
  canary.status = answer.status();
  canary.is_whole = answer.is_done() && read_stream(answer.body()).has_value();
  canary.events = std::regex_replace(answer.body(), kCreated, "\"created\":0");
  canary.p99_gap_s = p99(gaps_s);
  canary.tokens_per_s = num_tokens / seconds_between(first, last);
  return canary;
}

/// Asks for the server's health all the time, and remembers how long that took.
class Nurse {
 public:
  explicit Nurse(std::uint16_t port)
      : thread_([this, port] {
          while (!is_over_) {
            const auto begin = Clock::now();
            const auto answer = ask(port, "GET", "/health");
            if (!answer || answer->status() != 200) ++num_faults;
            times_s.push_back(seconds_between(begin, Clock::now()));
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  ~Nurse() { end(); }
  void end() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::vector<double> times_s;
  int num_faults = 0;

 private:
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// What was seen over the rounds of one attack, and beside honest streams meanwhile.
struct Seen {
  std::vector<double> p99_s, rates, health_s;
  std::int64_t num_answers = 0;
};

class Trial {
 public:
  Trial(const ServerProcess& server, Verdict& verdict, int num_tokens)
      : server_(server), verdict_(verdict), num_tokens_(num_tokens) {
    song_ = sing(server.port(), num_tokens);
    verdict.claim(song_.status == 200 && song_.is_whole,
                  fmt::format("alone: {:.0f} tokens/s, p99 of gaps {:.1f} ms", song_.tokens_per_s,
                              song_.p99_gap_s * 1e3));
  }

  /// So many rounds, or as many as begin within a time: at least one.
  void run(const Attack& attack, int most_rounds, double most_s) {
    Seen honest, attacked;
    int num_same = 0, num_rounds = 0;
    const auto begin = Clock::now();
    while (num_rounds == 0 ||
           (num_rounds < most_rounds && seconds_between(begin, Clock::now()) < most_s)) {
      ++num_rounds;
      num_same += beside(attack.num_streams, play_honest_stream, honest);
      num_same += beside(attack.num_clients, attack.play, attacked);
    }
    verdict_.note(fmt::format("{}: {} clients, against {} honest streams", attack.name,
                              attack.num_clients, attack.num_streams));
    verdict_.claim(num_same == 2 * num_rounds,
                   fmt::format("  {} of {} times the same to the bit", num_same, 2 * num_rounds));
    const double honest_s = std::max(kInterval_s, median(honest.p99_s));
    const double attacked_s = median(attacked.p99_s);
    verdict_.claim(attacked_s <= kMostTimesHonest * honest_s,
                   fmt::format("  p99 of gaps {:.1f} ms, {:.2f} times the {:.1f} ms beside honest "
                               "streams",
                               attacked_s * 1e3, attacked_s / honest_s, honest_s * 1e3));
    const double health_s = median(attacked.health_s);
    verdict_.claim(
        health_s < kMostHealth_s,
        fmt::format("  health in {:.1f} ms, at most {:.1f}", health_s * 1e3,
                    attacked.health_s.empty() ? 0 : std::ranges::max(attacked.health_s) * 1e3));
    std::string rounds;
    for (std::size_t i = 0; i < honest.p99_s.size(); ++i) {
      rounds += fmt::format("{}{:.1f}/{:.1f}", i == 0 ? "" : ", ", attacked.p99_s[i] * 1e3,
                            honest.p99_s[i] * 1e3);
    }
    verdict_.note(
        fmt::format("  {:.0f} tokens/s, honest {:.0f}; by round, ms: {}; {} answers to "
                    "the attack",
                    median(attacked.rates), median(honest.rates), rounds, attacked.num_answers));
  }

 private:
  /// Whether the song was the same.
  bool beside(int count, void (*play)(Stage& stage), Seen& seen) {
    Company company(server_.port(), seed_ += 1'000'000, count, play);
    std::this_thread::sleep_for(kSettling);
    Nurse nurse(server_.port());
    const Canary canary = sing(server_.port(), num_tokens_);
    nurse.end();
    company.end();
    seen.num_answers += company.stage().num_answers;
    seen.p99_s.push_back(canary.p99_gap_s);
    seen.rates.push_back(canary.tokens_per_s);
    seen.health_s.insert(seen.health_s.end(), nurse.times_s.begin(), nurse.times_s.end());
    const bool is_same = canary.status == 200 && canary.is_whole && canary.events == song_.events;
    if (!is_same) {
      verdict_.note(fmt::format(
          "  not the same: status {}, {}", canary.status,
          canary.events.substr(canary.events.size() > 300 ? canary.events.size() - 300 : 0)));
    }
    if (nurse.num_faults > 0) {
      verdict_.claim(false, fmt::format("  health failed {} times", nurse.num_faults));
    }
    server_.wait_until_idle();
    return is_same;
  }

  const ServerProcess& server_;
  Verdict& verdict_;
  const int num_tokens_;
  Canary song_;
  std::uint64_t seed_ = 0;
};

struct Plan {
  int rounds = 0;      // of each attack
  int tokens = 0;      // of the canary
  double seconds = 0;  // for all of it, about
};

int run(const std::string& gauntlet, const Plan& plan, const std::string& wanted) {
  // Room for all that run, so that nobody is put back for want of pages.
  ServerProcess server(gauntlet, {"--kv-tokens", "131072"});
  Verdict verdict;
  // The bound on whole answers is part of the defence: the attack keeps within it.
  const auto refused = ask(server.port(), "POST", "/v1/completions",
                           R"({"prompt":"a","n":128,"max_tokens":1500,"logprobs":20})");
  verdict.claim(refused && refused->status() == 400, "a whole answer of 4,032,000 values gets 400");
  Trial trial(server, verdict, plan.tokens);
  const double most_s = plan.seconds / static_cast<double>(all_attacks().size());
  for (const Attack& attack : all_attacks()) {
    if (std::string(attack.name).find(wanted) != std::string::npos) {
      trial.run(attack, plan.rounds, most_s);
    }
  }
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr,
               "usage: serving_neighbours GAUNTLET ROUNDS TOKENS SECONDS [PART OF A NAME]\n");
    return 2;
  }
  const gauntlet::tests::Plan plan{
      .rounds = std::atoi(argv[2]), .tokens = std::atoi(argv[3]), .seconds = std::atof(argv[4])};
  return gauntlet::tests::run(argv[1], plan, argc > 5 ? argv[5] : "");
}
