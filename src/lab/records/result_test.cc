#include "lab/records/result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

/// Every field differs from its default, so that one that is not carried over shows.
Result full_result() {
  return {.id = "ch07:coalesced_copy",
          .backend = BackendKind::cuda,
          .kind = "demonstration",
          .chapter = "ch07",
          .technique = "coalescing",
          .title = "strided → adjacent",
          .claim = "Adjacent lanes read adjacent words.",
          .goal = "memory",
          .knobs = {{"rows", 4096}, {"columns", std::int64_t{1} << 40}},
          .sweep_key = "rows",
          .status = Status::regressed,
          .reason = "left its expectation",
          .notes = {"the witness was not read"},
          .log = "logs/a.log",
          .speedup = Estimate{.median = 7.1, .lo = 7.0, .hi = 7.3},
          .baseline = SideResult{.ns = {.median = 100.5, .lo = 99, .hi = 101},
                                 .spread = 0.01,
                                 .samples = 240,
                                 .gb_per_s = 500,
                                 .gflop_per_s = 3,
                                 .ceiling_percent = 12},
          .optimized = SideResult{.ns = {.median = 14.2, .lo = 14, .hi = 15},
                                  .spread = 0.02,
                                  .samples = 241,
                                  .gb_per_s = 3500,
                                  .gflop_per_s = 21,
                                  .ceiling_percent = 84},
          .ceiling_percent = 84,
          .bound_by = "memory",
          .intensity = 0.25,
          .verification = {.max_error = 1e-7, .bound = 1e-5, .checks = 12, .checked_percent = 50},
          .metrics = {{"bytes_held", {.baseline = 10, .optimized = 5, .unit = "B"}}},
          .witness = {.name = "sectors",
                      .meaning = "sectors per request",
                      .source = "counter",
                      .collected = true,
                      .why_not = "",
                      .baseline = 32,
                      .optimized = 4,
                      .moved = true,
                      .expected = "falls by at least 4x"},
          .counters = {{"dram", {.baseline = 1, .optimized = 2, .unit = "%"}}},
          .conditions = {.processes = 3,
                         .blocks = 60,
                         .dropped_blocks = 1,
                         .sm_clock_mhz_min = 1800,
                         .sm_clock_mhz_max = 1980,
                         .power_w_max = 612,
                         .temperature_c_max = 61,
                         .throttle_reasons = {"power cap"},
                         .cold = true},
          .samples = 481,
          .seconds = 6.5};
}

RunRecord full_record() {
  return {.run_id = "20261115-021640-7f3a",
          .started_at = 1794709000,
          .command_line = "gauntlet run --targets ch07",
          .arguments = {"run", "--targets", "ch07"},
          .machine = {.cpu = {.model = "EPYC",
                              .cores = 2,
                              .numa_nodes = 4,
                              .l1d_bytes = 32768,
                              .l2_bytes = 1 << 20,
                              .last_level_bytes = 1 << 25,
                              .memory_bytes = std::int64_t{1} << 37,
                              .simd = {"avx2", "avx512f"}},
                      .gpus = {{.name = "NVIDIA H200",
                                .compute_major = 9,
                                .compute_minor = 1,
                                .num_sms = 132,
                                .max_threads_per_sm = 2048,
                                .shared_bytes_per_sm = 233472,
                                .l2_bytes = 60 << 20,
                                .memory_bytes = std::int64_t{139} << 30,
                                .uuid = "GPU-1"}},
                      .no_gpu_reason = "none",
                      .kernel = "6.1",
                      .os = "Debian",
                      .driver = "13.0",
                      .cuda_runtime = "13.1",
                      .hypervisor = "kvm"},
          .build = {.version = "0.1.0",
                    .commit = "abc",
                    .compiler = "GNU 12",
                    .flags = "-O2",
                    .cuda_compiler = "13.0",
                    .build_type = "Release"},
          .results = {full_result()},
          .ceilings = {{.machine_key = "nvidia-h200",
                        .backend = BackendKind::cuda,
                        .measured_at = 1794700000,
                        .values = {{"dram_copy",
                                    {.value = 4190,
                                     .unit = "GB/s",
                                     .method = "memcpy",
                                     .tries = {{.method = "memcpy", .value = 4190}}}}}}},
          .profile = "minimal"};
}

TEST(Result, comes_back_the_same_from_json) {
  const json written = to_json(full_result());
  EXPECT_EQ(to_json(result_from_json(written)), written);
  EXPECT_EQ(to_json(result_from_json(json::parse(written.dump()))), written);
}

