// SignalBlock: no signal handler runs while nothing is timed.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace gauntlet::lab::inline measure {

/// Keeps signals from the calling thread, and from those it starts, but for stretches that are
/// timed: a handler would work outside of the clock.
class SignalBlock {
 public:
  SignalBlock() {
    sigfillset(&all_);
    pthread_sigmask(SIG_SETMASK, &all_, &before_);
  }
  ~SignalBlock() {
    discard(all_);  // what is still waiting finds its buffers gone
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

  /// While this lives, signals reach the calling thread. What waited for a handler does not: it
  /// would be timed with a side that may not have asked for it.
  class Lifted {
   public:
    explicit Lifted(const SignalBlock& block) : block_(block) {
      block_.discard_handled();
      pthread_sigmask(SIG_SETMASK, &block_.before_, nullptr);
    }
    ~Lifted() { pthread_sigmask(SIG_SETMASK, &block_.all_, nullptr); }
    Lifted(const Lifted&) = delete;
    Lifted& operator=(const Lifted&) = delete;

   private:
    const SignalBlock& block_;
  };

 private:
  static bool has_handler(int signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) return false;
    if ((action.sa_flags & SA_SIGINFO) != 0) return true;
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
  }
  void discard_handled() const {
    sigset_t pending{}, handled{};
    if (sigpending(&pending) != 0 || sigisemptyset(&pending)) return;
    sigemptyset(&handled);
    for (int signal = 1; signal < NSIG; ++signal) {
      if (sigismember(&pending, signal) == 1 && has_handler(signal)) sigaddset(&handled, signal);
    }
    discard(handled);
  }
  static void discard(const sigset_t& signals) {
    const timespec now{};
    while (sigtimedwait(&signals, nullptr, &now) > 0) {
    }
  }
  sigset_t all_{}, before_{};
};

}  // namespace gauntlet::lab::inline measure
