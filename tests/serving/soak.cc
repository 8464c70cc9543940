// A server at saturation, with well-behaved clients among those that are not: does it live, does
// every good request get its answer, and does nothing grow? serving_soak GAUNTLET SECONDS
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/serving/actors.h"
#include "tests/serving/server_process.h"
#include "tests/serving/verdict.h"

namespace gauntlet::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClients = 48;
constexpr Limits kLimits{};
/// Of a run's length: until then caches and free lists fill.
constexpr double kWarmUp = 0.4;
constexpr double kLongRun_s = 300;
constexpr double kMostGrowth = 0.02;
constexpr double kMostGrowthOfShortRun = 0.10;

/// What the clients saw, counted by act.
class Ledger {
 public:
  void add(const char* act, const std::string& fault) {
    const std::lock_guard lock(mutex_);
    ++counts_[act];
    if (fault.empty()) return;
    ++num_faults_;
    if (faults_.size() < 20) faults_.insert(std::string(act) + ": " + fault);
  }
  void report(Verdict& verdict) const {
    std::string list;
    std::int64_t total = 0;
    for (const auto& [act, count] : counts_) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, act);
      total += count;
    }
    verdict.note(list);
    for (const Act& act : all_acts()) {
      if (!counts_.contains(act.name)) verdict.note(fmt::format("never played: {}", act.name));
    }
    verdict.claim(num_faults_ == 0 && total > 0,
                  fmt::format("{} acts, {} not answered as they have to be", total, num_faults_));
    for (const std::string& fault : faults_) verdict.note(fault);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> counts_;
  std::int64_t num_faults_ = 0;
  std::set<std::string> faults_;
};

const Act& choose(Random& random) {
  const auto& acts = all_acts();
  const int total = std::accumulate(acts.begin(), acts.end(), 0,
                                    [](int sum, const Act& act) { return sum + act.weight; });
  auto point = static_cast<int>(random.next_below(static_cast<std::uint64_t>(total)));
  for (const Act& act : acts) {
    if ((point -= act.weight) < 0) return act;
  }
  return acts.back();
}

void play(std::uint16_t port, std::uint64_t seed, Clock::time_point end, Ledger& ledger) {
  Random random(seed);
  Scene scene{.port = port, .limits = kLimits, .random = random};
  // Every act is played early, so that what it makes the server keep belongs to the warm-up.
  const Act* next = &all_acts()[seed % all_acts().size()];
  while (Clock::now() < end) {
    const Act& act = *std::exchange(next, &choose(random));
    ledger.add(act.name, act.play(scene));
  }
}

/// Resident memory by the second, from the end of the warm-up on.
struct Memory {
  std::vector<double> samples;

  double growth() const {
    const std::size_t part = std::max<std::size_t>(1, samples.size() / 4);
    const auto mean = [&](auto begin) {
      return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(part), 0.0) /
             static_cast<double>(part);
    };
    return mean(samples.end() - static_cast<std::ptrdiff_t>(part)) / mean(samples.begin()) - 1;
  }
};

Memory watch(const ServerProcess& server, Clock::time_point begin, Clock::time_point end,
             Verdict& verdict) {
  Memory memory;
  double last_note_s = 0;
  while (Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const auto state = server.state();
    if (!state) continue;
    const double at_s = std::chrono::duration<double>(Clock::now() - begin).count();
    const double all_s = std::chrono::duration<double>(end - begin).count();
    if (at_s > kWarmUp * all_s) memory.samples.push_back(state->resident_bytes);
    if (at_s - last_note_s < all_s / 10) continue;
    last_note_s = at_s;
    verdict.note(
        fmt::format("{:4.0f} s: {:.0f} running, {:.0f} waiting, {:.0f}% of pages, {:.0f} "
                    "preempted, {:.2f} MB, {:.0f} files",
                    at_s, state->num_running, state->num_waiting, state->kv_usage * 100,
                    state->preemptions, state->resident_bytes / 1e6, state->open_files));
  }
  return memory;
}

int run(const std::string& gauntlet, double duration_s) {
  // Few sequences and pages, so that requests wait, are put back, and cached pages are evicted.
  ServerProcess server(
      gauntlet, {"--max-sequences", "16", "--max-queue", "1024", "--kv-tokens", "512",
                 "--max-body-bytes", std::to_string(kLimits.body_bytes), "--max-header-bytes",
                 std::to_string(kLimits.header_bytes), "--header-timeout", "10", "--body-timeout",
                 "10", "--idle-timeout", "10", "--drain-timeout", "60"});
  Verdict verdict;
  const ServerState before = server.wait_until_idle();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end =
      begin + std::chrono::milliseconds(static_cast<std::int64_t>(duration_s * 1e3));
  Ledger ledger;
  Memory memory;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back(
          [&, i] { play(server.port(), static_cast<std::uint64_t>(i), end, ledger); });
    }
    memory = watch(server, begin, end, verdict);
  }
  ledger.report(verdict);
  const ServerState after = server.wait_until_idle(before.open_files);
  verdict.claim(after.is_idle(),
                fmt::format("afterwards {} run, {} wait, pages in use: {:.0f}%", after.num_running,
                            after.num_waiting, after.kv_usage * 100));
  verdict.note(fmt::format("{} requests were put back and came through", after.preemptions));
  verdict.claim(
      after.open_files <= before.open_files,
      fmt::format("{} files open before, {} afterwards", before.open_files, after.open_files));
  if (kMemoryIsMeasured && !memory.samples.empty()) {
    const double most = duration_s >= kLongRun_s ? kMostGrowth : kMostGrowthOfShortRun;
    verdict.claim(
        memory.growth() <= most,
        fmt::format("resident memory grew by {:+.2f}% after the warm-up (at most {:.0f}%)",
                    memory.growth() * 100, most * 100));
  }
  const std::string fault = server.end();
  verdict.claim(fault.empty(), "the server drained with its books balanced" + fault);
  return verdict.exit_code();
}

}  // namespace
}  // namespace gauntlet::tests

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: serving_soak GAUNTLET SECONDS\n");
    return 2;
  }
  return gauntlet::tests::run(argv[1], std::atof(argv[2]));
}
