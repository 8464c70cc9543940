#include "lab/ceilings/ceilings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/machine/host_features.h"
#include "lab/ceilings/ceiling_backends.h"

namespace gauntlet::lab::inline ceilings {
namespace {

Ceilings with_values(BackendKind backend, const std::map<std::string, double>& values) {
  Ceilings ceilings{.machine_key = "test-machine",
                    .backend = backend,
                    .measured_at = 1,
                    .caches = {.l1_bytes = 1e4, .l2_bytes = 1e5, .last_bytes = 1e6}};
  for (const auto& [name, value] : values) {
    record(ceilings, {.ceiling = name, .method = "given", .amount = value}, {1e-9});
  }
  return ceilings;
}

Ceilings gpu() {
  return with_values(BackendKind::cuda, {{"dram_read", 100},
                                         {"dram_write", 50},
                                         {"dram_copy", 80},
                                         {"l2_read", 400},
                                         {"h2d_pinned", 20},
                                         {"d2h_pinned", 10},
                                         {"fma_f32", 1000},
                                         {"matrix_bf16", 16000}});
}

/// Points XDG_CACHE_HOME at a fresh folder for the length of a test.
class CeilingsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ceilings-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    if (old_) {
      setenv("XDG_CACHE_HOME", old_->c_str(), 1);
    } else {
      unsetenv("XDG_CACHE_HOME");
    }
  }
  std::filesystem::path folder_;
  std::optional<std::string> old_;
};

TEST(Place, finds_a_read_bound_by_memory) {
  const RooflinePoint point = place({.read_bytes = 1000, .flops = 250}, 20, gpu(), Threads::all);
  EXPECT_DOUBLE_EQ(point.floor_ns, 10);
  EXPECT_DOUBLE_EQ(point.percent, 50);
  EXPECT_EQ(point.bound_by, "memory");
  EXPECT_DOUBLE_EQ(point.intensity, 0.25);
}

TEST(Place, finds_a_product_bound_by_compute) {
  const Cost cost{
      .read_bytes = 100, .flops = 64000, .rate = DType::bf16, .unit = Cost::Unit::matrix};
  const RooflinePoint point = place(cost, 5, gpu(), Threads::all);
  EXPECT_DOUBLE_EQ(point.floor_ns, 4);
  EXPECT_DOUBLE_EQ(point.percent, 80);
  EXPECT_EQ(point.bound_by, "compute");
  EXPECT_DOUBLE_EQ(point.intensity, 640);
}

TEST(Place, counts_what_is_read_and_written_at_copy_bandwidth_and_the_rest_at_its_own) {
  // 2·400 at 80, then 600 more read at 100.
  const Cost reads_more{.read_bytes = 1000, .write_bytes = 400};
  EXPECT_DOUBLE_EQ(place(reads_more, 1, gpu(), Threads::all).floor_ns, 10 + 6);
  // 2·400 at 80, then 600 more written at 50.
  const Cost writes_more{.read_bytes = 400, .write_bytes = 1000};
  EXPECT_DOUBLE_EQ(place(writes_more, 1, gpu(), Threads::all).floor_ns, 10 + 12);
  const Cost copies{.read_bytes = 400, .write_bytes = 400};
  EXPECT_DOUBLE_EQ(place(copies, 1, gpu(), Threads::all).floor_ns, 10);
}

TEST(Place, needs_no_ceiling_for_what_does_not_happen) {
  const Ceilings only_write = with_values(BackendKind::cuda, {{"dram_write", 50}});
  EXPECT_EQ(place({.write_bytes = 100}, 1, only_write, Threads::all).bound_by, "memory");
  const Ceilings only_fma = with_values(BackendKind::cuda, {{"fma_f32", 1000}});
  const RooflinePoint no_bytes = place({.flops = 100}, 1, only_fma, Threads::all);
  EXPECT_EQ(no_bytes.bound_by, "compute");
  EXPECT_EQ(no_bytes.intensity, 0);
}

TEST(Place, says_nothing_when_a_ceiling_it_needs_is_absent) {
  const Cost cost{.read_bytes = 1000, .flops = 10, .rate = DType::f64};
  const RooflinePoint point = place(cost, 20, gpu(), Threads::all);
  EXPECT_EQ(point.bound_by, "");
  EXPECT_EQ(point.floor_ns, 0);
  EXPECT_EQ(point.percent, 0);
  EXPECT_DOUBLE_EQ(point.intensity, 0.01);
}

