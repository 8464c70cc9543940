#include "lab/measure/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using ErasedParams = std::shared_ptr<const void>;

Verdict verify_run(BufferSet& set, const Side& side) {
  return Verifier().run(set, side, kBaseline);
}

/// One side on one seed after another; the first refusal, or the verdict with the largest error.
Verdict verify_seeds(BufferSet& set, const Side& side, const std::vector<std::uint64_t>& seeds) {
  Verifier verifier;
  Verdict worst;
  for (std::uint64_t seed : seeds) {
    set.fill(seed);
    const Verdict verdict = verifier.run(set, side, kBaseline);
    if (!verdict.ok) return verdict;
    if (verdict.max_error >= worst.max_error) worst = verdict;
  }
  return worst;
}

/// One set of the doubling pair, and sides that treat it well or badly.
class Verify : public testing::Test {
 protected:
  Verify() : target_(twice_target()) { bind_again(); }

  void bind_again() {
    knobs_ = Knobs::defaults(target_.pair.knobs, BackendKind::cuda);
    set_ = std::make_unique<BufferSet>(target_, knobs_, backend_);
    set_->fill(1);
    p_ = *static_cast<const TwiceParams*>(set_->params());
  }

  /// Verdict on a side that does it right and then `spoils`.
  Verdict after(const std::function<void()>& spoil) {
    return verify_run(*set_, Side([&] {
      twice(p_);
      spoil();
    }));
  }
  unsigned char* bytes_of(std::size_t buffer) { return set_->buffers()[buffer].data; }

  Target target_;
  Knobs knobs_;
  FakeBackend backend_;
  std::unique_ptr<BufferSet> set_;
  TwiceParams p_{};
};

TEST_F(Verify, accepts_what_is_right) {
  const Verdict verdict = after([] {});
  EXPECT_TRUE(verdict.ok) << verdict.reason;
  EXPECT_EQ(verdict.max_error, 0);
  EXPECT_EQ(verdict.bound, Rounding{.length = 1}.bound());
  EXPECT_EQ(verdict.checked_percent, 100);
}

TEST_F(Verify, names_the_first_wrong_element) {
  const Verdict verdict = after([&] {
    p_.out[7] = 100;
    p_.out[300] = 100;
  });
  EXPECT_FALSE(verdict.ok);
  EXPECT_THAT(verdict.reason, StartsWith("gave a wrong result: out[7] is 100, expected "));
  EXPECT_GT(verdict.max_error, verdict.bound);
}

TEST_F(Verify, checks_the_first_and_the_last_element) {
  EXPECT_FALSE(after([&] { p_.out[0] += 1; }).ok);
  EXPECT_FALSE(after([&] { p_.out[p_.n - 1] += 1; }).ok);
}

TEST_F(Verify, checks_all_of_a_buffer_that_is_split_over_threads) {
  target_.pair.knobs[0].cuda = 20001;
  bind_again();
  EXPECT_TRUE(after([] {}).ok);
  for (std::int64_t at : {0, 9999, 10000, 20000}) {
    EXPECT_THAT(after([&] { p_.out[at] += 1; }).reason,
                HasSubstr("out[" + std::to_string(at) + "]"));
  }
}

TEST_F(Verify, catches_a_write_before_the_start) {
  EXPECT_EQ(after([&] { bytes_of(1)[-1] ^= 1; }).reason,
            "wrote outside of its buffers: before the start of 'out'");
  bind_again();
  EXPECT_FALSE(after([&] { bytes_of(1)[-static_cast<int>(BufferSet::kGuardBytes)] ^= 1; }).ok);
}

TEST_F(Verify, catches_a_write_past_the_end) {
  EXPECT_EQ(after([&] { p_.out[p_.n] = 0; }).reason,
            "wrote outside of its buffers: past the end of 'out'");
  bind_again();
  EXPECT_FALSE(
      after([&] { bytes_of(1)[set_->buffers()[1].bytes + BufferSet::kGuardBytes - 1] = 0; }).ok);
}

