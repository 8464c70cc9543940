#include "core/ranks/mpi_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "core/os/process.h"
#include "core/ranks/conformance.h"
#include "core/ranks/mpi_exchange.h"
#include "core/ranks/start.h"

namespace gauntlet::ranks {
namespace {

using testing::HasSubstr;
using End = ChildOutcome::End;

constexpr const char* kPartVariable = "GAUNTLET_TEST_RANK_PART";

/// Says on the parent's pipe what the test reads: "<rank> <words>".
void say(int rank, const std::string& words) {
  const auto pipe = open_message_pipe();
  ASSERT_TRUE(pipe) << pipe.error().message;
  const std::string line = std::to_string(rank) + " " + words + "\n";
  EXPECT_EQ(write(*pipe, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  close(*pipe);
}

std::string error_of(const Expected<void>& done) { return done ? "" : done.error().message; }

void sleep_forever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void part_conforms() {
  auto group = join();
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ((*group)->transport(), "mpi");
  EXPECT_EQ((*group)->rank(), started_as().rank);
  EXPECT_EQ((*group)->size(), started_as().size);
  conforms(**group);
  conforms_over_links(**group);
  EXPECT_THROW((void)join_mpi(), Fault) << "once per process";
  std::jthread other([&] { EXPECT_THROW((void)(*group)->barrier(), Fault); });
  other.join();
  say((*group)->rank(), "of " + std::to_string((*group)->size()) + " conforms");
}

/// Rank 1 dies between two barriers.
void part_is_killed() {
  auto group = join({.timeout_s = 60});
  ASSERT_TRUE(group) << group.error().message;
  signal(SIGTERM, SIG_IGN);  // mpirun's, which says no more than that something is wrong
  expect_ok((*group)->barrier());
  const std::string process = std::to_string(getpid());
  if ((*group)->rank() == 1) {
    say(1, process);
    kill(getpid(), SIGKILL);
  }
  say(0, error_of((*group)->barrier()));
}

/// Rank 1 stays away from the second barrier.
void part_hangs() {
  auto group = join({.timeout_s = 0.5});
  ASSERT_TRUE(group) << group.error().message;
  expect_ok((*group)->barrier());
  if ((*group)->rank() == 1) sleep_forever();
  const std::string first = error_of((*group)->barrier());
  say(0, first);
  EXPECT_EQ(error_of((*group)->barrier()), first);
}

/// Rank 1 calls something else.
void part_differs() {
  auto group = join({.timeout_s = 20});
  ASSERT_TRUE(group) << group.error().message;
  std::vector<float> numbers(8, 1);
  if ((*group)->rank() == 1) {
    say(1, error_of((*group)->all_sum(std::span(numbers).first(7))));
  } else {
    say(0, error_of((*group)->all_sum(numbers)));
  }
}

/// Both hang inside of the job, and rank 1 hears no signal but the last.
void part_stops() {
  auto group = join();
  ASSERT_TRUE(group) << group.error().message;
  const int rank = (*group)->rank();
  expect_ok((*group)->barrier());
  say(rank, std::to_string(getpid()));
  if (rank == 1) kill(getpid(), SIGSTOP);
  sleep_forever();
}

/// Rank 1 ends with an error of its own.
void part_fails() {
  auto group = join({.timeout_s = 60});
  ASSERT_TRUE(group) << group.error().message;
  if ((*group)->rank() == 1) std::_Exit(7);
  sleep_forever();
}

/// Two exchanges at a time around a ring, beside a call of the group.
void part_exchanges() {
  auto group = join();
  ASSERT_TRUE(group) << group.error().message;
  const auto messages = MpiExchange::find();
  ASSERT_TRUE(messages) << messages.error().message;
  const int rank = (*group)->rank(), size = (*group)->size();
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  constexpr std::size_t kCount = 300'000;  // more than MPI sends before the receiver is there
  std::vector<int> first(kCount, rank), second(kCount, 100 + rank);
  std::vector<int> came_first(kCount), came_second(kCount);
  const auto start = [&](std::vector<int>& sent, std::vector<int>& received) {
    return (*messages)->start(next, sent.data(), previous, received.data(), kCount * sizeof(int));
  };
  expect_ok(start(first, came_first));
  expect_ok(start(second, came_second));
  expect_ok((*group)->barrier());
  expect_ok((*messages)->finish());
  EXPECT_EQ(came_first, std::vector<int>(kCount, previous));
  expect_ok((*messages)->finish());
  EXPECT_EQ(came_second, std::vector<int>(kCount, 100 + previous));
  EXPECT_THROW((void)(*messages)->finish(), Fault) << "nothing is under way";
  if (!testing::Test::HasFailure()) say(rank, "exchanged");
}

/// Rank 1 comes late for more than MPI sends before the receiver is there. Clocks of one host.
void part_flushes() {
  auto group = join();
  ASSERT_TRUE(group) << group.error().message;
  using Clock = std::chrono::steady_clock;
  const auto now = [] { return Clock::now().time_since_epoch().count(); };
  std::vector<std::byte> bytes(1'200'000, std::byte{7});
  Clock::rep came = 0;
  if ((*group)->rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    came = now();
    const auto received = (*group)->receive_any(0);
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_TRUE(*received == bytes);
    expect_ok((*group)->send(0, std::as_bytes(std::span(&came, 1))));
    expect_ok((*group)->flush());
    return say(1, "received");
  }
  expect_ok((*group)->send(1, bytes));
  expect_ok((*group)->flush());
  const Clock::rep flushed = now();
  expect_ok((*group)->receive(1, std::as_writable_bytes(std::span(&came, 1))));
  EXPECT_GT(flushed, came) << "nobody had taken the bytes yet";
  if (!testing::Test::HasFailure()) say(0, "flushed");
}

const std::map<std::string, void (*)()>& parts() {
  static const std::map<std::string, void (*)()> kParts = {
      {"conforms", part_conforms},   {"is_killed", part_is_killed}, {"hangs", part_hangs},
      {"differs", part_differs},     {"stops", part_stops},         {"fails", part_fails},
      {"exchanges", part_exchanges}, {"flushes", part_flushes}};
  return kParts;
}

/// What the tests below start as each rank.
TEST(MpiRank, does_its_part) {
  const char* part = std::getenv(kPartVariable);
  if (part == nullptr) GTEST_SKIP() << "not a test of its own: MpiOnRanks starts it under mpirun";
  ASSERT_TRUE(parts().contains(part)) << part;
  parts().at(part)();
}

class MpiOnRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto library = find_mpi_library(); !library) GTEST_SKIP() << library.error().message;
    if (const auto mpirun = find_mpirun(); !mpirun) GTEST_SKIP() << mpirun.error().message;
    std::filesystem::create_directory(job_folder());
  }

