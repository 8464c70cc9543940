#include "lab/records/result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/records/fake_results.h"
#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

/// Every field differs from its default, so that one that is not carried over shows.
Result full_result() {
  return {.id = "ch07:coalesced_copy",
          .backend = BackendKind::cuda,
          .ranks = {.count = 2, .transport = kMpi},
          .kind = "demonstration",
          .chapter = "ch07",
          .technique = "coalescing",
          .title = "strided → adjacent",
          .claim = "Adjacent lanes read adjacent words.",
          .goal = "memory",
          .goal_metric = "bytes_held",
          .knobs = {{"rows", 4096}, {"columns", std::int64_t{1} << 40}},
          .sweep_key = "rows",
          .status = Status::regressed,
          .reason = "left its expectation",
          .notes = {"the witness was not read"},
          .log = "logs/a.log",
          .sides = {{.name = "baseline",
                     .role = "baseline",
                     .ns = {.value = 100.5, .lo = 99, .hi = 101},
                     .spread = 0.01,
                     .samples = 240,
                     .gb_per_s = 500,
                     .gflop_per_s = 3,
                     .ceiling_percent = 12},
                    {.name = "optimized",
                     .role = "optimized",
                     .ns = {.value = 14.2, .lo = 14, .hi = 15},
                     .spread = 0.02,
                     .samples = 241,
                     .gb_per_s = 3500,
                     .gflop_per_s = 21,
                     .ceiling_percent = 84}},
          .comparisons = {{.from = "baseline",
                           .to = "optimized",
                           .kind = "pair",
                           .speedup = {.value = 7.1, .lo = 7.0, .hi = 7.3},
                           .gain = {.value = 2, .lo = 1.5, .hi = 2.75},
                           .verdict = stats::Gain::gain,
                           .witness = {.name = "sectors",
                                       .meaning = "sectors per request",
                                       .source = "counter",
                                       .collected = true,
                                       .why_not = "",
                                       .before = 32,
                                       .after = 4,
                                       .moved = true,
                                       .expected = "falls by at least 4x"}}},
          .absent = {{.name = "cudnn", .reason = "needs cudnn: it was not found"}},
          .bound_by = "memory",
          .intensity = 0.25,
          .verification = {.max_error = 1e-7,
                           .bound = 1e-5,
                           .checks = 12,
                           .timed_checks = 7,
                           .recomputed_percent = 50,
                           .seen_percent = 99},
          .metrics = {{"bytes_held", {.unit = "B", .sides = {{10, 9, 11}, {5, 4, 6}}}}},
          .counters = {{"dram", {1, 2}}},
          .conditions = {.processes = 3,
                         .blocks = 60,
                         .dropped_blocks = 1,
                         .sm_clock_mhz_min = 1800,
                         .sm_clock_mhz_max = 1980,
                         .power_w_max = 612,
                         .temperature_c_max = 61,
                         .throttle_reasons = {"power cap"},
                         .cold = true},
          .seconds = 6.5};
}

/// A result as version 1 wrote it.
json result_v1() {
  return json::parse(R"({
    "id": "ch07:coalesced_copy", "backend": "cuda", "kind": "comparison", "chapter": "ch07",
    "technique": "coalescing", "title": "strided → adjacent", "claim": "c", "goal": "speed",
    "knobs": {"rows": 4096}, "sweep_key": "", "status": "passed", "reason": "", "notes": ["n"],
    "log": "logs/a.log",
    "speedup": {"median": 7.1, "lo": 7.0, "hi": 7.3},
    "baseline": {"median_ns": 100.5, "lo_ns": 99, "hi_ns": 101, "spread": 0.01, "samples": 240,
                 "gb_per_s": 500, "gflop_per_s": 3, "ceiling_percent": 12},
    "optimized": {"median_ns": 14.2, "lo_ns": 14, "hi_ns": 15, "spread": 0.02, "samples": 241,
                  "gb_per_s": 3500, "gflop_per_s": 21, "ceiling_percent": 84},
    "ceiling_percent": 84, "bound_by": "memory", "intensity": 0.25,
    "verification": {"max_error": 1e-7, "bound": 1e-5, "checks": 12, "checked_percent": 50},
    "metrics": {"bytes_held": {"baseline": 10, "optimized": 5, "unit": "B"}},
    "witness": {"name": "sectors", "meaning": "m", "source": "counter", "collected": true,
                "why_not": "", "baseline": 32, "optimized": 4, "moved": true,
                "expected": "falls by at least 4x"},
    "counters": {"dram": {"baseline": 1, "optimized": null, "unit": ""}},
    "conditions": {"processes": 3, "blocks": 60, "cold": true},
    "samples": 481, "seconds": 6.5})");
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

