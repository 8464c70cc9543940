#include "tests/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gauntlet::tests {

namespace fs = std::filesystem;

namespace {

/// Where it was built, or else beside this program, in the folder above or in tests/: whoever
/// carries programs to a GPU keeps them so.
std::string find_program(const std::string& built_at) {
  if (fs::exists(built_at)) return built_at;
  const fs::path name = fs::path(built_at).filename();
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {here, here.parent_path(), here / "tests"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  return built_at;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "gauntlet-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Program::Program(std::vector<std::string> argv, const std::string& folder) {
  argv.at(0) = find_program(argv[0]);
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const std::string out = output_ / "out", err = output_ / "err";
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot start " + argv[0]);
  if (pid_ > 0) return;
  const int out_fd = open(out.c_str(), O_WRONLY | O_CREAT, 0644);
  const int err_fd = open(err.c_str(), O_WRONLY | O_CREAT, 0644);
  dup2(out_fd, 1);
  dup2(err_fd, 2);
  if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nobody behind
  execv(pointers[0], pointers.data());
  dprintf(2, "cannot start %s: %s\n", pointers[0], strerrordesc_np(errno));
  _exit(127);
}

Program::~Program() {
  if (pid_ < 0) return;
  kill_now();
  waitpid(pid_, nullptr, 0);
}

void Program::kill_now() { kill(pid_, SIGKILL); }

void Program::terminate() { kill(pid_, SIGTERM); }

void Program::interrupt() { kill(pid_, SIGINT); }

bool Program::handles_interrupts() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string name, value; status >> name && std::getline(status, value);) {
    if (name == "SigCgt:") return (std::stoull(value, nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  }
  return false;
}

std::string Program::printed() const { return read_text(output_ / "out"); }

Outcome Program::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
          .out = read_text(output_ / "out"),
          .err = read_text(output_ / "err")};
}

Outcome run_program(std::vector<std::string> argv, const std::string& folder) {
  return Program(std::move(argv), folder).wait();
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gauntlet::tests