TEST(Result, loses_no_field_on_the_way_to_json) {
  const json full = to_json(full_result()), bare = to_json(Result{});
  for (const auto& [key, value] : full.items()) EXPECT_NE(value, bare.at(key)) << key;
  for (const char* part : {"verification", "witness", "conditions"}) {
    for (const auto& [key, value] : full.at(part).items()) {
      if (key == "why_not") continue;
      EXPECT_NE(value, bare.at(part).at(key)) << part << "." << key;
    }
  }
}

TEST(Result, reads_every_field_that_it_writes) {
  const json full = to_json(full_result());
  for (const auto& [key, value] : full.items()) {
    if (key == "id" || key == "backend" || key == "status") continue;
    json without = full;
    without.erase(key);
    EXPECT_NE(to_json(result_from_json(without)).at(key), value) << key << " is not read";
  }
}

TEST(Result, writes_null_for_what_a_skipped_target_has_not) {
  const json skipped = to_json(Result{.id = "ch02:peer_copy", .reason = "needs 2 GPUs"});
  for (const char* key : {"speedup", "baseline", "optimized"})
    EXPECT_TRUE(skipped.at(key).is_null());
  EXPECT_TRUE(skipped.at("witness").at("baseline").is_null());
  const Result read = result_from_json(skipped);
  EXPECT_EQ(read.status, Status::skipped);
  EXPECT_FALSE(read.speedup || read.baseline || read.optimized);
  EXPECT_EQ(read.witness.baseline, 0);
}

TEST(Result, keeps_an_error_that_is_not_finite_not_finite) {
  Result result = full_result();
  for (const double error :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    result.verification.max_error = error;
    const Result read = result_from_json(json::parse(to_json(result).dump()));
    EXPECT_FALSE(std::isfinite(read.verification.max_error));
  }
}

TEST(Result, refuses_an_unknown_status_or_backend) {
  json result = to_json(full_result());
  result["status"] = "fine";
  EXPECT_ANY_THROW(result_from_json(result));
  result = to_json(full_result());
  result["backend"] = "tpu";
  EXPECT_ANY_THROW(result_from_json(result));
}

TEST(Status, has_a_name_that_reads_back) {
  for (const Status status : {Status::passed, Status::no_gain, Status::regressed, Status::wrong,
                              Status::crashed, Status::timed_out, Status::skipped}) {
    EXPECT_EQ(status_from(name_of(status)), status);
  }
  EXPECT_EQ(status_from("ok"), std::nullopt);
}

TEST(Status, skipped_is_neither_failure_nor_pass) {
  EXPECT_FALSE(is_failure(Status::skipped));
  EXPECT_NE(Status::skipped, Status::passed);
  EXPECT_FALSE(is_failure(Status::no_gain));
  EXPECT_TRUE(is_failure(Status::regressed));
}

TEST(RunRecord, comes_back_the_same_from_json) {
  const json written = to_json(full_record());
  EXPECT_EQ(written.at("schema_version"), kResultSchemaVersion);
  const auto read = run_record_from_json(json::parse(json_text(full_record())));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), written);
}

TEST(RunRecord, loses_no_field_of_machine_and_build) {
  const json full = to_json(full_record()), bare = to_json(RunRecord{});
  for (const char* part : {"machine", "build"}) {
    for (const auto& [key, value] : full.at(part).items()) {
      EXPECT_NE(value, bare.at(part).at(key)) << part << "." << key;
    }
  }
}

TEST(RunRecord, says_which_result_does_not_fit) {
  json record = to_json(full_record());
  record["results"].push_back({{"id", "x"}, {"backend", "cpu"}, {"status", "fine"}});
  const auto read = run_record_from_json(record);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("result 1: unknown status 'fine'"), std::string::npos)
      << read.error().message;
}

TEST(RunRecord, refuses_another_schema_version) {
  json record = to_json(full_record());
  record["schema_version"] = kResultSchemaVersion + 1;
  const auto read = run_record_from_json(record);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("schema_version is 2, this binary reads 1"),
            std::string::npos);
  EXPECT_FALSE(run_record_from_json(json::array()));
}

TEST(RunRecord, writes_a_reason_that_is_not_utf8) {
  RunRecord record = full_record();
  record.results[0].reason = "last words: \xff\xfe";
  EXPECT_TRUE(run_record_from_json(json::parse(json_text(record))));
}

}  // namespace
}  // namespace gauntlet::lab::inline records
