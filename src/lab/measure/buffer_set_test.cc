#include "lab/measure/buffer_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline measure {
namespace {

using Renewed = InputVersion::Renewed;
using Bytes = std::vector<unsigned char>;
using ErasedParams = std::shared_ptr<const void>;

Bytes content(const BufferSet& set, std::size_t buffer) {
  const BufferSet::Buffer& b = set.buffers()[buffer];
  return {b.data, b.data + b.bytes};
}

class BufferSetTest : public testing::Test {
 protected:
  BufferSetTest()
      : target_(twice_target()), knobs_(Knobs::defaults(target_.pair.knobs, BackendKind::cuda)) {}

  void bind(const std::function<void(Binder&)>& declare) {
    target_.pair.bind = [declare](Binder& b) -> ErasedParams {
      declare(b);
      return std::make_shared<const int>(0);
    };
  }
  static const TwiceParams& params(const BufferSet& set) {
    return *static_cast<const TwiceParams*>(set.params());
  }

  Target target_;
  Knobs knobs_;
  FakeBackend backend_;
};

TEST_F(BufferSetTest, takes_its_sizes_from_the_knobs_and_gives_memory_back) {
  {
    const BufferSet set(target_, knobs_, backend_);
    EXPECT_EQ(params(set).n, 500);
    EXPECT_EQ(set.bytes(), 2 * 500 * 4);
    EXPECT_EQ(backend_.live_buffers(), 2u);
  }
  EXPECT_EQ(backend_.live_buffers(), 0u);
}

TEST_F(BufferSetTest, surrounds_each_buffer_with_guards) {
  const BufferSet set(target_, knobs_, backend_);
  for (const BufferSet::Buffer& buffer : set.buffers()) {
    EXPECT_EQ(buffer.data, buffer.base + BufferSet::kGuardBytes);
    const auto is_guard = [](unsigned char b) { return b == BufferSet::kGuardByte; };
    EXPECT_TRUE(std::all_of(buffer.base, buffer.data, is_guard));
    const unsigned char* end = buffer.data + buffer.bytes;
    EXPECT_TRUE(std::all_of(end, end + BufferSet::kGuardBytes, is_guard));
  }
}

TEST_F(BufferSetTest, makes_inputs_from_the_seed_alone) {
  BufferSet set(target_, knobs_, backend_), other(target_, knobs_, backend_);
  set.renew(7);
  other.renew(3);
  EXPECT_NE(content(set, 0), content(other, 0));
  other.renew(7);
  EXPECT_EQ(content(set, 0), content(other, 0));
}

TEST_F(BufferSetTest, renews_in_place_so_that_sides_keep_their_addresses) {
  BufferSet set(target_, knobs_, backend_);
  const float* before = params(set).in;
  set.renew(1);
  set.renew(2);
  EXPECT_EQ(params(set).in, before);
}

TEST_F(BufferSetTest, gives_each_input_values_of_its_own) {
  bind([](Binder& b) {
    b.input<float>("a", 100, Fill::uniform());
    b.input<float>("b", 100, Fill::uniform());
  });
  BufferSet set(target_, knobs_, backend_);
  set.renew(1);
  EXPECT_NE(content(set, 0), content(set, 1));
}

TEST_F(BufferSetTest, zeroes_an_input_that_is_constant) {
  bind([](Binder& b) { b.input<std::int32_t>("zero", 64, Fill::constant_zero()); });
  BufferSet set(target_, knobs_, backend_);
  std::fill_n(set.buffers()[0].data, set.buffers()[0].bytes, std::uint8_t{9});
  set.renew(1);
  EXPECT_EQ(content(set, 0), Bytes(256, 0));
  EXPECT_FALSE(set.mixes()) << "zeros are the same in every version";
}

TEST_F(BufferSetTest, poisons_outputs_and_nothing_else) {
  BufferSet set(target_, knobs_, backend_);
  set.renew(1);
  const Bytes before = content(set, 0);
  set.poison_outputs();
  EXPECT_EQ(content(set, 0), before);
  for (std::int64_t i = 0; i < params(set).n; ++i) EXPECT_TRUE(std::isnan(params(set).out[i]));
}

TEST_F(BufferSetTest, moves_the_pages_of_managed_inputs_where_the_pair_says_so) {
  bind([](Binder& b) {
    b.input<float>("in", 10, Fill::uniform(), Memory::managed);
    b.input<float>("plain", 10, Fill::uniform());
    b.output<float>("out", 10, Memory::managed);
  });
  BufferSet set(target_, knobs_, backend_);
  set.place_pages();
  EXPECT_TRUE(backend_.moved_to_host.empty());
  target_.pair.managed_pages = ManagedPages::on_host;
  set.place_pages();
  EXPECT_EQ(backend_.moved_to_host, std::vector<const void*>{set.buffers()[0].data});
}

TEST_F(BufferSetTest, faults_an_empty_buffer) {
  bind([](Binder& b) { b.output<float>("none", 0); });
  EXPECT_THROW(BufferSet(target_, knobs_, backend_), Fault);
}

/// Inputs of every rule and of sizes that end within a block.
class RenewedInputs : public BufferSetTest {
 protected:
  RenewedInputs() {
    bind([](Binder& b) {
      b.input<float>("floats", 5001, Fill::uniform());
      b.output<float>("out", 3000);
      b.input<std::uint8_t>("bytes", 12345, Fill::bytes());
      b.input<std::int32_t>(
          "together", 3000,
          Fill::ranges([](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
            for (std::int64_t i = begin; i < end; ++i) {
              static_cast<std::int32_t*>(out)[i - begin] =
                  static_cast<std::int32_t>(random.below(1 << 30, i));
            }
          }));
      b.input<std::int32_t>(
          "permutation", 2000,
          Fill::custom<std::int32_t>([](std::span<std::int32_t> all, const Random& random) {
            for (std::size_t i = 0; i < all.size(); ++i) {
              all[i] = static_cast<std::int32_t>(random.permuted(all.size(), i));
            }
          }));
      b.input<std::uint64_t>("wide", 1030, Fill::bytes());
    });
    set_ = std::make_unique<BufferSet>(target_, knobs_, backend_);
  }
  static constexpr std::size_t kFloats = 0, kBytes = 2, kTogether = 3, kPermutation = 4, kWide = 5;

