// Do ranks of one GPU, threads or processes, add and gather the same bits, eagerly and by graphs,
// and does one that waits for nobody come to an end?
#include "engine/cuda/ranks/peer_sum.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/cuda/graph.h"
#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "core/os/process.h"
#include "core/random.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "core/ranks/thread_group.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::OnDevice;

constexpr const char* kPartVariable = "GAUNTLET_TEST_GPU_RANK_PART";

/// Before CUDA starts: a kernel that is loaded when it is first launched would wait for the streams
/// of other ranks, which wait for this one.
const int kLoadsEarly = setenv("CUDA_MODULE_LOADING", "EAGER", 0);

struct Case {
  std::int64_t layers = 4;
  std::int64_t rows = 3;
  std::int64_t hidden = 64;
  std::int64_t vocab = 300;  // the last rank's part is a broken one
  std::int64_t logit_rows = 2;
  double timeout_s = 20;
};

RankGroups groups_of(const Case& of, int rank, int size, bool shares_attention) {
  RankGroups groups{.rank = rank,
                    .layers = of.layers,
                    .tokens = of.rows,
                    .hidden = of.hidden,
                    .logit_rows = of.logit_rows,
                    .timeout_s = of.timeout_s};
  for (int r = 0; r < size; ++r) {
    const std::int64_t units = (of.vocab + 63) / 64;
    groups.vocab.push_back({std::min(of.vocab, units * r / size * 64),
                            std::min(of.vocab, units * (r + 1) / size * 64)});
    groups.experts.push_back(r);
    if (shares_attention || r == rank) groups.attention.push_back(r);
  }
  return groups;
}

/// What rank `rank` adds in a sum of a step.
float part(int rank, std::int64_t round, std::int64_t sum, std::int64_t index) {
  return Random(static_cast<std::uint64_t>(rank * 1000003 + round * 1009 + sum))
      .uniform(-1, 1, static_cast<std::uint64_t>(index));
}

/// A step of sums and columns, whose parts the host writes before it. Each sum has memory of its
/// own, so that one of an earlier round would be seen.
class Step {
 public:
  Step(const Case& of, RankSum& sum, const RankGroups& groups)
      : case_(of),
        sum_(sum),
        groups_(groups),
        parts_(static_cast<std::size_t>(2 * of.layers * of.rows * of.hidden)),
        logits_(static_cast<std::size_t>(kGathers * of.logit_rows * of.vocab)) {}