TEST_F(Verify, guards_inputs_too) {
  EXPECT_EQ(after([&] { bytes_of(0)[-1] ^= 1; }).reason,
            "wrote outside of its buffers: before the start of 'in'");
}

TEST_F(Verify, catches_a_changed_input) {
  EXPECT_EQ(after([&] { const_cast<float*>(p_.in)[p_.n - 1] += 1; }).reason,
            "changed its input 'in'");
}

TEST_F(Verify, catches_what_was_left_unwritten) {
  const Verdict verdict = verify_run(*set_, Side([&] {
    const TwiceParams part{p_.in, p_.out, p_.n - 1};
    twice(part);
  }));
  EXPECT_EQ(verdict.reason, "left part of its output unwritten: out[499] was never stored");
}

TEST_F(Verify, does_not_accept_the_right_answer_of_a_run_before) {
  EXPECT_TRUE(after([] {}).ok);
  EXPECT_THAT(verify_run(*set_, Side([] {})).reason,
              StartsWith("left part of its output unwritten"));
}

TEST_F(Verify, never_accepts_nan_or_infinity) {
  EXPECT_EQ(after([&] { p_.out[3] = std::nanf("1"); }).reason, "returned NaN at out[3]");
  EXPECT_THAT(after([&] { p_.out[3] = INFINITY; }).reason, HasSubstr("out[3] is inf"));
}

TEST_F(Verify, does_not_accept_nan_though_the_reference_has_it) {
  target_.pair.reference = [](const ErasedParams&, Reference& r) {
    for (double& value : r.values("out", {})) value = std::nan("");
  };
  bind_again();
  EXPECT_FALSE(after([] {}).ok);
  EXPECT_FALSE(after([&] { p_.out[0] = NAN; }).ok);
}

TEST_F(Verify, allows_rounding_up_to_the_bound_and_no_further) {
  const double bound = Rounding{.length = 1}.bound();
  const auto off_by = [&](double relative) {
    return after(
        [&] { p_.out[5] = static_cast<float>(static_cast<double>(p_.out[5]) * (1 + relative)); });
  };
  const Verdict near = off_by(0.8 * bound);
  EXPECT_TRUE(near.ok) << near.reason;
  EXPECT_NEAR(near.max_error / bound, 0.8, 0.15);
  EXPECT_FALSE(off_by(1.3 * bound).ok);
  EXPECT_FALSE(off_by(-1.3 * bound).ok);
}

TEST_F(Verify, measures_the_error_of_a_sum_that_cancels_by_its_magnitude) {
  // A result of 0 out of terms that add up to 1000 in absolute value.
  bool with_magnitudes = true;
  target_.pair.reference = [&](const ErasedParams&, Reference& r) {
    for (double& value : r.values("out", {.length = 1})) value = 0;
    if (!with_magnitudes) return;
    for (double& magnitude : r.magnitudes("out")) magnitude = 1000;
  };
  bind_again();
  const auto all_are = [&](float value) {
    return verify_run(*set_, Side([&] { std::fill_n(p_.out, p_.n, value); }));
  };
  EXPECT_TRUE(all_are(1e-4f).ok);
  EXPECT_FALSE(all_are(1e-2f).ok);
  with_magnitudes = false;
  bind_again();
  EXPECT_FALSE(all_are(1e-30f).ok) << "a magnitude of zero allows no error";
  EXPECT_TRUE(all_are(0).ok);
  EXPECT_TRUE(all_are(-0.0f).ok);
}

