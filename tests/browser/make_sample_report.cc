// Writes the report of an invented run that has everything a report may have to show: every status,
// both backends, a lab, a sweep, witnesses seen and not, long reasons, figures that are not finite,
// and strings that try to break out of the page.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lab/records/run_record.h"
#include "lab/report/html.h"
#include "lab/report/markdown.h"

namespace gauntlet::lab {
namespace {

constexpr const char* kHostile =
    "</script><img src=x onerror=\"window.hacked = 1\"><!-- <b>bold</b> &amp; \"quoted\" `tick` | "
    "pipe";

struct Sample {
  std::string id;
  std::string technique;
  std::string title;
  double baseline_us = 0;
  double speedup = 1;
  double ceiling_percent = 0;
  double gb = 0;     // bytes that must move, in 1e9
  double gflop = 0;  // operations, in 1e9
  Status status = Status::passed;
  BackendKind backend = BackendKind::cuda;
};

stats::Interval around(double value, double noise) {
  return {value, value * (1 - noise), value * (1 + noise)};
}

SideResult side(const char* name, const char* role, const Sample& sample, double us, double percent,
                double noise) {
  return {.name = name,
          .role = role,
          .ns = around(us * 1e3, noise),
          .spread = noise * 1.4,
          .samples = 240,
          .gb_per_s = sample.gb / (us * 1e-6),
          .gflop_per_s = sample.gflop / (us * 1e-6),
          .ceiling_percent = percent};
}

/// A result without figures: what a target leaves that did not get as far as being timed.
Result plain(const Sample& sample, std::string reason = {}) {
  const std::string chapter = sample.id.substr(0, sample.id.find(':'));
  return {.id = sample.id,
          .backend = sample.backend,
          .kind = "comparison",
          .chapter = chapter,
          .technique = sample.technique,
          .title = sample.title,
          .claim = "The optimized side does the same work with fewer, wider transactions.",
          .goal = "speed",
          .knobs = {{"rows", 4096}, {"columns", 4096}},
          .status = sample.status,
          .reason = std::move(reason),
          .log = "logs/" + sample.id + "." + name_of(sample.backend) + ".log",
          .seconds = 0.4};
}

Result measured(const Sample& sample) {
  Result result = plain(sample);
  const bool gpu = sample.backend == BackendKind::cuda;
  const double noise = gpu ? 0.004 : 0.03;
  const double optimized_us = sample.baseline_us / sample.speedup;
  result.sides = {
      side("baseline", "baseline", sample, sample.baseline_us,
           sample.ceiling_percent / sample.speedup, noise),
      side("optimized", "optimized", sample, optimized_us, sample.ceiling_percent, noise)};
  const stats::Interval speedup = around(sample.speedup, 2 * noise);
  result.comparisons = {{.from = "baseline",
                         .to = "optimized",
                         .kind = "pair",
                         .speedup = speedup,
                         .verdict = stats::gain(speedup, 1.02),
                         .witness = {.name = "dram__bytes_read.sum",
                                     .meaning = "bytes read from DRAM",
                                     .source = "counter",
                                     .expected = "falls by at least 1.1x"}}};
  WitnessResult& witness = result.comparisons[0].witness;
  result.intensity = sample.gb > 0 ? sample.gflop / sample.gb : 0;
  result.bound_by = result.intensity > 20 ? "compute" : "memory";
  result.verification = {.max_error = 3.1e-7,
                         .bound = 9.6e-6,
                         .checks = 12,
                         .timed_checks = 8,
                         .recomputed_percent = 6};
  result.seconds = 6.2;
  result.conditions = {.processes = 3, .blocks = 60, .dropped_blocks = gpu ? 1 : 0, .cold = !gpu};
  if (gpu) {
    result.conditions.sm_clock_mhz_min = 1830;
    result.conditions.sm_clock_mhz_max = 1980;
    result.conditions.power_w_max = 612;
    result.conditions.temperature_c_max = 61;
    result.conditions.throttle_reasons = {"power cap"};
    witness.collected = true;
    witness.before = 32 * sample.gb;
    witness.after = 32 * sample.gb / sample.speedup;
    witness.moved = sample.speedup > 1.1;
    result.counters = {{"sm__throughput.avg.pct_of_peak_sustained_elapsed", {41.2, 78.9}},
                       {"dram__throughput.avg.pct_of_peak_sustained_elapsed", {12.4, 88.1}}};
  } else {
    witness.why_not = "perf events are not available: kernel.perf_event_paranoid is 4";
  }
  return result;
}

struct SampleRung {
  const char* name;
  double us;
  double percent;
  const char* counter;  // what the step is witnessed by
  double before = 0;
  double after = 0;
};

/// A lab of five rungs and a library. One step gains nothing, another was not witnessed.
Result lab() {
  const Sample sample{.id = "labs:matmul_ladder",
                      .technique = "matmul",
                      .title = "one thread per output → tensor cores fed by a TMA pipeline",
                      .gb = 0.1,
                      .gflop = 137};
  Result result = plain(sample);
  result.seconds = 21;
  result.intensity = 1370;
  result.bound_by = "compute";
  result.verification = {.max_error = 2.2e-3,
                         .bound = 9e-3,
                         .checks = 40,
                         .timed_checks = 24,
                         .recomputed_percent = 3};
  result.conditions = {.processes = 3, .blocks = 48};
  constexpr double kNoise = 0.006;
  const std::vector<SampleRung> rungs = {
      {"naive", 41000, 0.4, "", 0, 0},
      {"shared_tiles", 9800, 1.9, "l1tex__t_sectors.sum", 4.1e9, 5.3e8},
      {"wider_tiles", 9760, 1.9, "l1tex__t_sectors.sum", 5.3e8, 5.1e8},
      {"tensor_cores", 610, 30, "sm__inst_executed_pipe_tensor.sum", 0, 2.1e6},
      {"tma_pipeline", 271, 68, "smsp__warp_issue_stalled_long_scoreboard.avg", 0, 0}};
  for (const SampleRung& rung : rungs) {
    result.sides.push_back(side(rung.name, "rung", sample, rung.us, rung.percent, kNoise));
    if (result.sides.size() == 1) continue;
    const SampleRung& before = rungs[result.sides.size() - 2];
    const auto compared = [&](const SampleRung& from, const char* kind) {
      const stats::Interval speedup = around(from.us / rung.us, 2 * kNoise);
      return ComparisonResult{.from = from.name,
                              .to = rung.name,
                              .kind = kind,
                              .speedup = speedup,
                              .verdict = stats::gain(speedup, 1.02)};
    };
    ComparisonResult step = compared(before, "step");
    step.witness = {.name = rung.counter, .meaning = "what feeds the units", .source = "counter"};
    if (rung.before != rung.after) {
      step.witness.collected = true;
      step.witness.before = rung.before;
      step.witness.after = rung.after;
      step.witness.moved = std::abs(rung.before - rung.after) > 0.1 * rung.before;
    } else {
      step.witness.why_not = "the counter is not among those of --profile minimal";
    }
    result.comparisons.push_back(step);
    if (result.sides.size() > 2) result.comparisons.push_back(compared(rungs.front(), "total"));
  }
  result.sides.push_back(side("cublas", "yardstick", sample, 229, 80, kNoise));
  const stats::Interval against = around(229.0 / 271.0, 2 * kNoise);
  result.comparisons.push_back({.from = "cublas",
                                .to = "tma_pipeline",
                                .kind = "yardstick",
                                .speedup = against,
                                .verdict = stats::gain(against)});
  return result;
}

std::vector<Result> gpu_results() {
  std::vector<Result> results;
  for (const Sample& sample : std::vector<Sample>{
           {"ch01:batched_gemm", "batching", "many small products → one strided-batched call", 812,
            6.4, 61, 0.2, 57.5},
           {"ch01:tf32_matmul", "tf32", "fp32 → tf32 tensor cores", 2710, 7.9, 83, 0.2, 105},
           {"ch06:occupancy_tuning", "occupancy", "fixed block → block chosen by occupancy", 74,
            1.18, 71, 0.13, 0.4},
           {"ch07:vector_loads", "vectorized_access", "scalar → 128-bit loads", 61, 1.31, 92, 0.2,
            0},
           {"ch07:transpose_tiled", "shared_memory_tiling", "naive → tile staged in shared memory",
            205, 3.9, 84, 0.18, 0},
           {"ch08:reduction_shuffle", "warp_shuffle", "shared-memory tree → warp shuffles", 33.4,
            1.44, 95, 0.1, 0.03},
           {"ch09:online_softmax", "fusion", "three passes → one pass", 118, 2.2, 88, 0.2, 0.5},
           {"ch10:tma_pipeline", "async_copy", "synchronous tiles → TMA pipeline", 1540, 2.7, 78,
            0.4, 330},
           {"ch13:fp8_matmul", "low_precision", "bf16 → fp8 tensor cores", 1600, 1.72, 80, 0.2,
            962}}) {
    results.push_back(measured(sample));
  }
  Result demonstration =
      measured({"ch07:coalesced_copy", "coalescing", "strided → adjacent lanes, adjacent words",
                2140, 7.6, 91, 0.54, 0});
  demonstration.kind = "demonstration";
  demonstration.notes = {"the baseline's time differs by 6% between processes"};
  results.push_back(demonstration);
  results.push_back(measured({.id = "ch07:read_only_path",
                              .technique = "read_only_path",
                              .title = "plain → read-only loads",
                              .baseline_us = 58,
                              .speedup = 1.004,
                              .ceiling_percent = 93,
                              .gb = 0.2,
                              .status = Status::no_gain}));
  results.back().reason = "the interval 0.996 to 1.01 does not clear 1.02";
  results.push_back(measured({.id = "ch06:persistent_loop",
                              .technique = "persistence",
                              .title = "one block per tile → persistent blocks",
                              .baseline_us = 91,
                              .speedup = 0.93,
                              .ceiling_percent = 70,
                              .gb = 0.2,
                              .gflop = 3,
                              .status = Status::no_gain}));
  results.back().reason =
      "the interval 0.923 to 0.937 does not clear 1.02; slower than the baseline";
  results.push_back(measured({.id = "ch11:stream_overlap",
                              .technique = "streams",
                              .title = "one stream → copies and kernels overlapped",
                              .baseline_us = 5200,
                              .speedup = 1.21,
                              .ceiling_percent = 66,
                              .gb = 0.2,
                              .gflop = 1,
                              .status = Status::regressed}));
  results.back().reason =
      "1.21× left its expectation of 1.62× (±4%): the optimized side took 4.30 ms instead of 3.21 "
      "ms";

  Result memory =
      measured({"ch16:paged_kv", "paging", "contiguous KV → pages", 410, 0.98, 77, 0.9, 2});
  memory.goal = "memory";
  memory.comparisons[0].witness = {.meaning = "the bytes held are the goal itself",
                                   .source = "none",
                                   .why_not = "the bytes held are the goal itself"};
  memory.metrics = {{"kv_bytes_held", {.unit = "B", .sides = {{.value = 5.4e9}, {.value = 1.3e9}}}},
                    {"latency_p99", {.unit = "ms", .sides = {{8.1, 8, 8.2}, {6.2, 6.1, 6.4}}}},
                    {"waste", {.unit = "%", .sides = {{.value = 76.1}, {.value = std::nan("")}}}}};
  results.push_back(memory);
  results.push_back(lab());

  Result bad_words = measured({"ch15:bad_words", kHostile, kHostile, 33, 1.5, 40, 0.1, 0.1});
  bad_words.sides[1].name = bad_words.comparisons[0].to = kHostile;
  bad_words.comparisons[0].witness.meaning = bad_words.comparisons[0].witness.name = kHostile;
  bad_words.metrics[kHostile] = {.unit = kHostile, .sides = {{.value = 1}, {.value = 2}}};
  bad_words.counters[kHostile] = {1, 2};
  results.push_back(bad_words);

  const Sample wrong{.id = "ch14:split_k",
                     .technique = "split_k",
                     .title = "one pass over K → split K",
                     .status = Status::wrong};
  results.push_back(
      plain(wrong,
            "output 'c' differs from the reference at [17, 2879]: NaN instead of 0.8131 "
            "(seed 7, after timing); 12 of 8294400 elements are not finite"));
  results.back().verification = {.max_error = std::numeric_limits<double>::quiet_NaN(),
                                 .bound = 2e-3,
                                 .checks = 4,
                                 .recomputed_percent = 100};
  const Sample crashed{.id = "ch10:cluster_multicast",
                       .technique = "multicast",
                       .title = "each block loads → one load per cluster",
                       .status = Status::crashed};
  results.push_back(plain(
      crashed,
      "worker ended by signal 6 (Aborted) while running the optimized side: an illegal memory "
      "access was encountered at optimized.sm90a.cu; the last 20 lines are in the log. " +
          std::string(160, 'x')));
  const Sample late{.id = "ch12:device_graph",
                    .technique = "graphs",
                    .title = "launches → device graph",
                    .status = Status::timed_out};
  results.push_back(plain(late, "no answer within 120 s"));
  const Sample hostile{
      .id = "ch15:hostile", .technique = kHostile, .title = kHostile, .status = Status::crashed};
  results.push_back(plain(hostile, kHostile));
  results.back().claim = kHostile;
  for (const char* id : {"ch02:peer_copy", "ch04:nvls_collectives", "ch13:fp4_matmul"}) {
    results.push_back(plain({.id = id,
                             .technique = "links",
                             .title = "through the host → direct",
                             .status = Status::skipped},
                            "needs sm_100a; this GPU is sm_90"));
  }
  return results;
}

std::vector<Result> cpu_results() {
  std::vector<Result> results;
  const BackendKind cpu = BackendKind::cpu;
  for (const Sample& sample :
       std::vector<Sample>{{"ch03:huge_pages", "huge_pages", "4 KiB → 2 MiB pages", 9100, 1.62, 41,
                            0.03, 0, Status::passed, cpu},
                           {"ch07:coalesced_copy", "coalescing", "stride → unit stride", 71000, 5.1,
                            89, 0.13, 0, Status::passed, cpu},
                           {"ch07:soa_layout", "data_layout", "array of structs → struct of arrays",
                            8800, 2.9, 86, 0.1, 0.05, Status::passed, cpu},
                           {"ch09:online_softmax", "fusion", "three passes → one pass", 30100, 1.9,
                            74, 0.27, 0.6, Status::passed, cpu},
                           {"ch01:batched_gemm", "batching", "one by one → batched", 41000, 1.008,
                            58, 0.01, 3.1, Status::no_gain, cpu}}) {
    results.push_back(measured(sample));
  }
  results.back().reason = "the interval 0.948 to 1.07 does not clear 1.02";
  for (const std::int64_t rows : {256, 1024, 4096, 16384, 65536}) {
    const double scale = static_cast<double>(rows) / 256;
    Result point = measured(
        {"ch05:prefetch_loader", "prefetch", "read then use → prefetching workers", 120 * scale,
         0.85 + 0.42 * std::log2(scale), 70, 0.0003 * scale, 0, Status::passed, cpu});
    point.sweep_key = "rows";
    point.knobs["rows"] = rows;
    if (rows == 256) point.status = Status::no_gain;
    results.push_back(point);
  }
  for (const char* id : {"ch03:numa_binding", "ch03:first_touch"}) {
    results.push_back(plain({.id = id,
                             .technique = "numa",
                             .title = "remote → local memory",
                             .status = Status::skipped,
                             .backend = cpu},
                            "needs 2 NUMA nodes; this machine has 1"));
  }
  return results;
}

Ceilings ceilings_of(BackendKind backend, std::string key,
                     const std::map<std::string, double>& values) {
  Ceilings out{.machine_key = std::move(key), .backend = backend, .measured_at = 1794709000};
  for (const auto& [name, value] : values) {
    const bool rate = name.starts_with("fma") || name.starts_with("matrix");
    out.values[name] = {
        .value = value,
        .unit = rate ? "GFLOP/s" : "GB/s",
        .method = "vector loop, 4 streams",
        .tries = {{"vector loop, 4 streams", value}, {"library call", value * 0.94}}};
  }
  return out;
}

RunRecord sample_record() {
  RunRecord record{.run_id = "20261115-021640-7f3a",
                   .started_at = 1794709000,
                   .command_line = "gauntlet run --suite all --profile minimal",
                   .machine = {.cpu = {.model = "AMD EPYC 9654 96-Core Processor",
                                       .cores = 16,
                                       .numa_nodes = 1,
                                       .l1d_bytes = 32 << 10,
                                       .l2_bytes = 1 << 20,
                                       .last_level_bytes = 32 << 20,
                                       .memory_bytes = std::int64_t{128} << 30,
                                       .simd = {"avx2", "avx512f", "avx512_vnni"}},
                               .gpus = {{.name = "NVIDIA H200",
                                         .compute_major = 9,
                                         .compute_minor = 0,
                                         .num_sms = 132,
                                         .max_threads_per_sm = 2048,
                                         .shared_bytes_per_sm = 233472,
                                         .l2_bytes = 60 << 20,
                                         .memory_bytes = std::int64_t{139} << 30,
                                         .uuid = "GPU-00000000"}},
                               .kernel = "6.1.0-31-amd64",
                               .os = "Debian GNU/Linux 12",
                               .driver = "13.0",
                               .cuda_runtime = "13.0",
                               .hypervisor = "kvm"},
                   .build = {.version = "0.1.0",
                             .commit = "334856a1c0de+changes",
                             .compiler = "GNU 12.2.0",
                             .flags = "-O2 -DNDEBUG",
                             .cuda_compiler = "13.0.88",
                             .build_type = "Release"},
                   .results = gpu_results(),
                   .profile = "minimal"};
  for (Result& result : cpu_results()) record.results.push_back(std::move(result));
  record.ceilings = {ceilings_of(BackendKind::cuda, "nvidia-h200",
                                 {{"dram_copy", 4190},
                                  {"dram_read", 4460},
                                  {"l2_read", 9800},
                                  {"fma_f32", 61200},
                                  {"matrix_tf32", 368000},
                                  {"matrix_bf16", 743000},
                                  {"matrix_f8e4m3", 1293000},
                                  {"h2d_pinned", 55.2}}),
                     ceilings_of(BackendKind::cpu, "amd-epyc-16c",
                                 {{"dram_copy", 29.4},
                                  {"dram_read", 33.1},
                                  {"llc_read", 58.6},
                                  {"fma_f32", 148},
                                  {"disk_read", 1.9}})};
  return record;
}

}  // namespace
}  // namespace gauntlet::lab

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_sample_report FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const auto record = gauntlet::lab::sample_record();
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream file(folder + "/" + name);
    file << text;
    return file.good();
  };
  using namespace gauntlet::lab;
  const bool written =
      write("report.html", report::render_html(record)) && write("report.md", report::render_markdown(record)) &&
      write("empty.html", report::render_html({.run_id = "empty", .machine = record.machine}));
  return written ? 0 : 1;
}