TEST(Result, of_a_ladder_comes_back_the_same_from_json) {
  const json written = to_json(ladder_result("labs:gemm"));
  EXPECT_EQ(to_json(result_from_json(json::parse(written.dump()))), written);
  EXPECT_TRUE(written.at("comparisons").at(2).at("witness").is_null()) << "a total has none";
}

TEST(Result, loses_no_field_on_the_way_to_json) {
  const json full = to_json(full_result()), bare = to_json(Result{});
  for (const auto& [key, value] : full.items()) EXPECT_NE(value, bare.at(key)) << key;
  for (const char* part : {"verification", "conditions"}) {
    for (const auto& [key, value] : full.at(part).items()) {
      EXPECT_NE(value, bare.at(part).at(key)) << part << "." << key;
    }
  }
}

TEST(Result, reads_every_field_that_it_writes) {
  const json full = to_json(full_result());
  const auto is_read = [&](const json::json_pointer& field) {
    json without = full;
    without.at(field.parent_pointer()).erase(field.back());
    json again;
    try {
      again = to_json(result_from_json(without));
    } catch (const std::exception&) {
      return true;  // it was missed
    }
    return !again.contains(field) || again.at(field) != full.at(field);
  };
  const json fields = full.flatten();
  for (const auto& [field, value] : fields.items()) {
    const json::json_pointer pointer(field);
    if (pointer.back() == "why_not" || full.at(pointer.parent_pointer()).is_array()) continue;
    EXPECT_TRUE(is_read(pointer)) << field;
  }
  for (const char* list : {"/sides", "/comparisons", "/notes", "/metrics", "/counters",
                           "/conditions/throttle_reasons"}) {
    EXPECT_TRUE(is_read(json::json_pointer(list))) << list;
  }
}

TEST(Result, of_a_time_before_yardsticks_were_left_out_is_read) {
  json written = to_json(full_result());
  EXPECT_EQ(written.at("absent").at(0).at("name"), "cudnn");
  written.erase("absent");
  EXPECT_TRUE(result_from_json(written).absent.empty());
}

TEST(Result, has_empty_lists_where_a_target_was_skipped) {
  const json skipped = to_json(Result{.id = "ch02:peer_copy", .reason = "needs 2 GPUs"});
  EXPECT_EQ(skipped.at("sides"), json::array());
  EXPECT_EQ(skipped.at("comparisons"), json::array());
  const Result read = result_from_json(skipped);
  EXPECT_EQ(read.status, Status::skipped);
  EXPECT_FALSE(read.measured());
}

TEST(Result, writes_null_for_a_witness_that_was_not_collected) {
  Result result = full_result();
  result.comparisons[0].witness = {
      .name = "sectors", .source = "counter", .why_not = "run with --profile minimal"};
  const json written = to_json(result);
  EXPECT_TRUE(written.at("comparisons").at(0).at("witness").at("before").is_null());
  const Result read = result_from_json(written);
  EXPECT_EQ(read.headline().witness.before, 0);
  EXPECT_EQ(read.headline().witness.why_not, "run with --profile minimal");
}

