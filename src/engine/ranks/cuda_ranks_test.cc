// Do ranks of one GPU, threads or processes, choose what one executor chooses?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <utility>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "core/os/process.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "core/ranks/thread_group.h"
#include "core/text/text.h"
#include "engine/golden.h"
#include "engine/ranks/rank_executor.h"
#include "engine/steps/cuda_executor.h"
#include "engine/steps/routing_tape.h"

namespace gauntlet::engine {
namespace {

using testing::HasSubstr;

/// Before CUDA starts: a kernel that is loaded when it is first launched would wait for the streams
/// of other ranks in this process, which wait for this one.
const int kLoadsEarly = setenv("CUDA_MODULE_LOADING", "EAGER", 0);

/// A mesh, a shape, and how many of its layers, where not all: "tp2 gpt-oss-20b 4".
constexpr const char* kMeshVariable = "GAUNTLET_TEST_GPU_MESH";
/// Two orders of sums may choose apart below it.
constexpr float kMargin = 0.1f;
/// Of gauntlet-tiny's logits, where experts are chosen alike; as of RankSumOnGpu.
constexpr float kTolerance = 0.15f;

CudaExecutorConfig gpu(const EngineOptions& options = {}) {
  return {.options = options,
          .max_sequences = 4,
          .max_tokens = 4096,
          .max_batch_tokens = 512,
          .gpu_memory = 0.4};
}

/// Each sequence's choices: after its prompt, and after each token that followed.
struct Choices {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<float>> margins;
  std::vector<std::vector<std::vector<float>>> logits;
};

float margin_of(const std::vector<float>& logits) {
  float first = -INFINITY, second = -INFINITY;
  for (const float value : logits) {
    if (value > first) {
      second = std::exchange(first, value);
    } else if (value > second) {
      second = value;
    }
  }
  return first - second;
}

/// Prompts in chunks, then steps of all sequences together. They are given what `forced` chose, or
/// their own choices.
Choices choices_of(Executor& executor, const std::vector<std::int64_t>& prompts, int steps,
                   const Choices* forced = nullptr) {
  Choices all;
  std::vector<SequenceId> sequences;
  const auto keep = [&](std::size_t s, const ItemResult& result) {
    all.tokens[s].push_back(result.token);
    all.margins[s].push_back(margin_of(result.logits));
    all.logits[s].push_back(result.logits);
  };
  for (std::size_t s = 0; s < prompts.size(); ++s) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < prompts[s]; ++i) {
      ids.push_back(static_cast<std::int32_t>((i * 37 + static_cast<std::int64_t>(s) * 91) % 4000));
    }
    sequences.push_back(executor.kv().create());
    all.tokens.emplace_back(), all.margins.emplace_back(), all.logits.emplace_back();
    keep(s, prefill(executor, sequences[s], ids, 200));
  }
  for (int i = 0; i < steps; ++i) {
    std::vector<BatchItem> items;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      check(executor.kv().reserve(sequences[s], 1), "pages");
      const auto& chosen = (forced != nullptr ? forced->tokens : all.tokens)[s];
      items.push_back({.sequence = sequences[s],
                       .tokens = {chosen[static_cast<std::size_t>(i)]},
                       .want = Want::logits});
    }
    const auto results = executor.collect(executor.submit(std::move(items)));
    for (std::size_t s = 0; s < results.size(); ++s) keep(s, results[s]);
  }
  for (const SequenceId sequence : sequences) executor.kv().free(sequence);
  return all;
}

struct Comparison {
  int clear = 0, equal = 0, rows = 0;
  float worst = 0;  // of all logits
};

