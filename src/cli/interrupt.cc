#include "cli/interrupt.h"

#include <signal.h>

namespace gauntlet::cli {
namespace {

// A signal handler can reach nothing but a global; this is the program's only one.
std::atomic<bool> interrupted{false};
void on_signal(int) { interrupted.store(true); }

}  // namespace

std::atomic<bool>& watch_signals(std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
  return interrupted;
}

}  // namespace gauntlet::cli
