// What one client can do to hurt another, and honest streams to compare it with. Each is played by
// threads of its own until it is told to end.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/http_client.h"

namespace gauntlet::tests {

/// The connections of those who play, so that whoever waits for an answer can be stopped.
class Stage {
 public:
  Stage(std::uint16_t port, std::uint64_t seed) : port_(port), seed_(seed) {}

  bool is_over() const { return is_over_.load(); }
  void end();
  /// One that differs from all before it.
  std::uint64_t next() { return seed_ + num_drawn_.fetch_add(1); }
  /// One request over a connection of its own, whose answer is read and not kept: it may be large.
  void ask(const std::string& path, const std::string& body);

  std::atomic<std::int64_t> num_answers{0};  // and of those:
  std::atomic<std::int64_t> num_server_faults{0};

  /// A connection that ends with the stage.
  class Connection {
   public:
    explicit Connection(Stage& stage);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Socket& socket() { return socket_; }

   private:
    Stage& stage_;
    Socket socket_;
  };

 private:
  const std::uint16_t port_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> num_drawn_{0};
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::set<int> handles_;
};

struct Attack {
  const char* name;
  int num_clients;             // threads that play
  int num_streams;             // honest ones that ask for as much at once
  void (*play)(Stage& stage);  // once; again until the stage is over
};

const std::vector<Attack>& all_attacks();
/// A stream as others have it, to its end.
void play_honest_stream(Stage& stage);

/// So many threads that play one part, at a low priority: those who attack have machines of their
/// own.
class Company {
 public:
  Company(std::uint16_t port, std::uint64_t seed, int count, void (*play)(Stage& stage));
  ~Company() { end(); }
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  void end();
  const Stage& stage() const { return stage_; }

 private:
  Stage stage_;
  std::vector<std::thread> threads_;
};

}  // namespace gauntlet::tests
