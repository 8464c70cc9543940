// What every transport must do; tests run it on each rank of a group.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/random.h"
#include "core/ranks/channel.h"
#include "core/ranks/group.h"
#include "core/ranks/link.h"
#include "core/ranks/started.h"
#include "core/ranks/symmetric.h"

namespace gauntlet::ranks {

inline void expect_ok(const Expected<void>& done) {
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
}

template <class T>
std::vector<T> gathered(Group& group, const std::vector<T>& own) {
  std::vector<T> all(own.size() * static_cast<std::size_t>(group.size()));
  expect_ok(
      group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all))));
  return all;
}

/// Passes bytes of several sizes, none among them, from each root in turn.
inline void broadcasts_from_every_root(Group& group) {
  for (int root = 0; root < group.size(); ++root) {
    for (const std::size_t count : {0u, 1u, 7u, 1000u, 300001u}) {
      std::vector<std::int32_t> expected(count), own(count, -1);
      std::iota(expected.begin(), expected.end(), 1000 * root);
      if (group.rank() == root) own = expected;
      expect_ok(group.broadcast(std::as_writable_bytes(std::span(own)), root));
      EXPECT_TRUE(own == expected)
          << count << " numbers from rank " << root << " on rank " << group.rank();
    }
  }
}

/// Ranks are told apart by what they bring, and their order is kept.
inline void gathers_in_the_order_of_ranks(Group& group) {
  for (const std::size_t count : {0u, 1u, 5u, 100003u}) {
    const std::vector<std::int32_t> own(count, group.rank() + 1);
    const auto all = gathered(group, own);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], static_cast<std::int32_t>(i / count) + 1) << "number " << i;
    }
  }
}

/// Nobody leaves a barrier before the last one has come, whoever that is; ranks on one machine read
/// the same monotonic clock.
inline void barriers_hold_everyone_back(Group& group) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 12; ++round) {
    if (group.rank() == round % group.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const std::vector came = {Clock::now().time_since_epoch().count()};
    expect_ok(group.barrier());
    const std::vector left = {Clock::now().time_since_epoch().count()};
    const auto all_came = gathered(group, came);
    const auto all_left = gathered(group, left);
    EXPECT_GE(*std::ranges::min_element(all_left), *std::ranges::max_element(all_came));
  }
}

inline void helpers_agree(Group& group) {
  const double size = group.size();
  EXPECT_EQ(all_max(group, -1.0 - group.rank()).value(), -1.0);
  EXPECT_EQ(all_max(group, group.rank()).value(), size - 1);
  const bool last = group.rank() == group.size() - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(all_max(group, last ? nan : 1e300).value()));
  EXPECT_TRUE(all_true(group, true).value());
  EXPECT_FALSE(all_true(group, !last).value());
  EXPECT_EQ(agree(group, 41 + group.rank()).value(), 41);
  EXPECT_EQ(agree(group, "rank " + std::string(1, static_cast<char>('0' + group.rank())) +
                             std::string(static_cast<std::size_t>(group.rank()) * 9, '!'))
                .value(),
            "rank 0");
  EXPECT_EQ(agree(group, std::string(group.rank() == 0 ? "" : "not empty")).value(), "");
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * 7, 'x');
  };
  const auto texts = gather(group, text_of(group.rank())).value();
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) {
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

inline void refuses_wrong_use(Group& group) {
  std::vector<std::byte> bytes(3), room(7);
  EXPECT_THROW((void)group.broadcast(bytes, group.size()), Fault);
  EXPECT_THROW((void)group.broadcast(bytes, -1), Fault);
  EXPECT_THROW((void)group.all_gather(bytes, room), Fault);
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(group.size()) + 1, 0);
  EXPECT_THROW((void)group.all_gather({}, sizes, {}), Fault);
  EXPECT_THROW((void)group.send(group.rank(), bytes), Fault);
  EXPECT_THROW((void)group.receive(group.size(), bytes), Fault);
  expect_ok(group.barrier());
}

