#include "tests/emulated/schedule.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace gauntlet::emulated {

void Schedule::add_thread(int group, std::function<void()> body) {
  workers_.push_back(std::make_unique<Worker>(group, std::move(body)));
}

void Schedule::live(Worker& worker) {
  worker.go.acquire();
  try {
    if (!stopping_) worker.body();
  } catch (const Stopped&) {
  } catch (const std::exception& e) {
    if (fault_.empty()) fault_ = e.what();
  }
  worker.ended = true;
  back_.release();
}

void Schedule::resume(Worker& worker) {
  running_ = &worker;
  worker.go.release();
  back_.acquire();
  running_ = nullptr;
}

/// One that can go on; of the slow group only where no other can.
Schedule::Worker* Schedule::choose() {
  std::vector<Worker*> ready, slow;
  for (const auto& worker : workers_) {
    if (worker->ended || !worker->ready()) continue;
    (worker->group == slow_group_ ? slow : ready).push_back(worker.get());
  }
  if (ready.empty()) ready.swap(slow);
  return ready.empty() ? nullptr : ready[random_.next_below(ready.size())];
}

std::string Schedule::run(const Engine& engine) {
  // Of some runs the copies and products are slow, of others at once done.
  const std::uint64_t percent_of_engine =
      std::vector<std::uint64_t>{2, 50, 98}[random_.next_below(3)];
  int groups = 1;
  for (const auto& worker : workers_) groups = std::max(groups, worker->group + 1);
  slow_group_ = static_cast<int>(random_.next_below(static_cast<std::uint64_t>(groups) + 1));
  for (const auto& worker : workers_) {
    worker->thread = std::thread([this, &worker = *worker] { live(worker); });
  }
  while (fault_.empty()) {
    Worker* const next = choose();
    const int work = engine.num_ready();
    if (work > 0 && (next == nullptr || random_.next_below(100) < percent_of_engine)) {
      try {
        engine.perform(static_cast<int>(random_.next_below(static_cast<std::uint64_t>(work))));
      } catch (const Stopped&) {
      }
    } else if (next != nullptr) {
      resume(*next);
    } else {
      break;
    }
  }
  for (const auto& worker : workers_) {
    if (!worker->ended && fault_.empty()) fault_ = "stuck: waits for " + worker->waits_for;
  }
  stopping_ = true;
  for (const auto& worker : workers_) {
    if (!worker->ended) resume(*worker);
    worker->thread.join();
  }
  return fault_;
}

void Schedule::wait_until(const std::string& what, std::function<bool()> holds) {
  Worker& self = *running_;
  self.waits_for = what;
  self.ready = std::move(holds);
  back_.release();
  self.go.acquire();
  if (stopping_) throw Stopped();
}

void Schedule::fault(const std::string& what) {
  if (fault_.empty()) fault_ = what;
  throw Stopped();
}

}  // namespace gauntlet::emulated