/// Counts where the choice is clear, and how often it is the same there.
Comparison compare(const Choices& alone, const Choices& ranks, const std::string& what) {
  Comparison seen;
  for (std::size_t s = 0; s < alone.tokens.size(); ++s) {
    EXPECT_EQ(ranks.tokens[s].size(), alone.tokens[s].size());
    for (std::size_t i = 0; i < ranks.tokens[s].size(); ++i) {
      ++seen.rows;
      for (std::size_t k = 0; k < alone.logits[s][i].size(); ++k) {
        const float apart = std::abs(alone.logits[s][i][k] - ranks.logits[s][i][k]);
        // NaN counts as far apart.
        if (!(apart <= seen.worst)) seen.worst = apart;
      }
      if (alone.margins[s][i] < kMargin) continue;
      ++seen.clear;
      seen.equal += ranks.tokens[s][i] == alone.tokens[s][i] ? 1 : 0;
    }
  }
  std::printf("%s: %d of %d choices are clear, %d of those equal; logits at most %.4f apart\n",
              what.c_str(), seen.clear, seen.rows, seen.equal, static_cast<double>(seen.worst));
  EXPECT_FALSE(std::isnan(seen.worst));
  return seen;
}

/// Where the choice is clear, all choose the same.
Comparison expect_same(const Choices& alone, const Choices& ranks, const std::string& what) {
  const Comparison seen = compare(alone, ranks, what);
  EXPECT_EQ(seen.equal, seen.clear) << what;
  return seen;
}

/// Greedy text, each step submitted before the one in front of it has brought its tokens.
std::vector<std::int32_t> text_of(Executor& executor, int steps, int in_flight) {
  const SequenceId sequence = executor.kv().create();
  std::vector<std::int32_t> text = {
      prefill(executor, sequence, {5, 900, 33, 1200, 7, 7, 21}, 64).token};
  std::deque<Ticket> tickets;
  for (int i = 0; i < steps; ++i) {
    check(executor.kv().reserve(sequence, 1), "pages");
    const std::int32_t id = tickets.empty() ? text.back() : late_token(0);
    std::vector<BatchItem> items;
    items.push_back({.sequence = sequence, .tokens = {id}});
    tickets.push_back(executor.submit(std::move(items)));
    while (std::ssize(tickets) >= in_flight || (i + 1 == steps && !tickets.empty())) {
      text.push_back(executor.collect(tickets.front())[0].token);
      tickets.pop_front();
    }
  }
  executor.kv().free(sequence);
  return text;
}

Expected<void> as_rank(ranks::Group& group, const model::ModelWeights& weights,
                       const RankConfig& config, const std::function<void(Executor&)>& body) {
  if (group.rank() > 0) return follow_ranks(group, weights, config);
  const auto executor = lead_ranks(group, weights, config);
  if (!executor) return executor.error();
  body(**executor);
  return {};
}

/// How ranks compute: with the experts of a tape, or of their own choice.
struct How {
  EngineOptions options = {};
  RankMeeting meeting = RankMeeting::on_streams;
  const RoutingTape* tape = nullptr;
};

/// Ranks as threads that share one context.
Expected<void> on_threads(const model::ModelWeights& weights, const char* mesh, const How& how,
                          const std::function<void(Executor&)>& body) {
  const RankConfig config{.mesh = *Mesh::parse(mesh),
                          .cpu = {},
                          .cuda = gpu(how.options),
                          .timeout_s = 20,
                          .meeting = how.meeting};
  return ranks::run_threads(config.mesh.ranks(), [&](ranks::Group& group) {
    RankConfig own = config;
    RoutingTape tape = how.tape != nullptr ? *how.tape : RoutingTape();
    if (how.tape != nullptr) own.probe = tape.replayed();
    return as_rank(group, weights, own, body);
  });
}

model::ModelWeights tiny() {
  auto weights = golden_model("gauntlet-tiny");
  check(kLoadsEarly == 0, "kernels are loaded early");
  return weights;
}

const std::vector<std::int64_t> kPrompts = {9, 250, 61};

class RankThreadsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// With the experts of one executor's choice the logits are close; without, ranks choose the same
  /// where that is clear.
  void expect_choices(const char* mesh, const EngineOptions& options = {}, int steps = 32) {
    const auto weights = tiny();
    RoutingTape tape;
    Choices forced, alone;
    {
      const auto executor = make_cuda_executor(weights, gpu(options));
      ASSERT_TRUE(executor) << executor.error().message;
      alone = choices_of(**executor, kPrompts, steps);
      tape.record(**executor);
      forced = choices_of(**executor, kPrompts, steps, &alone);
    }
    for (const bool is_forced : {true, false}) {
      const Choices& wanted = is_forced ? forced : alone;
      Choices together;
      const auto done = on_threads(
          tiny(), mesh, {.options = options, .tape = is_forced ? &tape : nullptr},
          [&](Executor& executor) { together = choices_of(executor, kPrompts, steps, &alone); });
      ASSERT_TRUE(done) << done.error().message;
      const std::string what = std::string(mesh) + (is_forced ? ", experts of a tape" : "");
      const Comparison seen = expect_same(wanted, together, what);
      EXPECT_GE(seen.clear, 3);
      if (is_forced) {
        EXPECT_LE(seen.worst, kTolerance) << what;
      }
    }
  }
};

TEST_F(RankThreadsOnGpu, of_tp2_choose_what_one_chooses) { expect_choices("tp2"); }
TEST_F(RankThreadsOnGpu, of_ep2_choose_what_one_chooses) { expect_choices("ep2"); }
TEST_F(RankThreadsOnGpu, of_tp2_and_ep2_choose_what_one_chooses) { expect_choices("tp2,ep2"); }
TEST_F(RankThreadsOnGpu, of_tp2_and_ep4_choose_what_one_chooses) {
  expect_choices("tp2,ep4", {}, 8);
}
TEST_F(RankThreadsOnGpu, of_tp4_and_ep2_choose_what_one_chooses) {
  expect_choices("tp4,ep2", {}, 8);
}
TEST_F(RankThreadsOnGpu, choose_it_op_by_op) {
  expect_choices("tp2", {.fusion = Fusion::op_by_op}, 8);
  expect_choices("ep2", {.fusion = Fusion::op_by_op}, 8);
}
TEST_F(RankThreadsOnGpu, choose_it_without_graphs) {
  expect_choices("tp2", {.cuda = {.graphs = Graphs::off}}, 8);
}
TEST_F(RankThreadsOnGpu, choose_it_with_rows_as_files_have_them) {
  expect_choices("ep2", {.cuda = {.weight_layout = WeightLayout::rows}}, 4);
}

/// Short, for sanitizers, under which no stream may wait for another.
void expect_few_steps(const char* mesh) {
  const std::vector<std::int64_t> prompts = {20};
  Choices alone, together;
  {
    const auto executor = make_cuda_executor(tiny(), gpu({.cuda = {.graphs = Graphs::off}}));
    ASSERT_TRUE(executor) << executor.error().message;
    alone = choices_of(**executor, prompts, 2);
  }
  const auto done =
      on_threads(tiny(), mesh, {.meeting = RankMeeting::on_hosts},
                 [&](Executor& executor) { together = choices_of(executor, prompts, 2, &alone); });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(expect_same(alone, together, mesh).rows, 3);
}
TEST_F(RankThreadsOnGpu, choose_it_in_few_steps_of_tp2_where_hosts_meet) {
  expect_few_steps("tp2");
}
TEST_F(RankThreadsOnGpu, choose_it_in_few_steps_of_ep2_where_hosts_meet) {
  expect_few_steps("ep2");
}

TEST_F(RankThreadsOnGpu, go_on_from_tokens_that_the_host_has_not_seen) {
  for (const char* mesh : {"tp2", "ep2"}) {
    std::vector<std::int32_t> in_turn, ahead;
    const auto done = on_threads(tiny(), mesh, {}, [&](Executor& executor) {
      EXPECT_EQ(executor.most_in_flight(), 2);
      in_turn = text_of(executor, 24, 1);
      ahead = text_of(executor, 24, 2);
    });
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(in_turn.size(), 25u);
    EXPECT_EQ(ahead, in_turn);
  }
}

