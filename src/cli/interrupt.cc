#include "cli/interrupt.h"

#include <signal.h>

namespace gauntlet::cli {
namespace {

// A signal handler can reach nothing but a global; this is the program's only one.
std::atomic<bool> interrupted{false};
void on_interrupt(int) { interrupted.store(true); }

}  // namespace

std::atomic<bool>& watch_interrupt() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace gauntlet::cli
