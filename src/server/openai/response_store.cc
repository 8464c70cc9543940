#include "server/openai/response_store.h"

#include <utility>

namespace gauntlet::server::inline openai {
namespace {

/// What an entry costs beside its texts.
constexpr std::size_t kEntryBytes = 512;

std::size_t bytes_of(const KeptResponse& response) {
  std::size_t bytes = kEntryBytes + response.body.size();
  for (const ChatMessage& message : response.messages) {
    bytes += sizeof(ChatMessage) + message.content.size() + message.name.size() +
             message.reasoning.size() + message.tool_call_id.size();
    for (const ToolCall& call : message.tool_calls) {
      bytes += sizeof(ToolCall) + call.id.size() + call.name.size() + call.arguments.size();
    }
  }
  return bytes;
}

}  // namespace

void ResponseStore::begin(const std::string& id, std::string body, std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  running_[id] = {.body = std::move(body), .cancel = std::move(cancel)};
}

void ResponseStore::drop(const std::string& id) {
  const std::lock_guard lock(mutex_);
  running_.erase(id);
}

void ResponseStore::keep(const std::string& id, KeptResponse response) {
  const std::size_t bytes = bytes_of(response);
  const std::lock_guard lock(mutex_);
  running_.erase(id);
  if (bytes > limits_.max_bytes || limits_.max_responses == 0 || by_id_.contains(id)) return;
  while (kept_.size() == limits_.max_responses || bytes_ + bytes > limits_.max_bytes) {
    remove(std::prev(kept_.end()));
  }
  kept_.push_front({.id = id, .response = std::move(response), .bytes = bytes});
  by_id_[id] = kept_.begin();
  bytes_ += bytes;
}

void ResponseStore::remove(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_id_.erase(entry->id);
  kept_.erase(entry);
}

std::optional<KeptResponse> ResponseStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->response;
}

std::optional<std::string> ResponseStore::body(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    return found->second->response.body;
  }
  const auto running = running_.find(id);
  if (running == running_.end()) return std::nullopt;
  return running->second.body;
}

bool ResponseStore::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  remove(found->second);
  return true;
}

bool ResponseStore::cancel(const std::string& id) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    const auto running = running_.find(id);
    if (running == running_.end()) return false;
    cancel = running->second.cancel;
  }
  cancel();
  return true;
}

std::size_t ResponseStore::num_kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

std::size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string ResponseStore::check_integrity() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Entry& entry : kept_) {
    bytes += bytes_of(entry.response);
    if (!by_id_.contains(entry.id)) return "a response that is kept cannot be found";
  }
  if (bytes != bytes_) return "the bytes of what is kept were counted wrong";
  if (by_id_.size() != kept_.size()) return "a response that is found is not kept";
  if (bytes_ > limits_.max_bytes || kept_.size() > limits_.max_responses) {
    return "more is kept than may be";
  }
  return "";
}

}  // namespace gauntlet::server::inline openai