TEST_F(RankThreadsOnGpu, hold_their_part_of_the_weights) {
  const auto weights = tiny();
  const auto executor = make_cuda_executor(weights, gpu());
  ASSERT_TRUE(executor) << executor.error().message;
  const std::int64_t whole = (*executor)->weight_bytes();
  for (const char* mesh : {"tp2", "ep2"}) {
    std::int64_t part = 0;
    const auto done =
        on_threads(tiny(), mesh, {}, [&](Executor& leader) { part = leader.weight_bytes(); });
    ASSERT_TRUE(done) << done.error().message;
    std::printf("%s: %lld of %lld bytes of weights\n", mesh, static_cast<long long>(part),
                static_cast<long long>(whole));
    EXPECT_LT(part, whole * 3 / 4) << "embedding, routers and rope are whole";
  }
}

TEST_F(RankThreadsOnGpu, refuse_what_gpus_do_not_do) {
  const auto refusal = [&](const char* mesh) {
    const auto done = on_threads(tiny(), mesh, {}, [](Executor&) {});
    return done ? std::string() : done.error().message;
  };
  EXPECT_THAT(refusal("pp2"), HasSubstr("stages (pp) run on CPUs"));
  EXPECT_THAT(refusal("tp4"), HasSubstr("multiples of 64"));
}

/// What the tests below start as each rank: each first computes alone, too, for the tape.
class RankOfJob {
 public:
  RankOfJob(ranks::Group& group, const std::string& mesh, const std::string& shape,
            std::int64_t layers)
      : group_(group),
        mesh_(mesh),
        what_(mesh + " of " + shape),
        weights_(shape == "gauntlet-tiny"
                     ? tiny()
                     : model::random_model(model::random_shape(shape, layers).value(), 1)) {}

  void compare_with_one() {
    say("started");
    compute_alone();
    if (testing::Test::HasFatalFailure()) return;
    const auto same = ranks::agree(group_, alone_.tokens[0][5]);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(*same, alone_.tokens[0][5]) << "ranks compute the same alone";
    say("alone");
    // With the experts of one executor's choice, sums differ by their order only.
    Choices forced;
    together(EngineOptions{}, tape_.replayed(), [&](Executor& executor) {
      forced = choices_of(executor, kLong, kSteps, &alone_);
      EXPECT_GE(expect_same(forced_, forced, what_ + ", experts of a tape").clear, 10);
    });
    say("with experts of a tape");
    // Of their own choice, near ties of experts fall as they do in any other order of sums.
    Choices captured;
    together(EngineOptions{}, nullptr, [&](Executor& executor) {
      captured = choices_of(executor, kLong, kSteps, &alone_);
      compare(alone_, captured, what_ + ", experts of their own choice");
      const auto start = std::chrono::steady_clock::now();
      const auto ahead = text_of(executor, 64, 2);
      std::printf("%.3f ms a step of one sequence\n", std::chrono::duration<double, std::milli>(
                                                          std::chrono::steady_clock::now() - start)
                                                              .count() /
                                                          64);
      EXPECT_EQ(ahead, text_of(executor, 64, 1));
    });
    say("with experts of its choice");
    if (group_.rank() == 0) {
      compare(alone_, other_, "one executor in another order of sums");
    }
    for (const RankMeeting meeting : {RankMeeting::on_streams, RankMeeting::on_hosts}) {
      together(
          {.cuda = {.graphs = Graphs::off}}, nullptr,
          [&](Executor& executor) {
            EXPECT_TRUE(choices_of(executor, kLong, kSteps, &alone_).logits == captured.logits)
                << "captured steps have other bits";
          },
          meeting);
    }
    say("done");
  }

 private:
  static constexpr int kSteps = 32;
  const std::vector<std::int64_t> kLong = {9, 700, 130};