TEST_F(Verify, compares_sampled_rows_and_scans_the_rest) {
  target_.pair.reference = [](const ErasedParams& params, Reference& r) {
    const auto& p = *static_cast<const TwiceParams*>(params.get());
    const auto out = r.rows("out", 50, {2, 7}, {.length = 1});
    for (std::int64_t i = 0; i < 50; ++i) {
      out[static_cast<std::size_t>(i)] = 2.0 * static_cast<double>(p.in[100 + i]);
      out[static_cast<std::size_t>(50 + i)] = 2.0 * static_cast<double>(p.in[350 + i]);
    }
  };
  bind_again();
  const Verdict right = after([] {});
  EXPECT_TRUE(right.ok) << right.reason;
  EXPECT_EQ(right.checked_percent, 20);
  EXPECT_THAT(after([&] { p_.out[399] += 1; }).reason, HasSubstr("out[399]"));
  EXPECT_THAT(after([&] { p_.out[100] += 1; }).reason, HasSubstr("out[100]"));
  EXPECT_TRUE(after([&] { p_.out[400] += 1; }).ok) << "not among the sampled rows";
  EXPECT_EQ(after([&] { p_.out[400] = NAN; }).reason, "returned NaN at out[400]");
  EXPECT_FALSE(after([&] { std::memset(p_.out + 400, 0xFF, 4); }).ok);
}

TEST_F(Verify, compares_exact_outputs_bit_for_bit) {
  target_.pair.reference = [](const ErasedParams& params, Reference& r) {
    const auto& p = *static_cast<const TwiceParams*>(params.get());
    const auto out = r.exact<float>("out");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2.0f * p.in[i];
  };
  bind_again();
  EXPECT_TRUE(after([] {}).ok);
  const Verdict verdict = after([&] { p_.out[9] = std::nextafter(p_.out[9], 10.0f); });
  EXPECT_THAT(verdict.reason, HasSubstr("out[9] is"));
  EXPECT_THAT(verdict.reason, HasSubstr("expected exactly"));
  EXPECT_THAT(after([&] { std::memset(p_.out + 9, 0xFF, 4); }).reason, HasSubstr("unwritten"));
}

TEST_F(Verify, faults_a_pair_whose_reference_forgot_an_output) {
  target_.pair.reference = [](const ErasedParams&, Reference&) {};
  bind_again();
  EXPECT_THROW(after([] {}), Fault);
}

TEST_F(Verify, resets_enters_and_leaves_around_the_run) {
  std::string order;
  target_.pair.reset = [&](const ErasedParams&) { order += "reset "; };
  bind_again();
  Side side([&] {
    order += "run ";
    twice(p_);
  });
  side.enter = [&] { order += "enter "; };
  side.leave = [&] { order += "leave "; };
  EXPECT_TRUE(verify_run(*set_, side).ok);
  EXPECT_EQ(order, "reset enter run leave ");
}

TEST_F(Verify, tells_an_answer_that_was_kept) {
  std::vector<float> kept;
  const Verdict verdict = verify_seeds(*set_, Side([&] {
    if (kept.empty()) {
      twice(p_);
      kept.assign(p_.out, p_.out + p_.n);
    }
    std::copy(kept.begin(), kept.end(), p_.out);
  }),
                                       {1, 2});
  EXPECT_THAT(verdict.reason, StartsWith("gave the same output when its inputs changed: an answer "
                                         "is kept between calls (gave a wrong result"));
}

TEST_F(Verify, tells_a_side_that_is_right_for_the_first_inputs_only) {
  int calls = 0;
  const Verdict verdict = verify_seeds(*set_, Side([&] {
    twice(p_);
    if (++calls > 1) p_.out[0] += 1;
  }),
                                       {1, 2});
  EXPECT_THAT(verdict.reason,
              StartsWith("is right for the first inputs, not for fresh ones (gave a wrong "
                         "result: out[0]"));
}

TEST_F(Verify, does_not_excuse_a_side_that_is_wrong_at_once) {
  const Verdict verdict =
      verify_seeds(*set_, Side([&] { std::fill_n(p_.out, p_.n, 9.0f); }), {1, 2});
  EXPECT_THAT(verdict.reason, StartsWith("gave a wrong result: out[0] is 9"));
}

TEST_F(Verify, refuses_a_pair_whose_output_no_input_changes) {
  target_.pair.reference = [](const ErasedParams&, Reference& r) {
    for (double& value : r.values("out", {})) value = 3;
  };
  bind_again();
  const Verdict verdict =
      verify_seeds(*set_, Side([&] { std::fill_n(p_.out, p_.n, 3.0f); }), {1, 2});
  EXPECT_THAT(verdict.reason, StartsWith("has an output that does not depend on its inputs"));
}

