#include "lab/run/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "core/os/process.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

/// Through text, as the pipe carries it.
json piped(const json& message) { return json::parse(message.dump()); }

TEST(WorkerRequest, survives_the_way_to_the_worker) {
  const WorkerRequest sent{.task = WorkerRequest::Task::profile,
                           .target = "ch07:twice",
                           .backend = BackendKind::cuda,
                           .without = {"cudnn"},
                           .knobs = {{"rows", 64}, {"columns", std::int64_t{1} << 40}},
                           .options = {.budget_s = 1.5,
                                       .half_width = 0.01,
                                       .min_blocks = 9,
                                       .max_blocks = 90,
                                       .fixed_blocks = 5,
                                       .warmup_s = 0.25,
                                       .warmup_runs = 4,
                                       .cold = true,
                                       .least_checks = 7,
                                       .least_traps = 6,
                                       .seed = 0xFFFFFFFFFFFFFFFFu},
                           .profile = ProfileLevel::deep_dive,
                           .trace_path = "a/b.json",
                           .token = "0123abcd"};
  const WorkerRequest got = worker_request_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.task, sent.task);
  EXPECT_EQ(got.target, sent.target);
  EXPECT_EQ(got.backend, sent.backend);
  EXPECT_EQ(got.without, sent.without);
  EXPECT_EQ(got.knobs, sent.knobs);
  EXPECT_EQ(got.profile, sent.profile);
  EXPECT_EQ(got.trace_path, sent.trace_path);
  EXPECT_EQ(got.token, sent.token);
  const MeasureOptions &a = got.options, &b = sent.options;
  EXPECT_EQ(a.budget_s, b.budget_s);
  EXPECT_EQ(a.half_width, b.half_width);
  EXPECT_EQ(a.min_blocks, b.min_blocks);
  EXPECT_EQ(a.max_blocks, b.max_blocks);
  EXPECT_EQ(a.fixed_blocks, b.fixed_blocks);
  EXPECT_EQ(a.warmup_s, b.warmup_s);
  EXPECT_EQ(a.warmup_runs, b.warmup_runs);
  EXPECT_EQ(a.cold, b.cold);
  EXPECT_EQ(a.least_checks, b.least_checks);
  EXPECT_EQ(a.least_traps, b.least_traps);
  EXPECT_EQ(a.seed, b.seed);
}

Measurement full_measurement() {
  Measurement m;
  m.ok = false;
  m.reason = "optimized wrong result";
  m.side = "optimized";
  m.blocks = {{.ns = {{1, 2}, {3, 4.5}, {9, 10}}}, {.ns = {{5, 6}, {7, 8}, {11, 12}}}};
  m.sides = {{.repetitions = 10, .error = 1e-8, .facts = {{"launches", 3}}},
             {.repetitions = 20,
              .error = 1e-7,
              .facts = {{"launches", 1}, {"registers", 32}},
              .outcomes = {{"hit_rate", 0.5}},
              .distributions = {{"latency_s", {{0.25f, 0.5f}, {0.75f}}}}},
             {.repetitions = 64}};
  m.verification = {.max_error = 1e-7,
                    .bound = 1e-5,
                    .checks = 12,
                    .timed_checks = 9,
                    .recomputed_percent = 50,
                    .seen_percent = 99};
  m.set_bytes = std::int64_t{1} << 33;
  m.sets = 64;
  m.conditions = {.blocks = 2,
                  .dropped_blocks = 1,
                  .sm_clock_mhz_min = 1500,
                  .sm_clock_mhz_max = 1980,
                  .power_w_max = 500,
                  .temperature_c_max = 70,
                  .throttle_reasons = {"power cap"},
                  .cold = true};
  return m;
}

TEST(Measurement, survives_the_way_back) {
  const Measurement sent = full_measurement();
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.ok, sent.ok);
  EXPECT_EQ(got.reason, sent.reason);
  EXPECT_EQ(got.side, sent.side);
  ASSERT_EQ(got.blocks.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(got.blocks[i].ns, sent.blocks[i].ns);
  ASSERT_EQ(got.sides.size(), 3u);
  for (std::size_t side = 0; side < 3; ++side) {
    EXPECT_EQ(got.sides[side].repetitions, sent.sides[side].repetitions);
    EXPECT_EQ(got.sides[side].error, sent.sides[side].error);
    EXPECT_EQ(got.sides[side].facts, sent.sides[side].facts);
    EXPECT_EQ(got.sides[side].outcomes, sent.sides[side].outcomes);
    EXPECT_EQ(got.sides[side].distributions, sent.sides[side].distributions);
  }
  EXPECT_EQ(got.set_bytes, sent.set_bytes);
  EXPECT_EQ(got.sets, sent.sets);
  EXPECT_EQ(got.verification.max_error, sent.verification.max_error);
  EXPECT_EQ(got.verification.bound, sent.verification.bound);
  EXPECT_EQ(got.verification.checks, sent.verification.checks);
  EXPECT_EQ(got.verification.timed_checks, sent.verification.timed_checks);
  EXPECT_EQ(got.verification.recomputed_percent, sent.verification.recomputed_percent);
  EXPECT_EQ(got.verification.seen_percent, sent.verification.seen_percent);
  EXPECT_EQ(got.conditions.blocks, sent.conditions.blocks);
  EXPECT_EQ(got.conditions.dropped_blocks, sent.conditions.dropped_blocks);
  EXPECT_EQ(got.conditions.sm_clock_mhz_min, sent.conditions.sm_clock_mhz_min);
  EXPECT_EQ(got.conditions.sm_clock_mhz_max, sent.conditions.sm_clock_mhz_max);
  EXPECT_EQ(got.conditions.power_w_max, sent.conditions.power_w_max);
  EXPECT_EQ(got.conditions.temperature_c_max, sent.conditions.temperature_c_max);
  EXPECT_EQ(got.conditions.throttle_reasons, sent.conditions.throttle_reasons);
  EXPECT_EQ(got.conditions.cold, sent.conditions.cold);
}