TEST(Result, keeps_a_side_without_a_metric_apart_from_zero) {
  Result result = full_result();
  result.metrics["bytes_held"].sides[1] = {.value = std::nan("")};
  result.counters["dram"][0] = std::nan("");
  const Result read = result_from_json(json::parse(to_json(result).dump()));
  EXPECT_TRUE(std::isnan(read.metrics.at("bytes_held").sides[1].value));
  EXPECT_TRUE(std::isnan(read.counters.at("dram")[0]));
  EXPECT_EQ(read.counters.at("dram")[1], 2);
}

TEST(Result, reads_a_pair_of_version_1) {
  const Result read = result_from_json(result_v1(), 1);
  EXPECT_EQ(read.title, "strided → adjacent");
  EXPECT_EQ(read.knobs.at("rows"), 4096);
  ASSERT_EQ(read.sides.size(), 2u);
  EXPECT_FALSE(read.is_ladder());
  EXPECT_EQ(read.first().name, "baseline");
  EXPECT_EQ(read.first().ns.value, 100.5);
  EXPECT_EQ(read.best().role, "optimized");
  EXPECT_EQ(read.best().ns.lo, 14);
  EXPECT_EQ(read.best().ns.hi, 15);
  EXPECT_EQ(read.best().ceiling_percent, 84);
  EXPECT_EQ(read.samples(), 481);
  ASSERT_EQ(read.comparisons.size(), 1u);
  EXPECT_EQ(read.headline().kind, "pair");
  EXPECT_EQ(read.headline().speedup.value, 7.1);
  EXPECT_EQ(read.headline().speedup.lo, 7.0);
  EXPECT_EQ(read.headline().verdict, stats::Gain::gain);
  EXPECT_EQ(read.headline().witness.before, 32);
  EXPECT_EQ(read.headline().witness.after, 4);
  EXPECT_TRUE(read.headline().witness.shows_mechanism());
  EXPECT_EQ(read.verification.recomputed_percent, 50);
  EXPECT_EQ(read.verification.seen_percent, 50);
  EXPECT_EQ(read.metrics.at("bytes_held").unit, "B");
  EXPECT_EQ(read.metrics.at("bytes_held").sides[1].value, 5);
  EXPECT_EQ(read.counters.at("dram")[0], 1);
  EXPECT_TRUE(std::isnan(read.counters.at("dram")[1]));
  EXPECT_EQ(read.conditions.blocks, 60);
  EXPECT_EQ(read.seconds, 6.5);
}

TEST(Result, reads_a_skip_of_version_1) {
  json skipped = result_v1();
  skipped["status"] = "skipped";
  for (const char* key : {"speedup", "baseline", "optimized"}) skipped[key] = nullptr;
  const Result read = result_from_json(skipped, 1);
  EXPECT_FALSE(read.measured());
  EXPECT_TRUE(read.sides.empty());
}

TEST(Result, refuses_comparisons_and_metrics_of_sides_it_has_not) {
  json result = to_json(full_result());
  result["comparisons"][0]["to"] = "fastest";
  EXPECT_ANY_THROW(result_from_json(result));
  result = to_json(full_result());
  result["metrics"]["bytes_held"]["sides"].erase(1);
  EXPECT_ANY_THROW(result_from_json(result));
  result = to_json(full_result());
  result["counters"]["dram"].push_back(3);
  EXPECT_ANY_THROW(result_from_json(result));
  result = to_json(full_result());
  result["comparisons"][0]["verdict"] = "great";
  EXPECT_ANY_THROW(result_from_json(result));
}

TEST(Result, is_judged_by_the_last_rung_against_the_first) {
  const Result ladder = ladder_result("labs:gemm");
  EXPECT_TRUE(ladder.is_ladder());
  EXPECT_EQ(ladder.headline().kind, "total");
  EXPECT_EQ(ladder.first().name, "naive");
  EXPECT_EQ(ladder.best().name, "async");
  Result two_rungs = ladder_result("labs:gemm");
  two_rungs.sides.erase(two_rungs.sides.begin() + 2);
  two_rungs.comparisons.resize(1);
  EXPECT_EQ(two_rungs.headline().kind, "step");
  EXPECT_EQ(two_rungs.best().name, "tiled");
}