/// Numbers whose sum depends on the order in which they are added.
template <class T>
std::vector<T> terms_of(int rank, std::size_t count, std::uint64_t seed) {
  const Random random(seed * 1000 + static_cast<std::uint64_t>(rank));
  std::vector<T> terms(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double size = std::pow(10.0, 12.0 * random.unit(2 * i) - 6);
    terms[i] = static_cast<T>((random.unit(2 * i + 1) - 0.5) * size);
  }
  return terms;
}

/// As one rank alone would add them, in the order of ranks.
template <class T>
std::vector<T> summed(int ranks, std::size_t count, std::uint64_t seed) {
  std::vector<T> sum = terms_of<T>(0, count, seed);
  for (int rank = 1; rank < ranks; ++rank) {
    const auto terms = terms_of<T>(rank, count, seed);
    for (std::size_t i = 0; i < count; ++i) sum[i] += terms[i];
  }
  return sum;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

inline void sums_in_the_order_of_ranks(Group& group) {
  const auto self = static_cast<std::size_t>(group.rank());
  for (const std::size_t count : {0u, 1u, 5u, 2880u, 16384u, 16385u, 50001u}) {
    auto numbers = terms_of<float>(group.rank(), count, count);
    expect_ok(group.all_sum(numbers));
    const auto expected = summed<float>(group.size(), count, count);
    EXPECT_TRUE(same_bits<float>(numbers, expected)) << count << " floats";
    auto wide = terms_of<double>(group.rank(), count, count);
    expect_ok(group.all_sum(wide));
    EXPECT_TRUE(same_bits<double>(wide, summed<double>(group.size(), count, count)))
        << count << " doubles";

    // The last rank gets the most, the first nothing.
    std::vector<std::size_t> counts;
    const auto ranks = static_cast<std::size_t>(group.size());
    for (std::size_t r = 0; r < ranks; ++r) {
      counts.push_back(r + 1 < ranks ? count * r / ranks / ranks : 0);
    }
    counts.back() = count - std::reduce(counts.begin(), counts.end());
    std::vector<float> own(counts[self]);
    expect_ok(group.reduce_scatter(terms_of<float>(group.rank(), count, count), counts, own));
    const std::size_t first = std::reduce(counts.begin(), counts.begin() + group.rank());
    EXPECT_TRUE(same_bits<float>(own, std::span(expected).subspan(first, own.size())))
        << count << " floats scattered";
  }
}

/// What rank `from` sends rank `to` in a round: its size and its bytes.
inline std::vector<std::byte> part_of(int from, int to, int round) {
  Random random(static_cast<std::uint64_t>(from * 10007 + to * 101 + round));
  const std::uint64_t most = round % 3 == 0 ? 70000 : 40;
  std::vector<std::byte> part(random.next() % most);
  for (std::byte& byte : part) byte = static_cast<std::byte>(random.next());
  return part;
}

inline void exchanges_parts_of_any_size(Group& group) {
  for (int round = 0; round < 12; ++round) {
    std::vector<std::byte> sent, expected;
    std::vector<std::size_t> sent_sizes, received_sizes;
    for (int other = 0; other < group.size(); ++other) {
      const auto to = part_of(group.rank(), other, round);
      sent.insert(sent.end(), to.begin(), to.end());
      sent_sizes.push_back(to.size());
      const auto from = part_of(other, group.rank(), round);
      expected.insert(expected.end(), from.begin(), from.end());
      received_sizes.push_back(from.size());
    }
    std::vector<std::byte> received(expected.size());
    expect_ok(group.all_to_all({.sent = sent,
                                .sent_sizes = sent_sizes,
                                .received = received,
                                .received_sizes = received_sizes}));
    EXPECT_TRUE(received == expected) << "round " << round << " on rank " << group.rank();

    // What everyone sends rank 0 in this round, gathered.
    std::vector<std::byte> all;
    std::vector<std::size_t> sizes;
    for (int other = 0; other < group.size(); ++other) {
      const auto part = part_of(other, 0, round);
      all.insert(all.end(), part.begin(), part.end());
      sizes.push_back(part.size());
    }
    std::vector<std::byte> gathered(all.size());
    expect_ok(group.all_gather(part_of(group.rank(), 0, round), sizes, gathered));
    EXPECT_TRUE(gathered == all) << "round " << round << " on rank " << group.rank();
  }
}

/// Round and round, several messages under way; sizes on both sides of what MPI sends at once.
inline void passes_messages_round(Group& group) {
  if (group.size() == 1) return;
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  for (const std::size_t count : {0u, 1u, 1000u, 300001u}) {
    for (int message = 0; message < 3; ++message) {
      const std::vector<std::int32_t> own(count, group.rank() + message);
      expect_ok(group.send(next, std::as_bytes(std::span(own))));
    }
    for (int message = 0; message < 3; ++message) {
      std::vector<std::int32_t> received(count, -1);
      expect_ok(group.receive(before, std::as_writable_bytes(std::span(received))));
      EXPECT_EQ(received, std::vector<std::int32_t>(count, before + message));
    }
  }
}

/// Messages of a length that their receiver does not know, among others.
inline void receives_any_length(Group& group) {
  for (int from = 1; from < group.size(); ++from) {
    if (group.rank() == from) expect_ok(group.send(0, part_of(from, 0, 3)));
    if (group.rank() == 0) {
      const auto received = group.receive_any(from);
      ASSERT_TRUE(received) << received.error().message;
      EXPECT_TRUE(*received == part_of(from, 0, 3));
    }
  }
}

/// Each rank's number goes into its place at every other; flags count what has arrived.
inline void puts_reach(Group& group, Window& window) {
  const auto place = static_cast<std::size_t>(group.rank()) * sizeof(std::int64_t);
  for (std::int64_t turn = 1; turn <= 5; ++turn) {
    const std::int64_t own = 100 * turn + group.rank();
    const int flag = static_cast<int>(turn % 2);
    for (int to = 0; to < group.size(); ++to) {
      expect_ok(window.put(to, place, std::as_bytes(std::span(&own, 1)), flag));
    }
    // Both flags take turns.
    const std::int64_t raised = (turn + flag) / 2 * group.size();
    expect_ok(window.wait(flag, static_cast<std::uint64_t>(raised)));
    for (int from = 0; from < group.size(); ++from) {
      std::int64_t value = 0;
      std::memcpy(&value, window.bytes().data() + static_cast<std::size_t>(from) * 8, 8);
      EXPECT_EQ(value, 100 * turn + from);
    }
    expect_ok(group.barrier());
  }
  EXPECT_THROW((void)window.put(0, place + 1000000, {}, 0), Fault);
  EXPECT_THROW((void)window.put(0, 0, {}, 2), Fault);
}

/// A flag is not seen before the bytes that it stands for, however many those are.
inline void flags_never_overtake(Group& group, Window& window, std::size_t words) {
  const int next = (group.rank() + 1) % group.size();
  for (std::uint64_t turn = 1; turn <= 40; ++turn) {
    const std::vector<std::uint64_t> own(words, turn);
    expect_ok(window.put(next, 0, std::as_bytes(std::span(own)), 0));
    expect_ok(window.wait(0, turn));
    std::vector<std::uint64_t> seen(words);
    std::memcpy(seen.data(), window.bytes().data(), words * 8);
    EXPECT_EQ(seen, own) << "turn " << turn << " on rank " << group.rank();
    // The next turn writes into the same place.
    expect_ok(group.barrier());
  }
}

inline void puts_reach_their_windows(Group& group) {
  constexpr std::size_t kWords = 5000;
  const std::size_t bytes = static_cast<std::size_t>(group.size()) * sizeof(std::int64_t);
  for (const bool is_symmetric : {false, true}) {
    const auto open = [&](std::size_t size, int flags) {
      return is_symmetric ? open_symmetric_window(group, size, flags)
                          : group.open_window(size, flags);
    };
    auto window = open(bytes, 2);
    ASSERT_TRUE(window) << window.error().message;
    puts_reach(group, **window);
    auto large = open(kWords * 8, 1);
    ASSERT_TRUE(large) << large.error().message;
    flags_never_overtake(group, **large, kWords);
  }
}

/// Messages of a channel keep to their lanes and to their order, beside calls of the group.
inline void channels_carry_messages(Group& group) {
  auto channel = group.open_channel(2);
  ASSERT_TRUE(channel) << channel.error().message;
  EXPECT_EQ((*channel)->rank(), group.rank());
  EXPECT_EQ((*channel)->size(), group.size());
  for (int to = 0; to < group.size(); ++to) {
    if (to == group.rank()) continue;
    for (int number = 0; number < 6; ++number) {
      const auto part = part_of(group.rank(), to, number);
      (*channel)->send(to, number % 2, std::span(part).first(part.size() / 2),
                       std::span(part).subspan(part.size() / 2));
    }
  }
  expect_ok(group.barrier());
  for (int from = 0; from < group.size(); ++from) {
    if (from == group.rank()) continue;
    for (const int number : {1, 0, 3, 2, 5, 4}) {
      Arrival arrival;
      while ((arrival = (*channel)->poll(from, number % 2)).state == Arrival::State::nothing) {
        (*channel)->pause(Channel::Seconds(0), Channel::Seconds(0.01));
      }
      EXPECT_TRUE(arrival.message == part_of(from, group.rank(), number)) << number;
    }
  }
  expect_ok(group.barrier());
}

/// Several collectives under way at a time, waited for in another order, beside calls of the group.
inline void finishes_what_it_started(Group& group) {
  auto starter = make_starter(group);
  ASSERT_TRUE(starter) << starter.error().message;
  const std::vector<std::size_t> counts = {0, 1, 2880, 16385, 50001};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<float>> numbers;
    std::vector<std::vector<int>> gathered_numbers;
    std::vector<std::shared_ptr<Started>> sums, gathers;
    for (const std::size_t count : counts) {
      numbers.push_back(terms_of<float>(group.rank(), count, count));
      gathered_numbers.emplace_back(count * static_cast<std::size_t>(group.size()));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      auto sum = (*starter)->all_sum(numbers[i]);
      ASSERT_TRUE(sum) << sum.error().message;
      sums.push_back(*sum);
      // In place: a rank's own part is where it belongs.
      const auto all = std::span(gathered_numbers[i]);
      const auto own = all.subspan(static_cast<std::size_t>(group.rank()) * counts[i], counts[i]);
      std::ranges::fill(own, group.rank() + round);
      auto gather = (*starter)->all_gather(std::as_bytes(own), std::as_writable_bytes(all));
      ASSERT_TRUE(gather) << gather.error().message;
      gathers.push_back(*gather);
      if (i == 2) expect_ok(group.barrier());
    }
    for (std::size_t i = counts.size(); i-- > 0;) {
      expect_ok(sums[i]->wait());
      EXPECT_TRUE(same_bits<float>(numbers[i], summed<float>(group.size(), counts[i], counts[i])));
      while (!gathers[i]->test().value()) std::this_thread::yield();
      for (std::size_t k = 0; k < gathered_numbers[i].size(); ++k) {
        ASSERT_EQ(gathered_numbers[i][k], static_cast<int>(k / counts[i]) + round);
      }
    }
  }
  expect_ok(group.barrier());
}

