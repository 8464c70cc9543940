#include "core/os/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "core/os/fake_tree.h"
#include "core/os/files.h"

namespace gauntlet {
namespace {

using End = ChildOutcome::End;

class RunChild : public testing::Test {
 protected:
  /// Runs a shell script; its lines on the pipe are kept.
  ChildOutcome run(const std::string& script, ChildOptions options = {}) {
    options.argv = {"/bin/sh", "-c", script};
    options.log_path = log_path();
    options.on_line = [this](const std::string& line) { lines_.push_back(line); };
    const auto outcome = run_child(options);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
    return outcome ? *outcome : ChildOutcome{};
  }
  std::string log_path() const { return (folder_.root() / "child.log").string(); }
  std::string log() const { return *read_file(log_path()); }

  FakeTree folder_;
  std::vector<std::string> lines_;
};

TEST_F(RunChild, reports_the_exit_code_and_the_lines) {
  const ChildOutcome outcome = run("echo one >&3; echo two >&3; exit 7");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(lines_, (std::vector<std::string>{"one", "two"}));
  EXPECT_LT(outcome.seconds, 5);
}

TEST_F(RunChild, appends_what_is_printed_to_the_log) {
  run("echo out; echo err >&2");
  run("echo again");
  EXPECT_EQ(log(), "out\nerr\nagain\n");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(RunChild, gives_no_standard_input) { EXPECT_EQ(run("read line && exit 1; exit 4").code, 4); }

TEST_F(RunChild, reports_a_crash_by_its_signal) {
  const ChildOutcome outcome = run("echo before >&3; kill -SEGV $$");
  EXPECT_EQ(outcome.end, End::signaled);
  EXPECT_EQ(outcome.code, SIGSEGV);
  EXPECT_EQ(lines_, std::vector<std::string>{"before"});
}

TEST_F(RunChild, ends_a_child_that_hangs) {
  const ChildOutcome outcome = run("echo started >&3; sleep 30", {.timeout_s = 0.2});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_GE(outcome.seconds, 0.2);
  EXPECT_LT(outcome.seconds, 5);
  EXPECT_EQ(lines_, std::vector<std::string>{"started"});
}

TEST_F(RunChild, ends_a_child_that_ignores_polite_signals) {
  const ChildOutcome outcome =
      run("trap '' TERM INT HUP; while :; do sleep 0.05; done", {.timeout_s = 0.2});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_EQ(outcome.code, SIGKILL);
}

TEST_F(RunChild, ends_a_child_that_takes_too_much_memory) {
  constexpr std::int64_t kLimit = 64 << 20;
  // The shell itself grows: a string that doubles.
  const ChildOutcome outcome = run("x=0123456789abcdef; while :; do x=$x$x; done",
                                   {.timeout_s = 20, .max_resident_bytes = kLimit});
  EXPECT_EQ(outcome.end, End::out_of_memory);
  EXPECT_GT(outcome.peak_resident_bytes, kLimit);
}

TEST_F(RunChild, notes_the_memory_of_a_child_within_its_limit) {
  const ChildOutcome outcome = run("sleep 0.1", {.max_resident_bytes = 1 << 30});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_GT(outcome.peak_resident_bytes, 0);
}

TEST_F(RunChild, reads_a_flood_to_its_last_line) {
  run("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&3");
  ASSERT_EQ(lines_.size(), 20000u);
  EXPECT_EQ(lines_.front(), "line 0");
  EXPECT_EQ(lines_.back(), "line 19999");
}

TEST_F(RunChild, ends_a_child_that_never_stops_writing) {
  const ChildOutcome outcome = run("while :; do echo x; done >&3", {.timeout_s = 0.2});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_GT(lines_.size(), 10u);
}

TEST_F(RunChild, hands_garbage_on_line_by_line) {
  const ChildOutcome outcome = run(R"(printf '\377\376\n\n{"type":\nno newline at the end' >&3)");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(lines_, (std::vector<std::string>{"\377\376", "", R"({"type":)"}));
}

TEST_F(RunChild, joins_a_line_that_arrives_in_pieces) {
  run("printf 'half ' >&3; sleep 0.05; echo whole >&3");
  EXPECT_EQ(lines_, std::vector<std::string>{"half whole"});
}

TEST_F(RunChild, survives_a_child_that_closes_the_pipe_and_goes_on) {
  const ChildOutcome outcome = run("exec 3>&-; sleep 0.1; exit 5");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 5);
}

TEST_F(RunChild, does_not_wait_for_a_grandchild_that_holds_the_pipe) {
  const ChildOutcome outcome =
      run("echo done >&3; sleep 30 & echo $! > " + (folder_.root() / "pid").string() + "; exit 3");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_LT(outcome.seconds, 5);
  EXPECT_EQ(lines_, std::vector<std::string>{"done"});
}

TEST_F(RunChild, ends_the_grandchildren_with_the_child) {
  run("sleep 30 & echo $! >&3; exit 0");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(kill(std::stoi(lines_[0]), 0), 0) << "not even a zombie is left";
}

TEST_F(RunChild, ends_grandchildren_in_process_groups_of_their_own) {
  // As mpirun starts its ranks; a stopped one hears nothing but SIGKILL.
  const ChildOutcome outcome =
      run("set -m; sleep 30 & echo $! >&3; kill -STOP $!; sleep 30", {.timeout_s = 0.3});
  EXPECT_EQ(outcome.end, End::timed_out);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(kill(std::stoi(lines_[0]), 0), 0);
}

TEST_F(RunChild, ends_grandchildren_in_sessions_of_their_own_at_the_time_limit) {
  const ChildOutcome outcome =
      run("setsid sh -c 'echo $$ >&3; exec sleep 30' & sleep 30", {.timeout_s = 0.3});
  EXPECT_EQ(outcome.end, End::timed_out);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(kill(std::stoi(lines_[0]), 0), 0);
}

TEST_F(RunChild, lets_a_child_tidy_up_within_its_grace) {
  const ChildOutcome outcome =
      run("trap 'echo tidied >&3; exit 9' TERM; echo ready >&3; while :; do sleep 0.02; done",
          {.timeout_s = 0.3, .grace_s = 20});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_EQ(outcome.code, 9);
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_EQ(lines_, (std::vector<std::string>{"ready", "tidied"}));
}

TEST_F(RunChild, kills_a_child_whose_grace_is_over) {
  const ChildOutcome outcome =
      run("trap '' TERM; while :; do sleep 0.02; done", {.timeout_s = 0.1, .grace_s = 0.2});
  EXPECT_EQ(outcome.end, End::timed_out);
  EXPECT_EQ(outcome.code, SIGKILL);
  EXPECT_GE(outcome.seconds, 0.3);
}

TEST_F(RunChild, counts_the_memory_of_grandchildren) {
  constexpr std::int64_t kLimit = 64 << 20;
  const ChildOutcome outcome =
      run("sh -c 'x=0123456789abcdef; while [ ${#x} -lt 100000000 ]; do x=$x$x; done; sleep 30'",
          {.timeout_s = 20, .max_resident_bytes = kLimit});
  EXPECT_EQ(outcome.end, End::out_of_memory);
  EXPECT_GT(outcome.peak_resident_bytes, kLimit);
}

TEST_F(RunChild, is_not_held_by_a_grandchild_of_another_session_that_floods_the_pipe) {
  // It left the session and its parent is gone, so the kill does not reach it; it dies of SIGPIPE
  // once the pipe is closed.
  const auto begin = std::chrono::steady_clock::now();
  const ChildOutcome outcome = run("setsid yes flood >&3 & sleep 0.1; exit 0");
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(RunChild, ends_a_child_when_interrupted) {
  const std::atomic<bool> interrupt = true;
  const ChildOutcome outcome = run("sleep 30", {.interrupt = &interrupt});
  EXPECT_EQ(outcome.end, End::interrupted);
  EXPECT_LT(outcome.seconds, 5);
}

TEST_F(RunChild, says_in_the_log_why_a_program_did_not_start) {
  const auto outcome = run_child({.argv = {"/no/such/program"}, .log_path = log_path()});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, End::exited);
  EXPECT_EQ(outcome->code, 127);
  EXPECT_NE(log().find("cannot start /no/such/program"), std::string::npos);
}

TEST_F(RunChild, ends_at_once_when_the_log_cannot_be_written) {
  const auto outcome =
      run_child({.argv = {"/bin/sh", "-c", "exit 0"}, .log_path = "/no/such/folder/log"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 127);
}

TEST(RunChildOptions, refuses_a_child_without_a_program) {
  EXPECT_THROW(run_child({.log_path = "/dev/null"}), Fault);
}

TEST(SignalText, names_the_signal) {
  EXPECT_EQ(signal_text(SIGSEGV), "segmentation fault (SIGSEGV)");
  EXPECT_EQ(signal_text(SIGKILL), "killed (SIGKILL)");
  EXPECT_EQ(signal_text(199), "signal (SIG199)");
}

}  // namespace
}  // namespace gauntlet