TEST(Place, says_nothing_about_a_cost_of_nothing) {
  const RooflinePoint point = place({}, 20, gpu(), Threads::all);
  EXPECT_EQ(point.bound_by, "");
  EXPECT_EQ(point.percent, 0);
}

TEST(Place, leaves_the_percentage_out_when_there_is_no_time) {
  const RooflinePoint point = place({.read_bytes = 1000}, 0, gpu(), Threads::all);
  EXPECT_DOUBLE_EQ(point.floor_ns, 10);
  EXPECT_EQ(point.percent, 0);
}

TEST(Place, takes_cache_traffic_from_the_last_shared_cache) {
  const Cost cost{.read_bytes = 300, .write_bytes = 100, .level = Cost::Level::cache};
  EXPECT_DOUBLE_EQ(place(cost, 1, gpu(), Threads::all).floor_ns, 1);
  const Ceilings cpu = with_values(BackendKind::cpu, {{"llc_read", 40}, {"llc_read_1t", 20}});
  EXPECT_DOUBLE_EQ(place(cost, 1, cpu, Threads::all).floor_ns, 10);
}

TEST(Place, lets_the_two_directions_of_a_host_link_overlap) {
  const Cost cost{.read_bytes = 100, .write_bytes = 30, .level = Cost::Level::host_link};
  EXPECT_DOUBLE_EQ(place(cost, 1, gpu(), Threads::all).floor_ns, 5);
  const Cost out{.read_bytes = 10, .write_bytes = 30, .level = Cost::Level::host_link};
  EXPECT_DOUBLE_EQ(place(out, 1, gpu(), Threads::all).floor_ns, 3);
}

TEST(Place, takes_a_disk_for_the_same_whatever_reads_it) {
  const Ceilings cpu = with_values(BackendKind::cpu, {{"disk_read", 4}, {"dram_read_1t", 10}});
  const Cost cost{.read_bytes = 400, .level = Cost::Level::disk};
  EXPECT_DOUBLE_EQ(place(cost, 1, cpu, Threads::one).floor_ns, 100);
  EXPECT_DOUBLE_EQ(place(cost, 200, cpu, Threads::all).percent, 50);
  EXPECT_EQ(place(cost, 1, with_values(BackendKind::cpu, {}), Threads::one).bound_by, "");
}

TEST(MeasureDiskCeiling, reads_this_disk_by_every_method_or_leaves_it_out) {
  Ceilings none;
  add_disk_ceiling("/no/such/folder", none);
  EXPECT_TRUE(none.values.empty());
  const auto folder = std::filesystem::temp_directory_path();
  if (const auto probed = probe_direct_io(folder); !probed) GTEST_SKIP() << probed.error().message;
  Ceilings ceilings;
  add_disk_ceiling(folder, ceilings);
  ASSERT_EQ(ceilings.values.size(), 1u);
  const Ceiling& disk = ceilings.values.at("disk_read");
  EXPECT_EQ(disk.unit, "GB/s");
  EXPECT_GE(disk.tries.size(), 4u) << "three sizes and the page cache at least";
}

TEST(Place, uses_one_threads_ceilings_for_one_thread_of_a_cpu_only) {
  const Ceilings cpu = with_values(BackendKind::cpu, {{"dram_read", 40}, {"dram_read_1t", 10}});
  EXPECT_DOUBLE_EQ(place({.read_bytes = 400}, 1, cpu, Threads::one).floor_ns, 40);
  EXPECT_DOUBLE_EQ(place({.read_bytes = 400}, 1, cpu, Threads::all).floor_ns, 10);
  EXPECT_DOUBLE_EQ(place({.read_bytes = 400}, 1, gpu(), Threads::one).floor_ns, 4);
}

TEST(Place, runs_a_matrix_product_on_vector_units_where_a_cpu_has_nothing_else) {
  const Cost cost{.flops = 1000, .rate = DType::f32, .unit = Cost::Unit::matrix};
  const Ceilings cpu = with_values(BackendKind::cpu, {{"fma_f32_1t", 100}});
  EXPECT_DOUBLE_EQ(place(cost, 1, cpu, Threads::one).floor_ns, 10);
  // A GPU's tensor cores have no f32: its FMA rate would flatter the time.
  EXPECT_EQ(place(cost, 1, gpu(), Threads::all).bound_by, "");
}

