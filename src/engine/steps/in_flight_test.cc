// Two steps in flight over a device of its own thread, guesses of which the caller refuses what it
// likes, late tokens and prefixes taken up: is every sampled token what its own history gives?
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/random.h"
#include "engine/kv/prefix_cache.h"
#include "engine/steps/fake_runner.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline steps {
namespace {

constexpr std::int32_t kVocab = 61;
constexpr KvPoolConfig kPool{.page_tokens = 4, .window = 8, .full_pages = 96, .sliding_pages = 96};
using Tokens = std::vector<std::int32_t>;

/// A token depends on all before it: whatever else was seen gives another.
std::int32_t after(const Tokens& history) {
  std::uint64_t hash = 1469598103934665603u;
  for (const std::int32_t id : history) {
    hash = (hash ^ static_cast<std::uint64_t>(id)) * 1099511628211u;
  }
  return static_cast<std::int32_t>((hash >> 33) % kVocab);
}

model::ModelConfig config_of_device() {
  model::ModelConfig config;
  config.vocab = kVocab;
  config.hidden = 2;
  config.max_positions = 300;
  config.sliding_window = 8;
  return config;
}

/// Computes on a thread of its own, as a device does: start() returns at once.
class ThreadedRunner final : public Runner {
 public:
  ThreadedRunner()
      : fake_(config_of_device(), {.tokens = 64, .items = 8, .page_tokens = 4, .export_layers = 2},
              1),
        device_([this] { work(); }) {
    fake_.next = after;
  }
  ~ThreadedRunner() override {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    device_.join();
  }

  const model::ModelConfig& config() const override { return fake_.config(); }
  const Plan& plan() const override { return fake_.plan(); }
  StepLimits limits() const override { return fake_.limits(); }
  int most_in_flight() const override { return 2; }
  void watch(LayerProbe*) override {}
  StepTraffic last_traffic() const override { return {}; }
  std::int64_t weight_bytes() const override { return 0; }
  std::span<const float> last_residuals() const override { return last_.residuals; }

  Ticket start(StepData step) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(step));
    most_in_flight_seen = std::max(most_in_flight_seen, static_cast<int>(++started_ - finished_));
    changed_.notify_all();
    return started_;
  }
  std::vector<RowResult> finish(Ticket ticket) override {
    std::unique_lock lock(mutex_);
    check(ticket == finished_ + 1, "steps finish in order");
    changed_.wait(lock, [&] { return !done_.empty(); });
    last_ = std::move(done_.front());
    done_.pop_front();
    ++finished_;
    return std::move(last_.rows);
  }

  int most_in_flight_seen = 0;

 private:
  struct Done {
    std::vector<RowResult> rows;
    std::vector<float> residuals;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
      if (stops_) return;
      StepData step = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Done made;
      made.rows = fake_.finish(fake_.start(std::move(step)));
      const auto residuals = fake_.last_residuals();
      made.residuals.assign(residuals.begin(), residuals.end());
      lock.lock();
      done_.push_back(std::move(made));
      changed_.notify_all();
    }
  }

  FakeRunner fake_;  // the device thread's alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StepData> waiting_;
  std::deque<Done> done_;
  Done last_;
  bool stops_ = false;
  Ticket started_ = 0;
  Ticket finished_ = 0;
  std::thread device_;
};

/// A sequence as its caller knows it: what it has, and what the steps under way will say.
struct Stream {
  SequenceId sequence = 0;
  Tokens tokens;               // known; those beyond the pool's length are to be computed
  std::int64_t submitted = 0;  // positions that were committed or are under way
  int under_way = 0;
  bool draws_late = false;  // its next token is sampled by the step submitted last
  std::size_t item = 0;     // there
};

