#include "lab/run/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/run/fake_evidence.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Level = Cost::Level;

/// A GPU with 100 bytes/ns of memory, 400 of L2, 1000 FLOP/ns and 16 times that in matrix units.
Ceilings gpu(double spread = 0) {
  return {.backend = BackendKind::cuda,
          .caches = {.last_bytes = 1000},
          .values = {{"dram_read", {.value = 100, .spread = spread}},
                     {"dram_copy", {.value = 80, .spread = spread}},
                     {"dram_write", {.value = 50, .spread = spread}},
                     {"l2_read", {.value = 400, .spread = spread}},
                     {"l1_read", {.value = 2000, .spread = spread}},
                     {"h2d_pinned", {.value = 20, .spread = spread}},
                     {"d2h_pinned", {.value = 10, .spread = spread}},
                     {"fma_f32", {.value = 1000, .spread = spread}},
                     {"matrix_bf16", {.value = 16000, .spread = spread}}}};
}
Ceilings cpu() {
  return {.backend = BackendKind::cpu,
          .caches = {.l1_bytes = 1000, .l2_bytes = 10'000, .last_bytes = 100'000},
          .values = {{"dram_read", {.value = 10}},
                     {"llc_read", {.value = 40}},
                     {"l2_read", {.value = 100}},
                     {"l1_read", {.value = 400}},
                     {"fma_f32", {.value = 200}}}};
}

/// The least time a cost may take, found by trying.
double least_ns(const Cost& cost, const Ceilings& ceilings, std::int64_t repetitions = 1,
                bool cold = false, std::int64_t working_set = 0) {
  Measurement process;
  process.conditions.cold = cold;
  process.set_bytes =
      working_set ? working_set : static_cast<std::int64_t>(cost.read_bytes + cost.write_bytes);
  double low = 0, high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (above_ceiling(cost, middle, process, repetitions, ceilings) ? low : high) = middle;
  }
  return high;
}

// Ceilings are granted a twentieth.
constexpr double kGranted = 1.05;

TEST(AboveCeiling, refuses_bytes_that_no_memory_delivers) {
  // 100 runs share what the cache can hold twice over: 20 bytes of each.
  const Cost cost{.read_bytes = 10'020};
  EXPECT_NEAR(least_ns(cost, gpu(), 100), (10'000 / 100.0 + 20 / 400.0) / kGranted, 1e-6);
}

TEST(AboveCeiling, grants_the_cache_what_it_can_have_held) {
  const Cost cost{.read_bytes = 1500};
  EXPECT_NEAR(least_ns(cost, gpu(), 1), 1500 / 400.0 / kGranted, 1e-6) << "all of it, for one run";
  EXPECT_NEAR(least_ns(cost, gpu(), 4), (1000 / 100.0 + 500 / 400.0) / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.write_bytes = 2500}, gpu(), 1, true),
              (1500 / 100.0 + 1000 / 400.0) / kGranted, 1e-6)
      << "cold, it holds what is not yet written";
}

TEST(AboveCeiling, grants_what_the_ceilings_samples_were_apart) {
  const Cost cost{.flops = 1e6};
  EXPECT_NEAR(least_ns(cost, gpu(0.01)), 1000 / 1.05, 1e-6);
  EXPECT_NEAR(least_ns(cost, gpu(0.2)), 1000 / 1.2, 1e-6);
}

TEST(AboveCeiling, refuses_operations_that_no_unit_does) {
  EXPECT_NEAR(least_ns({.flops = 1e6}, gpu()), 1000 / kGranted, 1e-6);
  const Cost matrix{.flops = 1.6e7, .rate = DType::bf16, .unit = Cost::Unit::matrix};
  EXPECT_NEAR(least_ns(matrix, gpu()), 1000 / kGranted, 1e-6);
  const Cost without_units{.flops = 1e6, .rate = DType::f32, .unit = Cost::Unit::matrix};
  EXPECT_NEAR(least_ns(without_units, gpu()), 1000 / kGranted, 1e-6) << "the vector units do it";
}

TEST(AboveCeiling, takes_the_stricter_of_memory_and_arithmetic) {
  EXPECT_NEAR(least_ns({.read_bytes = 102'000, .flops = 1000}, gpu(), 1),
              (100'000 / 100.0 + 2000 / 400.0) / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 4, .flops = 1e6}, gpu()), 1000 / kGranted, 1e-6);
}

TEST(AboveCeiling, holds_each_level_to_its_own_memory) {
  EXPECT_NEAR(least_ns({.read_bytes = 4000, .level = Level::cache}, gpu()), 10 / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 4000, .level = Level::l1_cache}, gpu()), 2 / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 100, .write_bytes = 100, .level = Level::host_link}, gpu()),
              10 / kGranted, 1e-6)
      << "the slower direction of the link";
}

TEST(AboveCeiling, holds_reads_of_a_disk_to_the_disk_however_many_threads_read) {
  const Ceilings disk{.backend = BackendKind::cpu, .values = {{"disk_read", {.value = 4}}}};
  const Cost cost{.read_bytes = 400, .level = Level::disk};
  EXPECT_NEAR(least_ns(cost, disk), 100 / kGranted, 1e-6);
  EXPECT_TRUE(above_ceiling(cost, 90, {}, 1, disk, Threads::one));
  EXPECT_FALSE(above_ceiling(cost, 96, {}, 1, disk, Threads::one));
  EXPECT_FALSE(above_ceiling(cost, 1, {}, 1, cpu())) << "no disk was measured";
}

TEST(AboveCeiling, takes_the_smallest_cache_of_a_cpu_that_holds_the_bytes) {
  EXPECT_NEAR(least_ns({.read_bytes = 800}, cpu()), 800 / 400.0 / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 8000}, cpu()), 8000 / 100.0 / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 80'000}, cpu()), 80'000 / 40.0 / kGranted, 1e-6);
  EXPECT_NEAR(least_ns({.read_bytes = 1.2e6}, cpu()), (1e6 / 10 + 2e5 / 40) / kGranted, 1e-3);
}