TEST_F(Verify, keeps_the_worst_error_of_all_seeds) {
  int calls = 0;
  const Verdict verdict = verify_seeds(*set_, Side([&] {
    twice(p_);
    if (++calls == 2) p_.out[0] = std::nextafter(p_.out[0], 10.0f);
  }),
                                       {1, 2, 3});
  EXPECT_TRUE(verdict.ok) << verdict.reason;
  EXPECT_GT(verdict.max_error, 0);
}

TEST_F(Verify, reports_the_output_nearest_to_its_bound) {
  struct Two {
    const float* in;
    float* tight;
    float* loose;
  };
  target_.pair.bind = [](Binder& b) -> ErasedParams {
    return std::make_shared<const Two>(b.input<float>("in", 10, Fill::uniform(1, 2)),
                                       b.output<float>("tight", 10), b.output<float>("loose", 10));
  };
  target_.pair.reference = [](const ErasedParams& params, Reference& r) {
    const auto& p = *static_cast<const Two*>(params.get());
    const auto tight = r.values("tight", {}), loose = r.values("loose", {.result = DType::bf16});
    for (std::size_t i = 0; i < 10; ++i) tight[i] = loose[i] = static_cast<double>(p.in[i]);
  };
  BufferSet set(target_, knobs_, backend_);
  set.fill(1);
  const auto& p = *static_cast<const Two*>(set.params());
  const Verdict verdict = verify_run(
      set, Side([&] {
        for (int i = 0; i < 10; ++i) {
          p.tight[i] = p.in[i] * (1 + 0x1p-22f);  // about half of what f32 allows
          p.loose[i] = p.in[i] * (1 + 0x1p-14f);  // a larger error, a hundredth of what bf16 allows
        }
      }));
  EXPECT_TRUE(verdict.ok) << verdict.reason;
  EXPECT_EQ(verdict.bound, Rounding{}.bound());
}

/// Outputs of every type a pair can declare.
template <class T>
class VerifyTyped : public testing::Test {};
using OutputTypes =
    testing::Types<double, float, std::int64_t, std::uint64_t, std::int32_t, std::uint32_t,
                   std::int16_t, std::uint16_t, std::int8_t, std::uint8_t>;
TYPED_TEST_SUITE(VerifyTyped, OutputTypes);

TYPED_TEST(VerifyTyped, finds_the_wrong_element_exactly_and_within_bounds) {
  using T = TypeParam;
  Target target = twice_target();
  target.pair.bind = [](Binder& b) -> ErasedParams {
    return std::make_shared<T* const>(b.output<T>("out", 20));
  };
  const auto value = [](std::size_t i) { return static_cast<T>(3 * i + 1); };
  bool exact = false;
  target.pair.reference = [&](const ErasedParams&, Reference& r) {
    if (exact) {
      const auto out = r.exact<T>("out");
      for (std::size_t i = 0; i < 20; ++i) out[i] = value(i);
    } else {
      const auto out = r.values("out", {});
      for (std::size_t i = 0; i < 20; ++i) out[i] = static_cast<double>(value(i));
    }
  };
  const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cuda);
  FakeBackend backend;
  BufferSet set(target, knobs, backend);
  T* out = *static_cast<T* const*>(set.params());
  for (bool mode : {false, true}) {
    exact = mode;
    set.fill(1);
    int wrong_at = -1;
    const Side side([&] {
      for (std::size_t i = 0; i < 20; ++i) out[i] = value(i);
      if (wrong_at >= 0) out[wrong_at] = static_cast<T>(out[wrong_at] + 1);
    });
    EXPECT_TRUE(verify_run(set, side).ok);
    wrong_at = 13;
    EXPECT_THAT(verify_run(set, side).reason, HasSubstr("out[13] is 41, expected"));
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