class InFlight : public testing::Test {
 protected:
  InFlight() {
    auto made = std::make_unique<ThreadedRunner>();
    runner_ = made.get();
    executor_ = std::make_unique<PooledExecutor>(kPool, std::move(made));
    cache_ = std::make_unique<PrefixCache>(executor_->kv(), PrefixCaching::on);
  }
  ~InFlight() override { cache_.reset(); }

  Stream open(const Tokens& prompt) {
    const SequenceId sequence = cache_->open(prompt);
    return {.sequence = sequence, .tokens = prompt, .submitted = executor_->kv().length(sequence)};
  }
  void reserve(SequenceId sequence, std::int64_t count) {
    KvPool& pool = executor_->kv();
    while (!pool.reserve(sequence, count)) {
      const std::int64_t freed =
          cache_->evict(KvGroup::full, 4) + cache_->evict(KvGroup::sliding, 4);
      check(freed > 0, "the test ran out of pages");
    }
    cache_->before_step(sequence, count);
  }
  /// Computes a prompt, and appends what it samples.
  void prefill(Stream& stream) {
    const Tokens rest(stream.tokens.begin() + stream.submitted, stream.tokens.end());
    reserve(stream.sequence, std::ssize(rest));
    const auto result =
        executor_->collect(executor_->submit({{.sequence = stream.sequence, .tokens = rest}}))[0];
    cache_->after_step(stream.sequence, stream.tokens);
    EXPECT_EQ(result.token, after(stream.tokens));
    stream.submitted = std::ssize(stream.tokens);
    stream.tokens.push_back(result.token);
  }
  void expect_whole() { ASSERT_EQ(cache_->check_integrity(), ""); }

  ThreadedRunner* runner_ = nullptr;
  std::unique_ptr<PooledExecutor> executor_;
  std::unique_ptr<PrefixCache> cache_;
};

std::vector<std::uint32_t> only(std::int32_t id) {
  std::vector<std::uint32_t> mask((kVocab + 31) / 32, 0);
  mask[static_cast<std::size_t>(id / 32)] |= 1u << (id % 32);
  return mask;
}

TEST_F(InFlight, what_the_caller_refuses_is_neither_committed_nor_hashed_nor_seen) {
  Stream a = open({1, 2, 3, 4, 5, 6});
  Stream b = open({9, 8, 7});
  prefill(a);  // seven tokens known, six computed
  prefill(b);
  // The first step: a with three guesses, of which one is right; b decodes.
  const std::int32_t right = after(a.tokens);
  const std::int32_t wrong = (right + 1) % kVocab;
  Tokens with_right = a.tokens;
  with_right.push_back(right);
  BatchItem verify{.sequence = a.sequence,
                   .tokens = {a.tokens.back(), right, wrong, wrong},
                   .num_drafts = 3,
                   .role = ItemRole::decode,
                   .exports = true};
  verify.rows = {{.token = 0, .sampling = {.step = 7}},
                 {.token = 1, .sampling = {.step = 8}, .wants_normed = true},
                 {.token = 2, .sampling = {.step = 9}, .allowed = only(5)}};
  reserve(a.sequence, 4);
  reserve(b.sequence, 1);
  const Ticket first =
      executor_->submit({verify, {.sequence = b.sequence, .tokens = {b.tokens.back()}}});
  // The second is under way before the first is collected: b goes on with what that samples.
  reserve(b.sequence, 1);
  const Ticket second = executor_->submit({{.sequence = b.sequence, .tokens = {late_token(1)}}});
  EXPECT_EQ(runner_->most_in_flight_seen, 2);

  auto results = executor_->collect(first);
  ASSERT_EQ(results[0].rows.size(), 3u);
  EXPECT_EQ(results[0].rows[0].token, right);
  EXPECT_EQ(results[0].rows[1].token, after(with_right));
  EXPECT_NE(results[0].rows[1].token, wrong) << "the second guess is refused";
  EXPECT_EQ(results[0].rows[2].token, 5) << "its mask is its own";
  EXPECT_EQ(results[0].rows[1].normed, (std::vector<float>(2, static_cast<float>(right))));
  EXPECT_EQ(results[0].residuals.size(), 2u * 4 * 2) << "two layers, four tokens";
  KvPool& pool = executor_->kv();
  EXPECT_EQ(pool.length(a.sequence), 7);
  pool.commit(a.sequence, 1);
  a.tokens.insert(a.tokens.end(), {right, results[0].rows[1].token});
  a.submitted = 8;
  const std::int64_t pages = cache_->num_pages();
  cache_->after_step(a.sequence, a.tokens);
  EXPECT_EQ(cache_->num_pages(), pages + 1) << "the page of eight positions, and none of guesses";
  b.tokens.push_back(results[1].token);
  cache_->after_step(b.sequence, b.tokens);
  EXPECT_EQ(results[1].token, after({b.tokens.begin(), b.tokens.end() - 1}));
  results = executor_->collect(second);
  EXPECT_EQ(results[0].token, after(b.tokens));
  b.tokens.push_back(results[0].token);
  cache_->after_step(b.sequence, b.tokens);
  expect_whole();

  // Whoever has the refused tokens in its prompt takes up none of their pages.
  Tokens refused = with_right;
  refused.insert(refused.end(), {wrong, wrong, 1, 1});
  Stream c = open(refused);
  EXPECT_EQ(c.submitted, 8);
  prefill(c);
  // And the next token lies where the refused one lay.
  reserve(a.sequence, 1);
  EXPECT_EQ(
      executor_
          ->collect(executor_->submit({{.sequence = a.sequence, .tokens = {a.tokens.back()}}}))[0]
          .token,
      after(a.tokens));
  cache_->after_step(a.sequence, a.tokens);
  EXPECT_EQ(pool.length(a.sequence), 9);
  for (const Stream& stream : {a, b, c}) cache_->close(stream.sequence);
  expect_whole();
}