TEST(AboveCeiling, takes_the_cache_that_holds_the_buffers_however_often_they_are_passed_over) {
  const Cost passes{.read_bytes = 1e6, .write_bytes = 1e6, .level = Level::cache};
  EXPECT_NEAR(least_ns(passes, cpu(), 1, false, 800), 1e6 / 400.0 / kGranted, 1e-3)
      << "a core loads and stores in the same cycle";
  EXPECT_NEAR(least_ns(passes, cpu(), 1, false, 8000), 2e6 / 100.0 / kGranted, 1e-3);
  EXPECT_NEAR(least_ns(passes, cpu(), 1, false, 80'000), 2e6 / 40.0 / kGranted, 1e-3);
  const Cost named{.read_bytes = 1e6, .level = Level::l1_cache};
  EXPECT_NEAR(least_ns(named, cpu(), 1, false, 8000), 1e6 / 400.0 / kGranted, 1e-3)
      << "a pair that names the first level has what it says";
}

TEST(AboveCeiling, holds_a_side_of_one_thread_to_the_ceilings_of_one) {
  Ceilings ceilings = cpu();
  ceilings.values["fma_f32_1t"] = {.value = 50};
  const Cost cost{.flops = 1e4};
  EXPECT_FALSE(above_ceiling(cost, 60, {}, 1, ceilings, Threads::all));
  EXPECT_TRUE(above_ceiling(cost, 60, {}, 1, ceilings, Threads::one));
  EXPECT_FALSE(above_ceiling(cost, 200, {}, 1, ceilings, Threads::one));
  ceilings.values.erase("fma_f32_1t");
  EXPECT_FALSE(above_ceiling(cost, 60, {}, 1, ceilings, Threads::one)) << "it has none of its own";
}

TEST(AboveCeiling, says_nothing_where_a_ceiling_is_missing) {
  EXPECT_FALSE(above_ceiling({.read_bytes = 1e9}, 1, {}, 1, {.backend = BackendKind::cuda}));
  EXPECT_FALSE(above_ceiling({}, 1, {}, 1, gpu()));
  EXPECT_FALSE(above_ceiling({.flops = 1e9, .rate = DType::f64}, 1, {}, 1, gpu()));
}

TEST(AboveCeiling, tells_the_time_the_ceiling_and_what_it_means) {
  EXPECT_EQ(*above_ceiling({.flops = 1.05e9}, 5e3, {}, 1, gpu()),
            "is faster than this machine can be: 5.0 us, where fma_f32 allows no less than 1000.0 "
            "us for the work it declares; it skips work, or its cost is wrong");
}

TEST(BelowTraffic, refuses_less_than_must_be_read_or_written) {
  const Cost cost{.read_bytes = 1e6, .write_bytes = 1e6};
  EXPECT_FALSE(below_traffic(cost, 1e6, 1e6, 0));
  EXPECT_FALSE(below_traffic(cost, 0.86e6, 0.86e6, 0));
  EXPECT_THAT(*below_traffic(cost, 0.84e6, 1e6, 0),
              StartsWith("moves less than its work needs: DRAM counters saw 0.8 MB read, and 1.0 "
                         "MB are declared"));
  EXPECT_THAT(*below_traffic(cost, 1e6, 0.84e6, 0), HasSubstr("0.8 MB written"));
}

TEST(BelowTraffic, grants_the_cache_what_it_may_not_have_written_yet) {
  const Cost cost{.read_bytes = 1e6, .write_bytes = 1e6};
  EXPECT_FALSE(below_traffic(cost, 1e6, 0.5e6, 0.5e6));
  EXPECT_FALSE(below_traffic(cost, 1e6, 0, 2e6));
  EXPECT_TRUE(below_traffic(cost, 0.5e6, 1e6, 2e6)) << "reads are flushed before the run";
}

TEST(BelowTraffic, is_asked_of_memory_alone) {
  for (const Level level : {Level::cache, Level::l1_cache, Level::host_link, Level::disk}) {
    EXPECT_FALSE(below_traffic({.read_bytes = 1e6, .level = level}, 0, 0, 0));
  }
}

/// The gates as the judge uses them: 4000 bytes and 500 FLOPs in 3000 and 2000 ns.
class Gates : public Judging {
 protected:
  static Ceilings with(double bytes_per_ns) {
    Ceilings ceilings = gpu();
    for (const char* name : {"dram_read", "dram_copy", "dram_write", "l2_read"}) {
      ceilings.values[name].value = bytes_per_ns;
    }
    return ceilings;
  }
};

TEST_F(Gates, place_sides_under_the_ceilings) {
  evidence_.ceilings = with(4);
  const Result result = judged();
  // 4000 bytes at 4 GB/s take 1000 ns.
  EXPECT_NEAR(result.first().ceiling_percent, 100.0 / 3, 0.01);
  EXPECT_NEAR(result.best().ceiling_percent, 50, 0.01);
  EXPECT_EQ(result.bound_by, "memory");
  EXPECT_NEAR(result.intensity, 500.0 / 4000, 1e-9);
}

TEST_F(Gates, place_a_side_on_one_thread_unless_it_says_it_uses_more) {
  evidence_.ceilings = Ceilings{.values = {{"dram_copy", {.value = 8}},
                                           {"dram_copy_1t", {.value = 4}},
                                           {"fma_f32", {.value = 100}},
                                           {"fma_f32_1t", {.value = 50}}}};
  set_fact("threads", {1, 2});
  const Result result = judged(BackendKind::cpu);
  // 8000 bytes: 2000 ns on one thread, 1000 ns on all.
  EXPECT_NEAR(result.first().ceiling_percent, 100.0 * 2 / 3, 0.01);
  EXPECT_NEAR(result.best().ceiling_percent, 50, 0.01);
}

TEST_F(Gates, call_a_side_wrong_that_is_above_its_ceiling) {
  evidence_.ceilings = with(1);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_THAT(result.reason, StartsWith("baseline is faster than this machine can be: 3.0 us"));
  EXPECT_TRUE(is_above_ceiling(result));
  EXPECT_FALSE(result.measured());
  evidence_.ceilings = with(2);
  EXPECT_EQ(judged().status, Status::passed) << judged().reason;
}

TEST_F(Gates, tell_a_ceiling_from_other_reasons_to_be_wrong) {
  evidence_.processes[0].ok = false;
  evidence_.processes[0].reason = "optimized gave a wrong result";
  EXPECT_FALSE(is_above_ceiling(judged()));
}

TEST_F(Gates, call_a_side_wrong_that_moves_less_than_its_work_needs) {
  set_counter("dram__bytes_read.sum", {2000, 500});
  set_counter("dram__bytes_write.sum", {2000, 2000});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_THAT(result.reason, StartsWith("optimized moves less than its work needs"));
  EXPECT_FALSE(is_above_ceiling(result));
  EXPECT_THAT(result.counters, IsEmpty()) << "there are no sides for them to be of";
}

TEST_F(Gates, report_traffic_that_fits) {
  set_counter("dram__bytes_read.sum", {2000, 1800});
  set_counter("dram__bytes_write.sum", {2000, 2000});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  ASSERT_EQ(result.metrics.at("dram_traffic").sides.size(), 2u);
  EXPECT_DOUBLE_EQ(result.metrics.at("dram_traffic").sides[0].value, 1.0);
  EXPECT_DOUBLE_EQ(result.metrics.at("dram_traffic").sides[1].value, 0.95);
}

TEST_F(Gates, let_nothing_pass_whose_traffic_was_asked_for_and_could_not_be_read) {
  const auto unread = [&](const char* why) {
    const Result result = judged();
    EXPECT_EQ(result.status, Status::no_gain) << why;
    EXPECT_THAT(result.reason, HasSubstr("DRAM traffic could not be read")) << why;
  };
  EXPECT_EQ(judged().status, Status::passed) << "nobody asked";
  evidence_.profile = ProfileOutcome{.why_not = "no permission"};
  unread("no profile");
  EXPECT_EQ(judged(BackendKind::cpu).status, Status::passed) << "a CPU has no such counters";
  evidence_.profile.reset();
  set_counter("dram__bytes_read.sum", {2000, 2000});
  evidence_.profile->sides[1].counters.erase("dram__bytes_write.sum");
  unread("a counter is missing");
  set_counter("dram__bytes_write.sum", {2000, std::nan("")});
  unread("a counter is no number");
  set_counter("dram__bytes_write.sum", {2000, 2000});
  EXPECT_EQ(judged().status, Status::passed) << judged().reason;
}

TEST_F(Gates, say_nothing_of_traffic_that_was_not_asked_for_or_does_not_come_from_memory) {
  EXPECT_FALSE(judged().metrics.contains("dram_traffic"));
  set_counter("dram__bytes_read.sum", {1, 1});
  set_counter("dram__bytes_write.sum", {1, 1});
  cuda().cost = [](const Knobs&) { return Cost{.read_bytes = 1e9, .level = Level::cache}; };
  EXPECT_EQ(judged().status, Status::passed) << judged().reason;
}

}  // namespace
}  // namespace gauntlet::lab::inline run