  void fill(std::int64_t round) {
    std::vector<float> parts(parts_.bytes() / 4);
    const std::int64_t count = case_.rows * case_.hidden;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      parts[i] = part(groups_.rank, round, at / count, at % count);
    }
    parts_.write(parts);
    std::vector<float> logits(logits_.bytes() / 4);
    const model::Range own = groups_.vocab[static_cast<std::size_t>(groups_.rank)];
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const std::int64_t column = static_cast<std::int64_t>(i) % case_.vocab;
      const bool is_own = column >= own.begin && column < own.end;
      logits[i] = is_own ? part(9, round, 77, static_cast<std::int64_t>(i)) : -77.0f;
    }
    logits_.write(logits);
  }

  void enqueue(cudaStream_t stream) {
    const std::int64_t count = case_.rows * case_.hidden;
    for (std::int64_t s = 0; s < 2 * case_.layers; ++s) {
      sum_.add_up({.values = parts_.get() + s * count,
                   .rows = case_.rows,
                   .width = case_.hidden,
                   .of = s % 2 == 0 ? SumOf::attention : SumOf::experts},
                  stream);
    }
    for (std::int64_t g = 0; g < kGathers; ++g) {
      sum_.gather({.values = logits_.get() + g * case_.logit_rows * case_.vocab,
                   .rows = case_.logit_rows,
                   .stride = case_.vocab},
                  stream);
    }
  }

  /// Numbers that are not what they must be, and the first of them.
  std::string faults(std::int64_t round) const {
    const std::int64_t count = case_.rows * case_.hidden;
    std::int64_t wrong = 0;
    std::string first;
    const auto compare = [&](float got, float expected, const char* what, std::size_t at) {
      if (got == expected) return;
      if (wrong++ == 0) {
        first = std::string(what) + " " + std::to_string(at) + " is " + std::to_string(got) +
                ", not " + std::to_string(expected);
      }
    };
    const std::vector<float> parts = read(parts_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t sum = static_cast<std::int64_t>(i) / count;
      float expected = 0;
      bool is_first = true;
      for (const int r : groups_.of(sum % 2 == 0 ? SumOf::attention : SumOf::experts)) {
        const float add = part(r, round, sum, static_cast<std::int64_t>(i) % count);
        expected = is_first ? add : expected + add;
        is_first = false;
      }
      compare(parts[i], expected, "number", i);
    }
    const std::vector<float> logits = read(logits_);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      compare(logits[i], part(9, round, 77, static_cast<std::int64_t>(i)), "logit", i);
    }
    return wrong == 0 ? "" : std::to_string(wrong) + " wrong; " + first;
  }

 private:
  /// Without waiting for the device, on which another rank may wait for this one.
  static std::vector<float> read(const OnDevice<float>& from) {
    std::vector<float> values(from.bytes() / sizeof(float));
    cuda_check(cudaMemcpy(values.data(), from.get(), from.bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

  static constexpr std::int64_t kGathers = 3;
  const Case case_;
  RankSum& sum_;
  const RankGroups groups_;
  OnDevice<float> parts_;
  OnDevice<float> logits_;
};

bool is_idle(cudaStream_t stream) {
  const cudaError_t status = cudaStreamQuery(stream);
  if (status == cudaErrorNotReady) return false;
  cuda_check(status);
  return true;
}

/// One rank's: eager steps, then replays of a graph, then both in turns.
Expected<void> add_in_rounds(ranks::Group& group, const Case& of, bool shares_attention) {
  check(kLoadsEarly == 0, "kernels are loaded early");
  cuda_check(cudaSetDevice(0));
  const RankGroups groups = groups_of(of, group.rank(), group.size(), shares_attention);
  auto sum = PeerSum::make(group, groups);
  if (!sum) return sum.error();
  CudaStream stream;
  Step step(of, **sum, groups);
  // Nothing but memory operations and kernels that are loaded: no rank waits for another's call.
  step.fill(0);
  const CudaGraph graph(stream, [&] { step.enqueue(stream); });
  const CudaGraphExec exec(graph);
  exec.upload(stream);
  stream.wait();
  constexpr std::int64_t kRounds = 12;
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    step.fill(round);
    const bool by_graph = round > 8 ? round % 2 == 0 : round > 4;
    if (by_graph) {
      exec.launch(stream);
    } else {
      step.enqueue(stream);
    }
    try {
      (*sum)->wait([&] { return is_idle(stream); });
    } catch (const RankFailure& failure) {
      return Error{failure.what()};
    }
    if (const std::string faults = step.faults(round); !faults.empty()) {
      return Error{"rank " + std::to_string(group.rank()) + ", round " + std::to_string(round) +
                   (by_graph ? " by a graph: " : ": ") + faults};
    }
  }
  // Replays one behind the other, as steps in flight are.
  step.fill(99);
  if (const auto met = group.barrier(); !met) return met.error();
  constexpr int kReplays = 50;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kReplays; ++i) exec.launch(stream);
  (*sum)->wait([&] { return is_idle(stream); });
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  if (group.rank() == 0) {
    const auto meetings = static_cast<double>(shares_attention ? 2 * of.layers : of.layers) + 3;
    std::printf("%s, %d ranks, %ld x %ld: %.1f us a meeting\n", group.transport().c_str(),
                group.size(), static_cast<long>(of.rows), static_cast<long>(of.hidden),
                us / kReplays / meetings);
  }
  return group.barrier();
}

TEST(PeerSumOnGpu, threads_add_and_gather_in_the_order_of_ranks) {
  GAUNTLET_NEEDS_GPU();
  for (const int ranks : {1, 2, 4}) {
    for (const Case& of :
         {Case{}, Case{.layers = 3, .rows = 1}, Case{.layers = 2, .hidden = 2880}}) {
      const auto done = ranks::run_threads(
          ranks, [&](ranks::Group& group) { return add_in_rounds(group, of, true); });
      EXPECT_TRUE(done) << ranks << " ranks: " << done.error().message;
    }
  }
}