TEST(Result, has_no_headline_when_nothing_was_measured) {
  EXPECT_ANY_THROW(static_cast<void>(Result{}.headline()));
  EXPECT_ANY_THROW(static_cast<void>(full_result().side("fastest")));
}

TEST(Result, names_the_place_it_ran_at) {
  EXPECT_EQ(Result{}.on(), "cpu");
  Result result{.backend = BackendKind::ranks, .ranks = {.count = 4, .transport = kThreads}};
  EXPECT_EQ(result.on(), "4 ranks (threads)");
  result.ranks = {.count = 1, .transport = kMpi};
  EXPECT_EQ(result.on(), "1 rank (mpi)");
}

TEST(Result, names_its_point_of_a_sweep) {
  EXPECT_EQ(full_result().sweep(), "rows=4096");
  EXPECT_EQ(ladder_result("labs:gemm").sweep(), "");
}

TEST(Unwitnessed, is_what_a_passed_pair_did_not_show) {
  Result result = full_result();
  result.status = Status::passed;
  EXPECT_EQ(unwitnessed(result), "");
  WitnessResult& witness = result.comparisons[0].witness;
  witness.collected = false;
  witness.why_not = "run with --profile minimal";
  EXPECT_EQ(unwitnessed(result), "mechanism not witnessed: run with --profile minimal");
  witness.why_not = "";
  EXPECT_EQ(unwitnessed(result), "mechanism not witnessed");
  witness.collected = true;
  witness.moved = false;
  EXPECT_EQ(unwitnessed(result), "mechanism not witnessed: sectors did not move");
  result.status = Status::no_gain;
  EXPECT_EQ(unwitnessed(result), "") << "there is no gain to explain";
}

TEST(Unwitnessed, asks_each_step_of_a_ladder_that_gained) {
  Result ladder = ladder_result("labs:gemm");
  EXPECT_EQ(unwitnessed(ladder), "");
  ladder.comparisons[1].witness = {.source = "none", .why_not = "nothing to read"};
  EXPECT_EQ(unwitnessed(ladder), "mechanism not witnessed in tiled → async: nothing to read");
  ladder.comparisons[0].witness.moved = false;
  EXPECT_EQ(unwitnessed(ladder),
            "mechanism not witnessed in naive → tiled: sectors did not move; in tiled → async: "
            "nothing to read");
  ladder.comparisons[0].witness.moved = true;
  ladder.comparisons[1].verdict = stats::Gain::no_gain;
  EXPECT_EQ(unwitnessed(ladder), "");
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
  EXPECT_NE(read.error().message.find("schema_version is 3, this binary reads 1 to 2"),
            std::string::npos);
  record["schema_version"] = 0;
  EXPECT_FALSE(run_record_from_json(record));
  EXPECT_FALSE(run_record_from_json(json::array()));
}

TEST(RunRecord, of_version_1_is_read_and_written_as_version_2) {
  json record = to_json(full_record());
  record["schema_version"] = 1;
  record["results"] = json::array({result_v1()});
  const auto read = run_record_from_json(record);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->results.at(0).headline().speedup.value, 7.1);
  EXPECT_EQ(read->arguments, full_record().arguments) << "so that it can be resumed";
  const json written = to_json(*read);
  EXPECT_EQ(written.at("schema_version"), 2);
  const auto again = run_record_from_json(json::parse(written.dump()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again).dump(), written.dump());
}

TEST(RunRecord, writes_a_reason_that_is_not_utf8) {
  RunRecord record = full_record();
  record.results[0].reason = "last words: \xff\xfe";
  EXPECT_TRUE(run_record_from_json(json::parse(json_text(record))));
}

}  // namespace
}  // namespace gauntlet::lab::inline records