TEST(Ceilings, keeps_every_try_and_takes_the_best) {
  Ceilings ceilings;
  record(ceilings, {.ceiling = "dram_read", .method = "a", .amount = 2e9}, {1});
  record(ceilings, {.ceiling = "dram_read", .method = "b", .amount = 3e9}, {1});
  record(ceilings, {.ceiling = "dram_read", .method = "c", .amount = 1e9}, {1});
  record(ceilings, {.ceiling = "fma_f32", .method = "d", .amount = 1e9}, {1});
  const Ceiling& read = ceilings.values.at("dram_read");
  EXPECT_DOUBLE_EQ(read.value, 3);
  EXPECT_EQ(read.method, "b");
  EXPECT_EQ(read.unit, "GB/s");
  EXPECT_EQ(read.tries.size(), 3u);
  EXPECT_EQ(ceilings.values.at("fma_f32").unit, "GFLOP/s");
  EXPECT_EQ(ceilings.get("nothing"), 0);
}

TEST(Ceilings, say_how_far_the_samples_of_the_best_method_were_apart) {
  Ceilings ceilings;
  record(ceilings, {.ceiling = "dram_read", .method = "a", .amount = 2e9}, {1.2, 1.0, 1.1});
  EXPECT_DOUBLE_EQ(ceilings.values.at("dram_read").value, 2);
  EXPECT_NEAR(ceilings.values.at("dram_read").spread, 0.1, 1e-12);
  record(ceilings, {.ceiling = "dram_read", .method = "slower", .amount = 1e9}, {1, 3, 3});
  EXPECT_NEAR(ceilings.values.at("dram_read").spread, 0.1, 1e-12);
  record(ceilings, {.ceiling = "dram_read", .method = "faster", .amount = 3e9}, {1, 1.5, 1.5});
  EXPECT_NEAR(ceilings.values.at("dram_read").spread, 0.5, 1e-12);
}

TEST(Ceilings, of_what_may_be_lucky_are_medians_and_grant_the_second_best_sample) {
  Ceilings ceilings;
  record_median(ceilings, {.ceiling = "disk_read", .method = "a", .amount = 2e9},
                {2, 0.1, 0.5, 2, 1});
  const Ceiling& disk = ceilings.values.at("disk_read");
  EXPECT_DOUBLE_EQ(disk.value, 2);
  EXPECT_DOUBLE_EQ(disk.spread, 1) << "4 GB/s were seen more than once";
  record_median(ceilings, {.ceiling = "disk_read", .method = "lucky", .amount = 2e9},
                {0.2, 0.2, 4, 4, 4});
  EXPECT_DOUBLE_EQ(disk.value, 2) << "0.5 GB/s in the median";
  EXPECT_EQ(disk.method, "a");
  EXPECT_DOUBLE_EQ(disk.spread, 4) << "10 GB/s were seen";
  EXPECT_EQ(disk.tries.size(), 2u);
}

TEST(Ceilings, remember_how_fast_a_disk_was_at_another_moment) {
  Ceilings kept = with_values(BackendKind::cpu, {{"disk_read", 4}, {"dram_read", 50}});
  kept.values["disk_read"].spread = 0.5;
  kept.values["dram_read"].spread = 0.5;
  const Ceilings slow = best_of(kept, with_values(BackendKind::cpu, {{"disk_read", 2}}));
  EXPECT_EQ(slow, kept);
  const Ceilings fast =
      best_of(kept, with_values(BackendKind::cpu, {{"disk_read", 5}, {"dram_read", 55}}));
  EXPECT_DOUBLE_EQ(fast.get("disk_read"), 5);
  EXPECT_NEAR(fast.values.at("disk_read").spread, 0.2, 1e-9) << "6 GB/s were seen";
  EXPECT_DOUBLE_EQ(fast.values.at("dram_read").spread, 0);
}

TEST(Ceilings, fault_a_try_without_amount_or_time) {
  Ceilings ceilings;
  EXPECT_THROW(record(ceilings, {.ceiling = "x", .amount = 1}, {}), Fault);
  EXPECT_THROW(record(ceilings, {.ceiling = "x", .amount = 1}, {0}), Fault);
  EXPECT_THROW(record(ceilings, {.ceiling = "x"}, {1}), Fault);
}