/// Groups of chance, used in turn with the whole, and groups of those.
inline void splits_by_colour(Group& group) {
  for (int round = 0; round < 4; ++round) {
    const auto colour_of = [&](int rank) {
      Random random(static_cast<std::uint64_t>(round * 100 + rank));
      return static_cast<int>(random.next() % 3) - 1;
    };
    std::vector<int> members;
    for (int rank = 0; rank < group.size(); ++rank) {
      if (colour_of(rank) == colour_of(group.rank())) members.push_back(rank);
    }
    const auto part = group.split(colour_of(group.rank()));
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_EQ((*part)->size(), static_cast<int>(members.size()));
    EXPECT_EQ(members[static_cast<std::size_t>((*part)->rank())], group.rank());
    EXPECT_EQ(gathered(**part, std::vector<int>{group.rank()}), members);
    const auto alone = (*part)->split((*part)->rank());
    ASSERT_TRUE(alone);
    EXPECT_EQ((*alone)->size(), 1);
    sums_in_the_order_of_ranks(**part);
    std::vector<float> ones(7, 1);
    expect_ok(group.all_sum(ones));
    EXPECT_EQ(ones, std::vector<float>(7, static_cast<float>(group.size())));
    const auto again = (*part)->split(0);
    ASSERT_TRUE(again);
    EXPECT_EQ(gathered(**again, std::vector<int>{group.rank()}), members);
  }
}

