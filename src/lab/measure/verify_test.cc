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

Verdict verify_run(BufferSet& set, const Side& side) { return Verifier(9).run(set, side, 0, 1); }

/// One side on one seed after another; the first refusal, or the verdict with the largest error.
Verdict verify_seeds(BufferSet& set, const Side& side, const std::vector<std::uint64_t>& seeds) {
  Verifier verifier(9);
  Verdict worst;
  for (std::uint64_t seed : seeds) {
    const Verdict verdict = verifier.run(set, side, 0, seed);
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
  EXPECT_EQ(verdict.recomputed_percent, 100);
  EXPECT_EQ(verdict.seen_percent, 100);
}

TEST_F(Verify, names_the_first_wrong_element) {
  const Verdict verdict = after([&] {
    p_.out[7] = 100;
    p_.out[300] = 100;
  });
  EXPECT_FALSE(verdict.ok);
  EXPECT_THAT(verdict.reason, StartsWith("gave a wrong result: out[7] is 100, expected "));
}

TEST_F(Verify, checks_all_of_a_buffer_that_is_split_over_threads) {
  target_.pair.knobs[0].cuda = 20001;
  bind_again();
  EXPECT_TRUE(after([] {}).ok);
  for (std::int64_t at : {0, 9999, 10000, 20000}) {
    EXPECT_THAT(after([&] { p_.out[at] += 1; }).reason,
                HasSubstr("out[" + std::to_string(at) + "]"));
    EXPECT_EQ(after([&] { const_cast<float*>(p_.in)[at] += 1; }).reason, "changed its input 'in'");
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

TEST_F(Verify, refuses_what_cannot_be_read) {
  for (const std::size_t buffer : {std::size_t{0}, std::size_t{1}}) {
    for (const bool guard : {false, true}) {
      const BufferSet::Buffer& b = set_->buffers()[buffer];
      backend_.unreadable = {guard ? b.base : b.data};
      EXPECT_EQ(
          after([] {}).reason,
          "made '" + b.spec.name + "' unreadable: what is computed when it is read was not timed");
    }
  }
  backend_.unreadable = {};
  EXPECT_TRUE(after([] {}).ok);
}

TEST_F(Verify, reads_outputs_before_anything_else) {
  // A latecomer still writes them: what is copied first is what counts.
  int downloads = 0;
  backend_.on_event = [&](const char* event) {
    if (std::string_view(event) == "download" && ++downloads == 2) twice(p_);
  };
  EXPECT_THAT(verify_run(*set_, Side([] {})).reason, HasSubstr("never stored"));
  EXPECT_GT(downloads, 2);
}

TEST_F(Verify, catches_a_changed_input) {
  EXPECT_EQ(after([&] { const_cast<float*>(p_.in)[p_.n - 1] += 1; }).reason,
            "changed its input 'in'");
}

TEST_F(Verify, makes_the_inputs_again_whatever_was_renewed) {
  target_.pair.knobs[0].cuda = 9000;
  bind_again();
  Verifier verifier(3);
  using Renewed = InputVersion::Renewed;
  for (const Renewed renewed : {Renewed::all, Renewed::half, Renewed::one}) {
    set_->renew(1);
    twice(p_);
    if (renewed != Renewed::all) {
      set_->renew(2, renewed);
      EXPECT_FALSE(verifier.judge(*set_).ok) << "the answer to the inputs before";
      twice(p_);
    }
    const Verdict verdict = verifier.judge(*set_);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }
}

TEST_F(Verify, gives_the_reference_inputs_of_its_own_and_no_outputs) {
  const float* seen_in = nullptr;
  float* seen_out = reinterpret_cast<float*>(1);
  const auto reference = target_.pair.reference;
  target_.pair.reference = [&](const ErasedParams& p, Reference& r) {
    seen_in = static_cast<const TwiceParams*>(p.get())->in;
    seen_out = static_cast<const TwiceParams*>(p.get())->out;
    reference(p, r);
  };
  bind_again();
  EXPECT_TRUE(after([] {}).ok);
  EXPECT_NE(seen_in, nullptr);
  EXPECT_NE(seen_in, p_.in) << "the side's own memory is not trusted";
  EXPECT_EQ(seen_out, nullptr);
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

TEST_F(Verify, faults_a_pair_whose_reference_forgot_an_output) {
  target_.pair.reference = [](const ErasedParams&, Reference&) {};
  bind_again();
  EXPECT_THROW(after([] {}), Fault);
}

TEST_F(Verify, faults_a_bind_whose_order_changes) {
  int calls = 0;
  target_.pair.bind = [&](Binder& b) -> ErasedParams {
    b.input<float>(++calls == 1 ? "a" : "b", 4, Fill::uniform());
    return nullptr;
  };
  BufferSet set(target_, knobs_, backend_);
  EXPECT_THROW(verify_run(set, Side([] {})), Fault);
}

TEST_F(Verify, lets_a_side_enter_before_its_inputs_exist_and_leave_when_it_was_judged) {
  std::string order;
  const auto note = [&](const std::string& what) {
    if (!order.ends_with(what + " ")) order += what + " ";
  };
  bind_again();
  backend_.on_event = note;
  Side side([&] {
    note("run");
    twice(p_);
  });
  side.enter = [&] { note("enter"); };
  side.leave = [&] { note("leave"); };
  EXPECT_TRUE(verify_run(*set_, side).ok);
  EXPECT_EQ(order, "enter renew set_bytes run download leave ");
}

TEST_F(Verify, is_not_taken_in_by_work_in_enter_or_leave) {
  Side enters([] {});
  enters.enter = [&] { twice(p_); };
  EXPECT_FALSE(verify_run(*set_, enters).ok);
  Side leaves([] {});
  leaves.leave = [&] { twice(p_); };
  EXPECT_FALSE(verify_run(*set_, leaves).ok);
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

TEST_F(Verify, compares_a_side_with_its_own_earlier_answers_only) {
  Verifier verifier(9);
  EXPECT_TRUE(verifier.run(*set_, Side([&] { twice(p_); }), 0, 1).ok);
  EXPECT_TRUE(verifier.run(*set_, Side([&] { twice(p_); }), 1, 1).ok)
      << "another side gives the same output for the same inputs";
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
  const auto& p = *static_cast<const Two*>(set.params());
  const Verdict verdict = verify_run(
      set, Side([&] {
        for (int i = 0; i < 10; ++i) {
          p.tight[i] = p.in[i] * (1 + 0x1p-22f);  // about half of what f32 allows
          p.loose[i] = p.in[i] * (1 + 0x1p-14f);  // a larger error, a hundredth of what bf16 allows
        }
      }));
  EXPECT_TRUE(verdict.ok) << verdict.reason;
  EXPECT_NEAR(verdict.bound, Rounding{}.bound(1, 1), 1e-9);
  EXPECT_LT(verdict.max_error, 0x1p-20);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