TEST(PeerSumOnGpu, threads_that_share_experts_alone_add_them_alone) {
  GAUNTLET_NEEDS_GPU();
  for (const std::int64_t layers : {2, 3, 5}) {
    const auto done = ranks::run_threads(
        2, [&](ranks::Group& group) { return add_in_rounds(group, {.layers = layers}, false); });
    EXPECT_TRUE(done) << done.error().message;
  }
}

TEST(PeerSumOnGpu, names_a_rank_that_does_not_come_and_lets_the_stream_go) {
  GAUNTLET_NEEDS_GPU();
  const auto done = ranks::run_threads(2, [&](ranks::Group& group) -> Expected<void> {
    cuda_check(cudaSetDevice(0));
    const Case of{.timeout_s = 0.5};
    const RankGroups groups = groups_of(of, group.rank(), 2, true);
    auto sum = PeerSum::make(group, groups);
    if (!sum) return sum.error();
    CudaStream stream;
    Step step(of, **sum, groups);
    step.fill(1);
    if (group.rank() == 0) {
      step.enqueue(stream);
      const auto is_done = [&] { return is_idle(stream); };
      try {
        (*sum)->wait(is_done);
        ADD_FAILURE() << "nobody came";
      } catch (const RankFailure& failure) {
        EXPECT_STREQ(failure.what(), "rank 1 did not come to a sum on the GPU within 0.5 s");
      }
      EXPECT_TRUE(is_done()) << "the stream still waits";
      EXPECT_NO_THROW((*sum)->wait(is_done));
      step.enqueue(stream);
      EXPECT_THROW((*sum)->wait(is_done), RankFailure) << "a lost rank stays lost";
      EXPECT_TRUE(is_done());
    }
    return group.barrier();
  });
  EXPECT_TRUE(done) << done.error().message;
}

TEST(PeerSumOnGpu, refuses_a_model_of_one_layer) {
  GAUNTLET_NEEDS_GPU();
  const auto group = ranks::alone();
  const auto sum = PeerSum::make(*group, groups_of({.layers = 1}, 0, 1, true));
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, testing::HasSubstr("one layer"));
}

/// What the test below starts as each rank.
TEST(MpiRank, adds_on_a_gpu) {
  if (std::getenv(kPartVariable) == nullptr) {
    GTEST_SKIP() << "not a test of its own: PeerSumOnGpu starts it under mpirun";
  }
  auto group = ranks::join();
  ASSERT_TRUE(group) << group.error().message;
  for (const Case& of : {Case{}, Case{.layers = 24, .rows = 1, .hidden = 2880},
                         Case{.layers = 3, .rows = 64, .hidden = 2880, .vocab = 201088}}) {
    const auto done = add_in_rounds(**group, of, true);
    ASSERT_TRUE(done) << done.error().message;
  }
}

TEST(PeerSumOnGpu, processes_add_and_gather_in_the_order_of_ranks) {
  GAUNTLET_NEEDS_GPU();
  if (const auto library = ranks::find_mpi_library(); !library) {
    GTEST_SKIP() << library.error().message;
  }
  const auto command =
      ranks::mpirun_command(2, {std::filesystem::read_symlink("/proc/self/exe").string(),
                                "--gtest_brief=1", "--gtest_filter=MpiRank.adds_on_a_gpu"});
  if (!command) GTEST_SKIP() << command.error().message;
  setenv(kPartVariable, "1", 1);
  const FakeTree folder;
  const std::string log = (folder.root() / "job.log").string();
  const auto outcome =
      run_child({.argv = *command, .log_path = log, .timeout_s = 60, .grace_s = 5});
  unsetenv(kPartVariable);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::exited);
  EXPECT_EQ(outcome->code, 0);
  std::printf("%s", read_file(log).value().c_str());
}

}  // namespace
}  // namespace gauntlet::engine::cuda