  std::vector<Bytes> all_inputs() const {
    std::vector<Bytes> all(set_->buffers().size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (set_->buffers()[i].spec.role == Role::input) all[i] = content(*set_, i);
    }
    return all;
  }
  /// Which blocks of a buffer differ from what it held before.
  std::vector<bool> changed(std::size_t buffer, const Bytes& before) const {
    const Bytes now = content(*set_, buffer);
    std::vector<bool> blocks;
    for (std::size_t at = 0; at < now.size(); at += kInputBlockBytes) {
      const std::size_t end = std::min<std::size_t>(now.size(), at + kInputBlockBytes);
      blocks.push_back(!std::equal(now.begin() + static_cast<std::ptrdiff_t>(at),
                                   now.begin() + static_cast<std::ptrdiff_t>(end),
                                   before.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    return blocks;
  }

  std::unique_ptr<BufferSet> set_;
};

TEST_F(RenewedInputs, are_made_again_from_their_version_however_the_range_is_split) {
  for (const Renewed renewed : {Renewed::all, Renewed::half, Renewed::one}) {
    set_->renew(11);
    if (renewed != Renewed::all) set_->renew(12, renewed);
    for (const std::size_t buffer : {kFloats, kBytes, kTogether, kPermutation, kWide}) {
      const InputJob job = set_->job(buffer);
      const std::int64_t count = job.spec.count;
      const auto element = static_cast<std::int64_t>(size_of(job.spec.type));
      for (const std::int64_t step : {count, count / 2, std::int64_t{1000}, std::int64_t{7}}) {
        if (job.spec.fill.whole && step != count) continue;
        Bytes again(static_cast<std::size_t>(count * element));
        for (std::int64_t at = 0; at < count; at += step) {
          job.write(again.data() + at * element, at, std::min(count, at + step));
        }
        EXPECT_EQ(again, content(*set_, buffer)) << job.spec.name << " in steps of " << step;
      }
    }
  }
}

TEST_F(RenewedInputs, change_everywhere_when_all_are_renewed) {
  set_->renew(1);
  const auto before = all_inputs();
  set_->renew(2);
  for (const std::size_t buffer : {kFloats, kBytes, kTogether, kPermutation, kWide}) {
    for (const bool block : changed(buffer, before[buffer])) EXPECT_TRUE(block) << buffer;
  }
}

TEST_F(RenewedInputs, change_in_the_blocks_their_version_names_and_in_no_other) {
  for (const Renewed renewed : {Renewed::half, Renewed::one}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      set_->renew(100 + seed);
      const auto before = all_inputs();
      set_->renew(200 + seed, renewed);
      for (const std::size_t buffer : {kFloats, kBytes, kWide}) {
        const InputJob job = set_->job(buffer);
        const std::vector<bool> blocks = changed(buffer, before[buffer]);
        for (std::size_t block = 0; block < blocks.size(); ++block) {
          EXPECT_EQ(blocks[block],
                    job.version.is_new(job.first_block + static_cast<std::int64_t>(block)));
        }
      }
    }
  }
}

TEST_F(RenewedInputs, whose_parts_belong_together_change_only_with_all) {
  for (const Renewed renewed : {Renewed::half, Renewed::one}) {
    set_->renew(5);
    const auto before = all_inputs();
    set_->renew(6, renewed);
    EXPECT_EQ(content(*set_, kTogether), before[kTogether]);
    EXPECT_EQ(content(*set_, kPermutation), before[kPermutation]);
  }
}

TEST_F(RenewedInputs, change_in_one_block_of_all_inputs_together_and_in_any_of_them) {
  // 5 blocks of floats, 4 of bytes, 3 of wide words.
  std::map<std::pair<std::size_t, std::size_t>, int> hits;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    set_->renew(1000 + seed);
    const auto before = all_inputs();
    set_->renew(5000 + seed, Renewed::one);
    int count = 0;
    for (const std::size_t buffer : {kFloats, kBytes, kWide}) {
      const auto blocks = changed(buffer, before[buffer]);
      for (std::size_t block = 0; block < blocks.size(); ++block) {
        if (!blocks[block]) continue;
        ++count;
        ++hits[{buffer, block}];
      }
    }
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(hits.size(), 12u);
  for (const auto& [where, count] : hits) EXPECT_GT(count, 5) << where.first << " " << where.second;
}

TEST_F(RenewedInputs, change_in_half_of_their_blocks) {
  int changed_blocks = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    set_->renew(1000 + seed);
    const auto before = all_inputs();
    set_->renew(5000 + seed, Renewed::half);
    for (const std::size_t buffer : {kFloats, kBytes, kWide}) {
      for (const bool block : changed(buffer, before[buffer])) {
        changed_blocks += block;
        ++all;
      }
    }
  }
  EXPECT_EQ(all, 1200);
  // Six standard deviations.
  EXPECT_NEAR(changed_blocks, 600, 105);
}

TEST_F(RenewedInputs, are_renewed_in_part_only_once_and_where_they_mix) {
  EXPECT_TRUE(set_->mixes());
  set_->renew(1);
  set_->renew(2, Renewed::half);
  EXPECT_THROW(set_->renew(3, Renewed::half), Fault);
  set_->renew(4);
  set_->renew(5, Renewed::one);

  bind([](Binder& b) {
    b.input<std::int32_t>("p", 10, Fill::custom<std::int32_t>([](auto, const Random&) {}));
  });
  BufferSet whole(target_, knobs_, backend_);
  EXPECT_FALSE(whole.mixes());
  whole.renew(1);
  EXPECT_THROW(whole.renew(2, Renewed::half), Fault);
}

TEST_F(RenewedInputs, leave_the_device_alone_where_a_partial_renewal_changes_nothing) {
  set_->renew(1);
  backend_.renewals.clear();
  set_->renew(2, Renewed::half);
  EXPECT_EQ(backend_.renewals.size(), 3u) << "neither of the two that belong together";
}

TEST_F(RenewedInputs, that_must_be_made_whole_fault_a_part) {
  set_->renew(1);
  Bytes out(8000);
  EXPECT_THROW(set_->job(kPermutation).write(out.data(), 0, 10), Fault);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