TEST(Measurement, keeps_an_infinite_error_infinite) {
  Measurement sent = full_measurement();
  sent.verification.max_error = INFINITY;
  sent.sides[1].error = INFINITY;
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.verification.max_error, INFINITY);
  EXPECT_EQ(got.sides[1].error, INFINITY);
  EXPECT_EQ(got.sides[0].error, 1e-8);
}

TEST(Measurement, leaves_out_what_is_not_a_number) {
  Measurement sent = full_measurement();
  sent.sides[1].facts["waves"] = NAN;
  sent.sides[1].outcomes["overlap"] = INFINITY;
  sent.sides[1].distributions["latency_s"][0].push_back(NAN);
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.sides[1].facts, full_measurement().sides[1].facts);
  EXPECT_EQ(got.sides[1].outcomes, full_measurement().sides[1].outcomes);
  EXPECT_EQ(got.sides[1].distributions, full_measurement().sides[1].distributions);
}

TEST(ProfileOutcome, survives_the_way_back_without_what_is_not_a_number) {
  const ProfileOutcome sent{.sides = {{{{"sectors", 32}}, {{"at_a_time", 1.5}}},
                                      {{{"sectors", 4}, {"rate", NAN}}, {}},
                                      {}},
                            .why_not = "no permission",
                            .wrong = "optimized gave a wrong result",
                            .trace_error = "disk full"};
  const ProfileOutcome got = profile_outcome_from_json(piped(to_json(sent)));
  ASSERT_EQ(got.sides.size(), 3u);
  EXPECT_EQ(got.sides[0].counters, (std::map<std::string, double>{{"sectors", 32}}));
  EXPECT_EQ(got.sides[1].counters, (std::map<std::string, double>{{"sectors", 4}}));
  EXPECT_TRUE(got.sides[2].counters.empty());
  EXPECT_EQ(got.sides[0].trace, (std::map<std::string, double>{{"at_a_time", 1.5}}));
  EXPECT_TRUE(got.sides[1].trace.empty());
  EXPECT_EQ(got.why_not, sent.why_not);
  EXPECT_EQ(got.wrong, sent.wrong);
  EXPECT_EQ(got.trace_error, sent.trace_error);
}

/// What a worker says on the pipe, run in this process.
class WorkerMain : public testing::Test {
 protected:
  /// The messages, and the exit code as the last element.
  std::vector<json> messages(const WorkerRequest& request) {
    const FakeTree folder;
    const std::string path = (folder.root() / "messages").string();
    const int kept = dup(kMessageFd);
    const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(file, kMessageFd);
    if (file != kMessageFd) close(file);
    request_ = to_json(request).dump();
    const Catalog catalog({twice_target()}, {});
    const int code = worker_main(catalog, request_.data());
    if (kept >= 0) {
      dup2(kept, kMessageFd);
      close(kept);
    }
    std::vector<json> all;
    std::istringstream lines(*read_file(path));
    for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
    all.push_back(code);
    return all;
  }
  std::string request_;
};

TEST_F(WorkerMain, signs_every_message_and_wipes_the_token_from_its_request) {
  const auto all = messages({.target = "ch07:twice",
                             .options = {.fixed_blocks = 3, .warmup_s = 0},
                             .token = "0123456789abcdef"});
  EXPECT_EQ(all.back(), 0);
  ASSERT_GE(all.size(), 3u);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_EQ(all[i].at("token"), "0123456789abcdef");
  }
  EXPECT_EQ(all[0].at("type"), "progress");
  const json& last = all[all.size() - 2];
  ASSERT_EQ(last.at("type"), "measurement");
  const Measurement m = measurement_from_json(last);
  EXPECT_TRUE(m.ok) << m.reason;
  EXPECT_EQ(m.blocks.size(), 3u);
  EXPECT_EQ(request_.find_first_not_of(' '), std::string::npos);
}

TEST_F(WorkerMain, says_what_it_cannot_do) {
  const auto all = messages({.target = "ch07:thrice", .token = "ab"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].at("type"), "error");
  EXPECT_EQ(all[0].at("reason"), "worker knows no target ch07:thrice");
  EXPECT_EQ(all[0].at("token"), "ab");
  EXPECT_EQ(all[1], 1);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
