#include "tests/program.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gauntlet::tests {

namespace fs = std::filesystem;

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
