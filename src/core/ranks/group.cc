#include "core/ranks/group.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/ranks/message_group.h"

namespace gauntlet::ranks {
namespace {

class NoChannel final : public Channel {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string transport() const override { return "alone"; }
  void send(int, int, std::span<const std::byte>, std::span<const std::byte>) override {
    fail("a rank alone has nobody to send to");
  }
  Arrival poll(int, int) override { fail("a rank alone has nobody to hear from"); }
  bool flushed(int) override { return true; }
  void pause(Seconds, Seconds left) override { std::this_thread::sleep_for(left); }
  void break_off(const std::string& reason) override { broken_ = reason; }
  std::optional<std::string> broken() override { return broken_; }

 private:
  std::optional<std::string> broken_;
};

}  // namespace

std::unique_ptr<Group> alone() {
  return make_message_group(std::make_unique<NoChannel>(), {}, GroupEnd::silent);
}

Expected<double> all_max(Group& group, double own) {
  std::vector<double> all(static_cast<std::size_t>(group.size()));
  const auto gathered =
      group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!gathered) return gathered.error();
  double most = all.front();
  for (const double value : all) {
    if (std::isnan(value) || value > most) most = value;
    if (std::isnan(most)) break;
  }
  return most;
}

Expected<bool> all_true(Group& group, bool own) {
  const auto falsest = all_max(group, own ? 0 : 1);
  if (!falsest) return falsest.error();
  return *falsest == 0;
}

Expected<std::string> agree(Group& group, std::string own) {
  const auto length = agree(group, static_cast<std::uint64_t>(own.size()));
  if (!length) return length.error();
  own.resize(*length);
  const auto sent = group.broadcast(std::as_writable_bytes(std::span(own)), 0);
  if (!sent) return sent.error();
  return own;
}

Expected<std::vector<std::string>> gather(Group& group, const std::string& own) {
  const auto size = static_cast<std::size_t>(group.size());
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(size);
  const auto told = group.all_gather(std::as_bytes(std::span(&length, 1)),
                                     std::as_writable_bytes(std::span(lengths)));
  if (!told) return told.error();
  const std::uint64_t longest = *std::ranges::max_element(lengths);
  std::string padded = own, all(size * longest, ' ');
  padded.resize(longest, ' ');
  const auto gathered =
      group.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  if (!gathered) return gathered.error();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < size; ++rank) {
    texts.push_back(all.substr(rank * longest, lengths[rank]));
  }
  return texts;
}

}  // namespace gauntlet::ranks
