// Responses that clients may come back to, within a bound: the oldest go first. Nothing of it
// outlives the process.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {

struct KeptResponse {
  std::string body;                   // the object, as JSON
  std::vector<ChatMessage> messages;  // the conversation with its output, without instructions
};

struct ResponseStoreLimits {
  std::size_t max_responses = 1024;
  std::size_t max_bytes = std::size_t{64} << 20;  // of bodies and messages
};

/// From any thread.
class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreLimits limits = {}) : limits_(limits) {}

  /// One that is being made: it can be looked at, and cancelled.
  void begin(const std::string& id, std::string body, std::function<void()> cancel);
  /// It will not be finished, or is not to be kept.
  void drop(const std::string& id);
  /// It is done. One that is larger than all that may be kept is not.
  void keep(const std::string& id, KeptResponse response);

  std::optional<KeptResponse> find(const std::string& id) const;
  /// The object of one that is kept or being made.
  std::optional<std::string> body(const std::string& id) const;
  /// False for one that is not kept.
  bool erase(const std::string& id);
  /// False for one that is not being made.
  bool cancel(const std::string& id);

  std::size_t num_kept() const;
  std::size_t bytes() const;
  /// One sentence where its counts disagree with what it holds.
  std::string check_integrity() const;

 private:
  struct Entry {
    std::string id;
    KeptResponse response;
    std::size_t bytes = 0;
  };
  struct Running {
    std::string body;
    std::function<void()> cancel;
  };
  using Entries = std::list<Entry>;

  void remove(Entries::iterator entry);

  const ResponseStoreLimits limits_;
  mutable std::mutex mutex_;  // of all below
  std::unordered_map<std::string, Running> running_;
  Entries kept_;  // the newest first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace gauntlet::server::inline openai