  void compute_alone() {
    {
      const auto executor = make_cuda_executor(weights_, gpu());
      ASSERT_TRUE(executor) << executor.error().message;
      alone_ = choices_of(**executor, kLong, kSteps);
      tape_.record(**executor);
      forced_ = choices_of(**executor, kLong, kSteps, &alone_);
    }
    if (group_.rank() > 0) return;
    const auto executor = make_cuda_executor(weights_, gpu({.fusion = Fusion::op_by_op}));
    ASSERT_TRUE(executor) << executor.error().message;
    other_ = choices_of(**executor, kLong, kSteps, &alone_);
  }

  void together(const EngineOptions& options, LayerProbe* probe,
                const std::function<void(Executor&)>& body,
                RankMeeting meeting = RankMeeting::on_streams) {
    const RankConfig config{.mesh = *Mesh::parse(mesh_),
                            .cpu = {},
                            .cuda = gpu(options),
                            .timeout_s = 10,
                            .meeting = meeting,
                            .probe = probe};
    const auto done = as_rank(group_, weights_, config, body);
    ASSERT_TRUE(done) << done.error().message;
  }

  void say(const char* what) const {
    if (group_.rank() != 0) return;
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
    std::printf("%s after %.1f s\n", what, since.count());
    std::fflush(stdout);
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  ranks::Group& group_;
  const std::string mesh_, what_;
  const model::ModelWeights weights_;
  RoutingTape tape_;
  Choices alone_, forced_, other_;
};

TEST(MpiRank, chooses_on_a_gpu) {
  const char* text = std::getenv(kMeshVariable);
  if (text == nullptr) GTEST_SKIP() << "not a test of its own: RankProcessesOnGpu starts it";
  auto group = ranks::join({.timeout_s = 100});
  ASSERT_TRUE(group) << group.error().message;
  const auto words = split_words(text);
  ASSERT_GE(words.size(), 2u) << text;
  const std::int64_t layers = words.size() > 2 ? std::atoll(words[2].c_str()) : 0;
  RankOfJob(**group, words[0], words[1], layers).compare_with_one();
}

class RankProcessesOnGpu : public RankThreadsOnGpu {
 protected:
  void run(const std::string& mesh_and_shape, int ranks, double limit_s) {
    if (IsSkipped()) return;
    if (const auto library = ranks::find_mpi_library(); !library) {
      GTEST_SKIP() << library.error().message;
    }
    const auto command = ranks::mpirun_command(
        ranks, {std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_brief=1",
                "--gtest_filter=MpiRank.chooses_on_a_gpu"});
    if (!command) GTEST_SKIP() << command.error().message;
    setenv(kMeshVariable, mesh_and_shape.c_str(), 1);
    const FakeTree folder;
    const std::string log = (folder.root() / "job.log").string();
    const auto outcome =
        run_child({.argv = *command, .log_path = log, .timeout_s = limit_s, .grace_s = 5});
    unsetenv(kMeshVariable);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->end, ChildOutcome::End::exited);
    EXPECT_EQ(outcome->code, 0);
    std::printf("%s", read_file(log).value().c_str());
  }
};

TEST_F(RankProcessesOnGpu, of_tp2_choose_what_one_chooses) { run("tp2 gauntlet-tiny", 2, 60); }
TEST_F(RankProcessesOnGpu, of_ep2_choose_what_one_chooses) { run("ep2 gauntlet-tiny", 2, 60); }
/// Four layers have every width; all of them are compared by tools/gpu_ranks.sh, which has the
/// time.
TEST_F(RankProcessesOnGpu, of_tp2_choose_what_one_chooses_at_the_width_of_20b) {
  run("tp2 gpt-oss-20b 4", 2, 60);
}
TEST_F(RankProcessesOnGpu, of_ep2_choose_what_one_chooses_at_the_width_of_20b) {
  run("ep2 gpt-oss-20b 4", 2, 60);
}

}  // namespace
}  // namespace gauntlet::engine