/// Calls of chance in one order on all ranks.
inline void keeps_many_calls_apart(Group& group) {
  Random random(7);
  for (int call = 0; call < 300; ++call) {
    const auto count = static_cast<std::size_t>(random.next() % (call % 50 == 0 ? 40000 : 60));
    const int root = static_cast<int>(random.next() % static_cast<std::uint64_t>(group.size()));
    switch (random.next() % 4) {
      case 0: {
        std::vector<int> own(count, group.rank() == root ? call : -1);
        expect_ok(group.broadcast(std::as_writable_bytes(std::span(own)), root));
        EXPECT_EQ(own, std::vector<int>(count, call));
        break;
      }
      case 1: {
        std::vector<float> own(count, 1);
        expect_ok(group.all_sum(own));
        EXPECT_EQ(own, std::vector<float>(count, static_cast<float>(group.size())));
        break;
      }
      case 2: {
        const auto all = gathered(group, std::vector<int>(count, group.rank()));
        EXPECT_TRUE(std::ranges::is_sorted(all));
        break;
      }
      default:
        expect_ok(group.barrier());
    }
  }
}

inline void conforms(Group& group) {
  EXPECT_GE(group.rank(), 0);
  EXPECT_LT(group.rank(), group.size());
  broadcasts_from_every_root(group);
  gathers_in_the_order_of_ranks(group);
  barriers_hold_everyone_back(group);
  helpers_agree(group);
  sums_in_the_order_of_ranks(group);
  exchanges_parts_of_any_size(group);
  passes_messages_round(group);
  receives_any_length(group);
  puts_reach_their_windows(group);
  channels_carry_messages(group);
  finishes_what_it_started(group);
  splits_by_colour(group);
  keeps_many_calls_apart(group);
  refuses_wrong_use(group);
}

