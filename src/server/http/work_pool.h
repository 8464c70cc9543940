// Where requests are worked on that may take long: not on the threads of the sockets, whose streams
// would be seen to stop. Small jobs go before large ones, and clients share the workers' time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gauntlet::server::inline http {

class WorkPool {
 public:
  struct Limits {
    std::size_t jobs = 4096;            // that wait
    std::size_t jobs_of_client = 2048;  // of those, of one client
  };
  struct Client {
    std::string name;
    double share = 1;  // of the workers' time, against the shares of others; above 0
  };
  struct Job {
    Client client;
    std::size_t weight_bytes = 0;  // of a body that takes about as long to be parsed
    enum class Stage { first, next };
    Stage stage = Stage::first;  // the limits hold for what has not begun
    std::function<void()> run;   // does not throw
  };

  explicit WorkPool(Limits limits);
  WorkPool() : WorkPool(Limits()) {}
  /// Waits for the jobs that have begun; the others are dropped.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  enum class Posted { yes, queue_is_full, client_has_too_many };
  /// From any thread. A job that is not posted is dropped.
  [[nodiscard]] Posted post(Job job);
  /// From any thread, when a request has ended that held so much: the allocator keeps what is
  /// freed, and is made to give it back to the system once no job is left.
  void note_freed(std::size_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  /// By rank: arrival, later by what its weight costs. Small ones overtake, and nobody for ever.
  using Queue = std::multimap<Clock::time_point, Job>;
  struct State {  // of a client
    Queue waiting;
    int num_running = 0;
    double used_s = 0;  // over its share
  };
  using States = std::map<std::string, State>;
  struct Next {
    States::iterator client;
    Queue::iterator job;
  };

  void work(std::size_t worker);
  /// Of the jobs that a worker takes, the one whose client has least. False: there is none.
  bool find_next(std::size_t worker, Next& next);
  /// A light job is left to a worker for light ones, unless that is busy.
  bool takes(std::size_t worker, const Job& job) const;
  void run(const Next& next, std::unique_lock<std::mutex>& lock);
  void trim(std::unique_lock<std::mutex>& lock);

  const Limits limits_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  States clients_;
  std::size_t num_waiting_ = 0;
  double clock_s_ = 0;           // what the client had used whose job began last
  std::size_t freed_bytes_ = 0;  // since memory was given back
  bool ending_ = false;
  std::vector<bool> is_busy_;  // by worker
  std::vector<std::thread> threads_;
};

}  // namespace gauntlet::server::inline http