  /// Starts this program as the ranks of a job.
  ChildOutcome run(const std::string& part, int ranks, ChildOptions options) {
    // The program's own environment is what mpirun hands to its ranks.
    setenv(kPartVariable, part.c_str(), 1);
    // Where it would leave something behind.
    setenv("TMPDIR", job_folder().c_str(), 1);
    setenv("OMPI_MCA_btl_vader_backing_directory", job_folder().c_str(), 1);
    const auto command =
        mpirun_command(ranks, {std::filesystem::read_symlink("/proc/self/exe").string(),
                               "--gtest_brief=1", "--gtest_filter=MpiRank.does_its_part"});
    EXPECT_TRUE(command);
    options.argv = *command;
    options.log_path = (folder_.root() / "job.log").string();
    options.grace_s = 5;
    options.on_line = [this](const std::string& line) { lines_.insert(line); };
    const auto outcome = run_child(options);
    for (const char* variable : {kPartVariable, "TMPDIR", "OMPI_MCA_btl_vader_backing_directory"}) {
      unsetenv(variable);
    }
    EXPECT_TRUE(outcome);
    return *outcome;
  }
  std::string job_folder() const { return (folder_.root() / "job").string(); }
  std::set<std::string> left_behind() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(job_folder())) {
      if (!entry.is_directory()) files.insert(entry.path().string());
    }
    return files;
  }
  std::string log() const { return *read_file(folder_.root() / "job.log"); }

  FakeTree folder_;
  std::set<std::string> lines_;
};

