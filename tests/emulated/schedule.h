// Threads of which one runs at a time, in random order: what waits for what, and who never ends?
#pragma once
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "core/random.h"

namespace gauntlet::emulated {

/// What works beside the threads: copies and products that were started.
struct Engine {
  std::function<int()> num_ready;
  std::function<void(int)> perform;  // the one of this number
};

class Schedule {
 public:
  explicit Schedule(Random& random) : random_(random) {}

  /// Threads of a group can all be slow.
  void add_thread(int group, std::function<void()> body);
  /// The first fault, or nothing once all threads have ended.
  std::string run(const Engine& engine);

  /// Called by a thread: others run until this holds.
  void wait_until(const std::string& what, std::function<bool()> holds);
  /// Called by a thread or an engine: nothing goes on.
  [[noreturn]] void fault(const std::string& what);

 private:
  struct Stopped {};
  struct Worker {
    int group;
    std::function<void()> body;
    std::string waits_for = "its start";
    std::function<bool()> ready = [] { return true; };
    bool ended = false;
    std::binary_semaphore go{0};
    std::thread thread = {};
  };

  void live(Worker& worker);
  void resume(Worker& worker);
  Worker* choose();

  Random& random_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Worker* running_ = nullptr;
  std::binary_semaphore back_{0};
  std::string fault_;
  bool stopping_ = false;
  int slow_group_ = 0;
};

}  // namespace gauntlet::emulated
