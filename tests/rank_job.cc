#include "tests/rank_job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "core/ranks/start.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTagVariable = "GAUNTLET_RANK_JOB";
constexpr auto kPause = std::chrono::milliseconds(20);

std::string new_tag() {
  static std::atomic<int> count = 0;
  return std::to_string(getpid()) + "-" + std::to_string(count++);
}

/// The process below this one that was started with both.
pid_t find_rank(const std::string& tag, int rank) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = read_text(entry.path() / "environ");
    if (text.find(std::string(kTagVariable) + "=" + tag + '\0') == text.npos) continue;
    if (text.find("OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0') == text.npos) continue;
    return std::stoi(name);
  }
  return -1;
}

/// mpirun hands its own environment to its ranks.
std::vector<std::string> command(int ranks, const std::vector<std::string>& argv,
                                 const std::string& folder, const std::string& tag) {
  std::vector<std::string> all = {"/usr/bin/env", std::string(kTagVariable) + "=" + tag,
                                  "TMPDIR=" + folder,
                                  "OMPI_MCA_btl_vader_backing_directory=" + folder};
  const auto mpirun = ranks::mpirun_command(ranks, argv);
  all.insert(all.end(), mpirun.value().begin(), mpirun.value().end());
  return all;
}

}  // namespace

RankJob::RankJob(int ranks, const std::vector<std::string>& argv)
    : tag_(new_tag()), program_(command(ranks, argv, folder_.path().string(), tag_)) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t found = -1;
    for (int i = 0; i < 3000 && (found = find_rank(tag_, rank)) < 0; ++i) {
      std::this_thread::sleep_for(kPause);
    }
    if (found < 0) throw std::runtime_error("a rank of the job never came");
    ranks_.push_back(found);
  }
}

RankJob::~RankJob() {
  for (const pid_t rank : ranks_) kill(rank, SIGKILL);
}

std::string RankJob::left_behind() {
  std::string left;
  for (const pid_t rank : ranks_) {
    // mpirun does not wait for all whom it has killed; the rest has fallen to this process.
    for (int i = 0; i < 50 && waitpid(rank, nullptr, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(kPause);
    }
    if (kill(rank, 0) == 0) left += "process " + std::to_string(rank) + " is still there; ";
  }
  ranks_.clear();
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_directory()) left += entry.path().string() + " is still there; ";
  }
  return left;
}

}  // namespace gauntlet::tests