class MpiSizesOnRanks : public MpiOnRanks, public testing::WithParamInterface<int> {};

TEST_P(MpiSizesOnRanks, conform) {
  const ChildOutcome outcome = run("conforms", GetParam(), {.timeout_s = 120});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 0) << log();
  std::set<std::string> expected;
  for (int rank = 0; rank < GetParam(); ++rank) {
    expected.insert(std::to_string(rank) + " of " + std::to_string(GetParam()) + " conforms");
  }
  EXPECT_EQ(lines_, expected);
}

INSTANTIATE_TEST_SUITE_P(, MpiSizesOnRanks, testing::Values(1, 2, 4));

TEST_F(MpiOnRanks, exchange_memory_as_it_lies) {
  const ChildOutcome outcome = run("exchanges", 3, {.timeout_s = 60});
  EXPECT_EQ(outcome.code, 0) << log();
  EXPECT_EQ(lines_, (std::set<std::string>{"0 exchanged", "1 exchanged", "2 exchanged"}));
}

TEST_F(MpiOnRanks, flush_what_was_sent) {
  const ChildOutcome outcome = run("flushes", 2, {.timeout_s = 60});
  EXPECT_EQ(outcome.code, 0) << log();
  EXPECT_EQ(lines_, (std::set<std::string>{"0 flushed", "1 received"}));
}

TEST_F(MpiOnRanks, end_with_a_rank_that_is_killed) {
  const ChildOutcome outcome = run("is_killed", 2, {.timeout_s = 60});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(outcome.seconds, 30) << "mpirun ends the others; nobody waits for the time limit";
  EXPECT_THAT(log(), HasSubstr("signal 9"));
  ASSERT_EQ(lines_.size(), 2u) << "its process, and what the other found";
  EXPECT_EQ(*lines_.begin(), "0 rank 1 ended before a barrier of 2 ranks: its process " +
                                 lines_.rbegin()->substr(2) + " is gone");
}

TEST_F(MpiOnRanks, end_with_a_rank_that_fails) {
  const ChildOutcome outcome = run("fails", 2, {.timeout_s = 60});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(outcome.seconds, 30);
}

TEST_F(MpiOnRanks, say_in_one_sentence_that_a_rank_hangs) {
  const ChildOutcome outcome = run("hangs", 2, {.timeout_s = 60});
  EXPECT_EQ(lines_, std::set<std::string>{"0 rank 1 did not come to a barrier of 2 ranks "
                                          "within 0.5 s"});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_NE(outcome.code, 0) << "mpirun takes a rank that leaves without the others for lost";
  EXPECT_LT(outcome.seconds, 30);
}

TEST_F(MpiOnRanks, tell_calls_that_do_not_match) {
  const ChildOutcome outcome = run("differs", 2, {.timeout_s = 60});
  const std::string sentence =
      " rank 1 called an all-sum of 28 bytes where rank 0 called an all-sum of 32 bytes";
  EXPECT_EQ(lines_, (std::set<std::string>{"0" + sentence, "1" + sentence})) << log();
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(outcome.seconds, 30);
}

TEST_F(MpiOnRanks, are_all_gone_after_the_time_limit) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildOutcome outcome = run("stops", 2, {.timeout_s = 2});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  ASSERT_EQ(lines_.size(), 2u) << log();
  for (const std::string& line : lines_) {
    EXPECT_NE(kill(std::stoi(line.substr(2)), 0), 0) << "rank " << line << " is still there";
  }
  EXPECT_EQ(left_behind(), std::set<std::string>{});
}

TEST(JoinMpi, refuses_a_process_that_no_one_started_as_a_rank) {
  const auto group = join_mpi();
  ASSERT_FALSE(group);
  EXPECT_THAT(group.error().message, HasSubstr("start it with mpirun"));
}

TEST(Join, gives_a_process_that_no_one_started_a_group_of_one) {
  const auto group = join();
  ASSERT_TRUE(group);
  EXPECT_EQ((*group)->transport(), "alone");
}

}  // namespace
}  // namespace gauntlet::ranks
