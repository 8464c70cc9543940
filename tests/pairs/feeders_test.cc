// Do the threads that feed a GPU send every row once, from slots that are free, and from where they
// were put? A link that copies as late as it may stands in for the GPU.
#include "catalog/ch03/gpu_numa_affinity/feeders.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>

#include "core/os/threads.h"
#include "core/random.h"

namespace gauntlet::tests {
namespace {

using namespace ch03::gpu_numa_affinity;

class LateLink final : public Link {
 public:
  explicit LateLink(std::int64_t slots) : later_(static_cast<std::size_t>(slots)) {}
  void begin_thread() override { ++threads_; }
  void wait(std::int64_t slot) override {
    std::function<void()>& copy = later_[static_cast<std::size_t>(slot)];
    if (copy) copy();
    copy = {};
  }
  void send(std::int64_t slot, void* to, const void* from, std::size_t bytes) override {
    if (fails_) throw std::runtime_error("the link is down");
    if (later_[static_cast<std::size_t>(slot)]) ++sent_over_;
    later_[static_cast<std::size_t>(slot)] = [to, from, bytes] { std::memcpy(to, from, bytes); };
  }
  /// As the stream does before outputs are looked at.
  void finish() {
    for (std::size_t slot = 0; slot < later_.size(); ++slot) wait(static_cast<std::int64_t>(slot));
  }
  int threads() const { return threads_; }
  int sent_over() const { return sent_over_; }
  void fail_from_now_on() { fails_ = true; }

 private:
  std::vector<std::function<void()>> later_;  // by slot; a slot belongs to one feeder
  std::atomic<int> threads_ = 0, sent_over_ = 0;
  bool fails_ = false;
};

struct Fed {
  Fed(std::int64_t rows, std::int64_t slot_rows, std::int64_t feeders)
      : table(kTableRows * kRowWords),
        order(static_cast<std::size_t>(rows)),
        out(static_cast<std::size_t>(rows * kRowWords)),
        slots(static_cast<std::size_t>(2 * feeders * slot_rows * kRowWords)),
        link(std::make_shared<LateLink>(2 * feeders)),
        workers({.table = table.data(),
                 .order = order.data(),
                 .out = out.data(),
                 .rows = rows,
                 .slot_rows = slot_rows,
                 .feeders = feeders},
                {.cpus = {allowed_cpus().back()}, .slots = slots.data(), .link = link}) {}

  /// New inputs, as those of the next sample.
  void renew(std::uint64_t seed) {
    const Random random(seed);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = random.bits(i);
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<std::int32_t>(random.below(kTableRows, table.size() + i));
    }
  }
  std::int64_t wrong_rows() const {
    std::int64_t wrong = 0;
    for (std::size_t row = 0; row < order.size(); ++row) {
      const auto* wanted = table.data() + order[row] * kRowWords;
      wrong += !std::equal(wanted, wanted + kRowWords,
                           out.begin() + static_cast<std::ptrdiff_t>(row) * kRowWords);
    }
    return wrong;
  }

  std::vector<std::uint64_t> table;
  std::vector<std::int32_t> order;
  std::vector<std::uint64_t> out, slots;
  std::shared_ptr<LateLink> link;
  Feeders workers;
};

TEST(Feeders, send_every_row_whatever_the_sizes_are) {
  struct Size {
    std::int64_t rows, slot_rows, feeders;
  };
  for (const Size size : {Size{1, 1, 1}, Size{64, 4, 3}, Size{65, 4, 3}, Size{7, 16, 4},
                          Size{1000, 7, 8}, Size{300, 300, 2}}) {
    SCOPED_TRACE(testing::Message()
                 << size.rows << " rows by " << size.slot_rows << " and " << size.feeders);
    Fed fed(size.rows, size.slot_rows, size.feeders);
    EXPECT_EQ(fed.link->threads(), size.feeders);
    for (std::uint64_t run = 0; run < 3; ++run) {
      fed.renew(run);
      fed.workers.run();
      fed.link->finish();
      EXPECT_EQ(fed.wrong_rows(), 0) << "in run " << run;
    }
    EXPECT_EQ(fed.link->sent_over(), 0);
  }
}

TEST(Feeders, run_where_they_were_put_and_leave_their_caller_where_it_is) {
  cpu_set_t before, after;
  CPU_ZERO(&before);
  CPU_ZERO(&after);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  Fed fed(64, 4, 3);
  fed.renew(1);
  fed.workers.run();
  fed.workers.run();
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(fed.workers.take_cpus(), std::vector<int>(6, allowed_cpus().back()));
  EXPECT_TRUE(fed.workers.take_cpus().empty()) << "only runs since it was last asked count";
}

TEST(Feeders, hand_a_failure_to_who_runs_them) {
  Fed fed(64, 4, 3);
  fed.link->fail_from_now_on();
  EXPECT_THROW(fed.workers.run(), std::runtime_error);
}

}  // namespace
}  // namespace gauntlet::tests