/// What one item of a step under way stands for.
struct Sent {
  std::size_t stream = 0;
  Tokens guesses;
  bool is_late = false;
  bool samples = true;  // not a chunk of a prompt that goes on
};

TEST_F(InFlight, every_token_is_its_own_history_s_through_random_steps) {
  const Random random(20261118);
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(bound, drawn++); };
  std::vector<Stream> streams;
  std::deque<std::pair<Ticket, std::vector<Sent>>> flights;
  std::int64_t accepted = 0, refused = 0, late = 0, reused = 0;

  const auto collect = [&] {
    const auto [ticket, sent] = std::move(flights.front());
    flights.pop_front();
    const auto results = executor_->collect(ticket);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      Stream& stream = streams[sent[i].stream];
      --stream.under_way;
      if (!sent[i].samples) {
        cache_->after_step(stream.sequence, stream.tokens);
        continue;
      }
      const Tokens& guesses = sent[i].guesses;
      for (std::size_t g = 0;; ++g) {
        const std::int32_t drew = g < guesses.size() ? results[i].rows[g].token : results[i].token;
        ASSERT_EQ(drew, after(stream.tokens)) << "guess " << g << " of " << guesses.size();
        stream.tokens.push_back(drew);
        if (g == guesses.size()) break;
        if (guesses[g] != drew) {
          refused += static_cast<std::int64_t>(guesses.size() - g);
          break;
        }
        executor_->kv().commit(stream.sequence, 1);
        ++accepted;
      }
      if (!guesses.empty()) stream.submitted = executor_->kv().length(stream.sequence);
      cache_->after_step(stream.sequence, stream.tokens);
      ASSERT_EQ(std::ssize(stream.tokens) - 1, executor_->kv().length(stream.sequence));
    }
    expect_whole();
  };

  const auto fill = [&](Stream& stream, std::size_t index, BatchItem& item, Sent& sent) {
    item.sequence = stream.sequence;
    sent.stream = index;
    const std::int64_t left = std::ssize(stream.tokens) - stream.submitted;
    if (stream.under_way > 0) {  // the step before samples what this one begins with
      item.tokens = {late_token(stream.item)};
      sent.is_late = true;
      ++late;
      return;
    }
    if (left > 1) {
      const auto count = static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(left)));
      item.tokens.assign(stream.tokens.begin() + stream.submitted,
                         stream.tokens.begin() + stream.submitted + count);
      sent.samples = count == left;
      item.want = sent.samples ? Want::token : Want::nothing;
      return;
    }
    item.tokens = {stream.tokens.back()};
    Tokens seen = stream.tokens;
    for (std::uint64_t g = below(4); g > 0; --g) {  // mostly right
      const std::int32_t guess =
          below(4) > 0 ? after(seen) : static_cast<std::int32_t>(below(kVocab));
      item.rows.push_back({.token = std::ssize(item.tokens) - 1});
      item.tokens.push_back(guess);
      sent.guesses.push_back(guess);
      seen.push_back(guess);
    }
    item.num_drafts = std::ssize(sent.guesses);
    item.role = ItemRole::decode;
  };

  for (int round = 0; round < 1500 && !HasFatalFailure(); ++round) {
    while (streams.size() < 5) {
      // Begins as another does, guesses that were refused included, or not.
      Tokens prompt;
      if (!streams.empty() && below(3) > 0) {
        const Tokens& other = streams[below(streams.size())].tokens;
        prompt.assign(other.begin(),
                      other.begin() + 1 + static_cast<std::ptrdiff_t>(below(other.size())));
      }
      for (std::uint64_t n = 1 + below(12); n > 0; --n) {
        prompt.push_back(static_cast<std::int32_t>(below(kVocab)));
      }
      streams.push_back(open(prompt));
      reused += streams.back().submitted;
    }
    if (flights.size() == 2) collect();
    std::vector<BatchItem> items;
    std::vector<Sent> sent;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      Stream& stream = streams[s];
      const bool was_last = stream.under_way == 1 && stream.draws_late;
      if (stream.under_way > 0 && !was_last) continue;
      if (below(4) == 0) {
        stream.draws_late = false;
        continue;
      }
      BatchItem item;
      Sent one;
      fill(stream, s, item, one);
      reserve(stream.sequence, std::ssize(item.tokens));
      stream.submitted += std::ssize(item.tokens) - item.num_drafts;
      stream.draws_late = one.samples && one.guesses.empty();
      stream.item = items.size();
      items.push_back(std::move(item));
      sent.push_back(std::move(one));
    }
    for (Stream& stream : streams) {
      // Only the step submitted last can be referred to.
      if (stream.under_way > 0 && items.empty()) stream.draws_late = false;
    }
    if (!items.empty()) {
      for (const Sent& one : sent) ++streams[one.stream].under_way;
      const Ticket ticket = executor_->submit(std::move(items));
      flights.emplace_back(ticket, std::move(sent));
    }
    while (flights.size() > below(3)) collect();
    if (flights.empty() && below(6) == 0) {
      const auto gone = static_cast<std::ptrdiff_t>(below(streams.size()));
      cache_->close(streams[static_cast<std::size_t>(gone)].sequence);
      streams.erase(streams.begin() + gone);
    }
    for (std::size_t s = 0; flights.empty() && s < streams.size(); ++s) {
      if (std::ssize(streams[s].tokens) < 60) continue;
      cache_->close(streams[s].sequence);
      streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(s--));
    }
  }
  while (!flights.empty()) collect();
  for (const Stream& stream : streams) cache_->close(stream.sequence);
  expect_whole();
  EXPECT_EQ(runner_->most_in_flight_seen, 2);
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 200);
  EXPECT_GT(late, 200);
  EXPECT_GT(reused, 200);
}

}  // namespace
}  // namespace gauntlet::engine::inline steps