TEST(BestOf, takes_the_higher_of_each_with_its_method_and_spread) {
  Ceilings a, b;
  record(a, {.ceiling = "dram_read", .method = "a", .amount = 2e9}, {1, 1.1, 1.2});
  record(a, {.ceiling = "dram_copy", .method = "a", .amount = 5e9}, {1});
  record(b, {.ceiling = "dram_read", .method = "b", .amount = 3e9}, {1});
  record(b, {.ceiling = "dram_copy", .method = "b", .amount = 4e9}, {1});
  record(b, {.ceiling = "fma_f32", .method = "b", .amount = 1e9}, {1});
  a.machine_key = b.machine_key = "test-machine";
  a.caches.last_bytes = 7;
  const Ceilings best = best_of(a, b);
  EXPECT_EQ(best.get("dram_read"), 3);
  EXPECT_EQ(best.values.at("dram_read").method, "b");
  EXPECT_EQ(best.values.at("dram_read").spread, 0);
  EXPECT_EQ(best.get("dram_copy"), 5);
  EXPECT_EQ(best.values.at("dram_copy").method, "a");
  EXPECT_EQ(best.get("fma_f32"), 1) << "measured the second time only";
  EXPECT_EQ(best.machine_key, "test-machine");
  EXPECT_EQ(best.caches.last_bytes, 7);
}

TEST(Ceilings, come_back_from_json_as_they_went) {
  const Ceilings before = gpu();
  const auto after = ceilings_from_json(to_json(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*after, before);
}

/// As the first version of the file had it, without spreads and caches.
nlohmann::json of_format_1() {
  nlohmann::json json = to_json(gpu());
  json["format"] = 1;
  json.erase("caches");
  for (auto& value : json["values"]) value.erase("spread");
  return json;
}

TEST(Ceilings, are_read_from_records_of_the_first_format) {
  const auto read = ceilings_from_json(of_format_1());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->get("dram_read"), 100);
  EXPECT_EQ(read->values.at("dram_read").spread, 0);
  EXPECT_EQ(read->caches, CacheSizes{});
}

TEST(Ceilings, refuse_json_that_is_not_theirs) {
  const auto json = to_json(gpu());
  auto other_format = json;
  for (const int format : {0, 5}) {
    other_format["format"] = format;
    EXPECT_FALSE(ceilings_from_json(other_format));
  }
  auto other_backend = json;
  other_backend["backend"] = "abacus";
  EXPECT_FALSE(ceilings_from_json(other_backend));
  auto negative = json;
  negative["values"]["dram_read"]["value"] = -1;
  EXPECT_FALSE(ceilings_from_json(negative));
  auto missing = json;
  missing["values"]["dram_read"].erase("tries");
  EXPECT_FALSE(ceilings_from_json(missing));
  EXPECT_FALSE(ceilings_from_json(nlohmann::json::array()));
}

TEST(MeasureCeilings, says_why_a_gpus_cannot_be_measured_without_one) {
  const auto measured = measure_ceilings(BackendKind::cuda, MachineInfo{});
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().kind, ErrorKind::environment);
  EXPECT_NE(measured.error().message.find("CUDA"), std::string::npos) << measured.error().message;
}

TEST_F(CeilingsFile, is_loaded_as_it_was_saved_and_leaves_no_draft) {
  EXPECT_FALSE(load_ceilings("test-machine"));
  const auto saved = save_ceilings(gpu());
  ASSERT_TRUE(saved) << saved.error().message;
  const auto loaded = load_ceilings("test-machine");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(to_json(*loaded), to_json(gpu()));
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(CeilingsFile, of_the_first_format_is_measured_again) {
  ASSERT_TRUE(save_ceilings(gpu()));
  std::ofstream(ceilings_path("test-machine")) << of_format_1().dump();
  EXPECT_FALSE(load_ceilings("test-machine"));
}

TEST_F(CeilingsFile, is_loaded_where_the_sizes_of_the_caches_are_not_known) {
  Ceilings ceilings = gpu();
  ceilings.caches = {};
  ASSERT_TRUE(save_ceilings(ceilings));
  EXPECT_TRUE(load_ceilings("test-machine"));
}

TEST_F(CeilingsFile, stays_below_the_cache_folder_whatever_the_key) {
  const std::filesystem::path path = ceilings_path("../../etc/x y");
  EXPECT_EQ(path.parent_path(), folder_ / "gauntlet");
}

TEST_F(CeilingsFile, counts_as_absent_when_it_is_damaged) {
  ASSERT_TRUE(save_ceilings(gpu()));
  std::ofstream(ceilings_path("test-machine")) << "{\"format\": 1";
  EXPECT_FALSE(load_ceilings("test-machine"));
}

TEST_F(CeilingsFile, says_why_it_cannot_be_saved) {
  std::ofstream(folder_ / "gauntlet") << "a file where the folder should be";
  const auto saved = save_ceilings(gpu());
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find(folder_.string()), std::string::npos);
}

}  // namespace
}  // namespace gauntlet::lab::inline ceilings