/// Over links that take time a group is a group, and bytes are seen when they can be.
inline void conforms_over_links(Group& group) {
  auto quick =
      over_links(group, {.between = {.latency_s = 20e-6, .bytes_per_s = 4e9}, .ranks_per_host = 2});
  ASSERT_TRUE(quick) << quick.error().message;
  conforms(*quick->group);
  const LinkTraffic traffic = quick->links->traffic();
  EXPECT_GE(traffic.messages, group.size() > 1 ? 100u : 0u);
  EXPECT_LE(traffic.exposed_s, traffic.wire_s);
  // Hosts of two: a last rank may be alone on its own.
  const bool has_neighbour = (group.rank() ^ 1) < group.size();
  EXPECT_EQ(traffic.messages_between > 0, group.size() > 2);
  EXPECT_EQ(traffic.messages_between < traffic.messages, has_neighbour && group.size() > 1);

  auto slow = over_links(group, {.between = {.latency_s = 0.03, .bytes_per_s = 1e6}});
  ASSERT_TRUE(slow) << slow.error().message;
  if (group.size() == 1) return;
  // Two messages of 10 kB through one port: 10 ms each, and the latency once.
  const std::vector<std::byte> bytes(10000);
  std::vector<std::byte> room(bytes.size());
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto nobody_sent = Clock::now();  // another rank may leave the barrier earlier
  expect_ok(group.barrier());
  const auto begin = Clock::now();
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  expect_ok(slow->group->send(next, bytes));
  expect_ok(slow->group->send(next, bytes));
  EXPECT_LT(since(begin), 0.04) << "who sends does not wait: one message alone takes as long";
  expect_ok(slow->group->receive(before, room));
  expect_ok(slow->group->receive(before, room));
  EXPECT_GE(since(nobody_sent), 0.0499);
  const LinkTraffic after = slow->links->traffic();
  EXPECT_EQ(after.messages, 2u);
  EXPECT_GE(after.bytes, 20000u);
  EXPECT_GE(after.wire_s, 0.0499);
  EXPECT_GT(after.exposed_s, 0.8 * after.wire_s) << "nothing else was done meanwhile";
  expect_ok(group.barrier());
}

}  // namespace gauntlet::ranks
