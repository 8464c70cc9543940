#include "engine/cuda/runner.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "core/check.h"
#include "engine/cuda/decode_shapes.h"
#include "engine/cuda/flight.h"
#include "engine/cuda/forward.h"
#include "engine/cuda/graphs.h"
#include "engine/cuda/step_parts.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::kPageTokens;

constexpr int kInFlight = 2;

/// Of a sequence whose rows are masked: a token and seven guesses.
constexpr std::int64_t kMostRowsPerSequence = 8;

/// The largest inputs: a step of prompts, and one whose every row is masked.
std::array<StepShape, 2> largest_shapes(const model::ModelConfig& config, const BufferSizes& sizes,
                                        Determinism determinism) {
  const StepShape largest{.tokens = static_cast<int>(sizes.tokens),
                          .sequences = static_cast<int>(sizes.decode_rows),
                          .table_stride = static_cast<int>(pages_of(config.max_positions)),
                          .logit_rows = static_cast<int>(sizes.tokens)};
  StepShape masked = largest;
  // Apart, tokens that decode are cut into launches that are no larger than the first.
  const std::int64_t rows = determinism == Determinism::per_request
                                ? sizes.decode_rows
                                : std::min(sizes.tokens, kMostRowsPerSequence * sizes.decode_rows);
  masked.logit_rows = static_cast<int>(rows);
  masked.mask_words = static_cast<int>((config.vocab + 31) / 32);
  return {largest, masked};
}

/// When the kernels of a step began and ended.
struct StepClock {
  CudaEvent begin{CudaEvent::Clock::runs}, end{CudaEvent::Clock::runs};
  Ticket ticket = 0;
};

/// The GPU that the calling thread uses from now on.
class UsedDevice {
 public:
  explicit UsedDevice(int device) : device_(device) { use(); }
  void use() const { cuda_check(cudaSetDevice(device_)); }

 private:
  int device_;
};

class CudaRunner final : public Runner {
 public:
  explicit CudaRunner(RunnerParts parts)
      : device_(parts.device),
        plan_(std::move(parts.plan)),
        model_(std::move(parts.model)),
        longest_pages_(static_cast<int>(pages_of(parts.pool.longest()))),
        kv_(model_.config, parts.pool, plan_.cuda->kv),
        sizes_(parts.sizes),
        buffers_(model_.config, sizes_),
        inputs_(largest_shapes(model_.config, sizes_, variants().determinism),
                kInFlight * most_parts(), variants().host_memory),
        expert_tokens_(
            static_cast<std::size_t>(model_.config.num_layers * model_.config.num_experts)),
        rank_sum_(std::move(parts.rank_sum)),
        forward_(model_, *plan_.cuda, buffers_, sizes_, kv_,
                 {.rank_sum = rank_sum_.get(),
                  .export_layers = std::move(parts.export_layers),
                  .first_logit = parts.first_logit}),
        graphs_(rank_sum_ ? GraphCache::Budget::counted : GraphCache::Budget::measured),
        seam_{.stream = static_cast<cudaStream_t>(stream_),
              .residuals = buffers_.residuals,
              .most_tokens = sizes_.tokens,
              .embedding = model_.embedding,
              .guesses = buffers_.choices + sizes_.tokens,
              .num_guesses = kGuessPlaces} {
    for (int i = 0; i < kInFlight; ++i) {
      flights_.emplace_back(model_.config, sizes_, most_parts(), variants().host_memory);
    }
    cuda_check(cudaDeviceSynchronize());
    if (variants().graphs == Graphs::on) capture_ahead();
  }
  ~CudaRunner() override {
    try {
      // What was left in flight may wait for ranks that are lost.
      if (rank_sum_) rank_sum_->wait([this] { return is_done(cudaStreamQuery(stream_)); });
    } catch (const std::exception&) {
      // The stream goes on without them, or an error of the device stays where it is.
    }
    cudaStreamSynchronize(stream_);
  }

  const model::ModelConfig& config() const override { return model_.config; }
  const Plan& plan() const override { return plan_; }
  StepLimits limits() const override {
    return {.tokens = sizes_.tokens,
            .items = sizes_.sequences,
            .vocab = model_.config.vocab,
            .page_tokens = kPageTokens,
            .export_layers = sizes_.export_layers,
            .guess_places = device_seam() != nullptr ? kGuessPlaces : 0};
  }
  int most_in_flight() const override { return kInFlight; }
  std::int64_t weight_bytes() const override { return model_.memory.bytes(); }
  StepTraffic last_traffic() const override;
  std::span<const float> last_residuals() const override {
    return finished_ > 0 ? flight_of(finished_).residuals() : std::span<const float>();
  }
  bool last_residuals_stayed() const override {
    return finished_ > 0 && flight_of(finished_).residuals_stay();
  }
  /// Ranks would each need the guesses.
  const DeviceSeam* device_seam() const override {
    return sizes_.export_layers > 0 && rank_sum_ == nullptr ? &seam_ : nullptr;
  }
  std::span<const std::int64_t> expert_tokens() const override { return expert_tokens_; }
  void watch(LayerProbe* probe) override { probe_ = probe; }
  void time_gaps(std::vector<double>* us) override { gaps_us_ = us; }

  Ticket start(StepData step) override;
  std::vector<RowResult> finish(Ticket ticket) override;

 private:
  const CudaOptions& variants() const { return plan_.cuda->variants; }
  DecodeLimits decode_limits() const {
    return {.sequences = static_cast<int>(sizes_.sequences),
            .pages = static_cast<int>(pages_of(model_.config.max_positions)),
            .rows = static_cast<int>(sizes_.decode_rows)};
  }
  int most_parts() const {
    return variants().determinism == Determinism::per_request ? kMostParts : 1;
  }
  Flight& flight_of(Ticket ticket) {
    return flights_[static_cast<std::size_t>(ticket % kInFlight)];
  }
  const Flight& flight_of(Ticket ticket) const {
    return flights_[static_cast<std::size_t>(ticket % kInFlight)];
  }
  PaddingPages padding() const {
    return {{kv_.padding_page(KvGroup::full), kv_.padding_page(KvGroup::sliding)}};
  }
  /// Where choices of the step started last lie on the device, and guesses.
  LatePlaces late_places() const {
    LatePlaces places{.first_guess = static_cast<std::int32_t>(sizes_.tokens)};
    if (started_ > 0) places.rows = flight_of(started_).places;
    return places;
  }

  void start(Flight& flight, std::size_t part, int staged, const LatePlaces& late_places);
  /// Decode steps as the pool can hold them, while there is room for their graphs.
  void capture_ahead();
  /// What a graph holds: from inputs on the device to choices on the device.
  void compute(const StepShape& shape, int first_choice, cudaStream_t stream);
  void count_experts(const Flight& flight);
  /// One more than may be in flight, since a gap lies between two.
  StepClock& clock_of(Ticket ticket) {
    return clocks_[static_cast<std::size_t>(ticket) % clocks_.size()];
  }
  void add_gap(Ticket ticket);

  const UsedDevice device_;  // first: what follows lies there
  const Plan plan_;
  CudaStream stream_;
  DeviceModel model_;
  const int longest_pages_;
  KvMemory kv_;
  BufferSizes sizes_;
  Buffers buffers_;
  StepInputs inputs_;
  std::deque<Flight> flights_;
  std::vector<std::int64_t> expert_tokens_;  // [layers, experts]: of all steps
  std::shared_ptr<RankSum> rank_sum_;
  Forward forward_;
  GraphCache graphs_;
  const DeviceSeam seam_;
  LayerProbe* probe_ = nullptr;
  std::vector<double>* gaps_us_ = nullptr;
  std::array<StepClock, kInFlight + 1> clocks_;
  Ticket started_ = 0;
  Ticket finished_ = 0;
};

void CudaRunner::capture_ahead() {
  for (const StepShape& shape : decode_shapes(decode_limits())) {
    if (shape.table_stride > padded_table(longest_pages_, decode_limits())) break;
    const auto work = [&](cudaStream_t stream) { compute(shape, 0, stream); };
    if (!graphs_.prepare(shape, stream_, work)) break;
  }
  stream_.wait();
}

void CudaRunner::compute(const StepShape& shape, int first_choice, cudaStream_t stream) {
  forward_.run({.shape = shape,
                .inputs = inputs_.on_device(shape),
                .late = buffers_.choices,
                .choices = buffers_.choices + first_choice},
               stream, probe_);
}

Ticket CudaRunner::start(StepData step) {
  check(started_ - finished_ < kInFlight, "a step was started before an earlier one was finished");
  device_.use();
  const LatePlaces late = late_places();
  Flight& flight = flight_of(started_ + 1);
  auto parts = cut_step(step, variants().determinism, decode_limits(), model_.config.vocab);
  flight.begin(std::move(step), std::move(parts));
  const auto turn = rank_sum_ ? rank_sum_->turn() : std::unique_lock<std::mutex>();
  kv_.copy(flight.step.copies, stream_);
  const int first_staged = static_cast<int>((started_ + 1) % kInFlight) * most_parts();
  for (std::size_t p = 0; p < flight.parts.size(); ++p) {
    start(flight, p, first_staged + static_cast<int>(p), late);
  }
  flight.done.record(stream_);
  return ++started_;
}

void CudaRunner::start(Flight& flight, std::size_t part, int staged,
                       const LatePlaces& late_places) {
  const StepPart& own = flight.parts[part];
  const StepShape& shape = own.shape;
  fill_inputs(flight.step, own, inputs_.on_host(shape, staged), padding(), late_places);
  inputs_.upload(shape, staged, stream_);
  const Ticket ticket = started_ + 1;
  if (gaps_us_ && part == 0) {
    clock_of(ticket).begin.record(stream_);
    clock_of(ticket).ticket = ticket;
  }
  // A later part puts its choices behind those of the first: a graph knows one place only.
  const bool has_graph = variants().graphs == Graphs::on && shape.max_query == 1 &&
                         own.first_row == 0 && probe_ == nullptr;
  if (has_graph) {
    graphs_.launch(shape, stream_, [&](cudaStream_t stream) { compute(shape, 0, stream); });
  } else {
    compute(shape, own.first_row, stream_);
  }
  if (gaps_us_ && part + 1 == flight.parts.size()) clock_of(ticket).end.record(stream_);
  flight.bring(buffers_, part, stream_);
}

void CudaRunner::add_gap(Ticket ticket) {
  const StepClock& before = clock_of(ticket - 1);
  const StepClock& now = clock_of(ticket);
  if (before.ticket != ticket - 1 || now.ticket != ticket) return;  // one was not timed
  gaps_us_->push_back(now.begin.us_since(before.end));
}

std::vector<RowResult> CudaRunner::finish(Ticket ticket) {
  check(ticket == finished_ + 1 && ticket <= started_, "no such step to finish");
  Flight& flight = flight_of(ticket);
  finished_ = ticket;
  device_.use();
  if (rank_sum_) {
    rank_sum_->wait([&] { return flight.done.is_passed(); });
  } else {
    flight.done.wait();
  }
  if (gaps_us_) add_gap(ticket);
  count_experts(flight);
  return flight.results();
}

void CudaRunner::count_experts(const Flight& flight) {
  const auto num_experts = static_cast<std::size_t>(model_.config.num_experts);
  for (std::size_t p = 0; p < flight.parts.size(); ++p) {
    const auto* first = flight.first_slot(p);
    for (std::size_t i = 0; i < expert_tokens_.size(); ++i) {
      const std::size_t at = i / num_experts * (num_experts + 1) + i % num_experts;
      expert_tokens_[i] += first[at + 1] - first[at];
    }
  }
}

StepTraffic CudaRunner::last_traffic() const {
  if (finished_ == 0) return {};
  const Flight& flight = flight_of(finished_);
  const model::ModelConfig& config = model_.config;
  const std::int64_t per_layer = config.num_experts + 1;
  StepTraffic traffic{.kv_bytes = kv_bytes_seen(flight.step, config,
                                                KvMemory::position_bytes(config, plan_.cuda->kv))};
  for (std::size_t p = 0; p < flight.parts.size(); ++p) {
    const auto* first = flight.first_slot(p);
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const DeviceLayer& layer = model_.layers[l];
      traffic.dense_bytes +=
          layer.qkv.bytes() + layer.o.bytes() + 2 * config.num_experts * config.hidden;
      for (std::int64_t e = model_.experts.begin; e < model_.experts.end; ++e) {
        const std::int64_t at = static_cast<std::int64_t>(l) * per_layer + e;
        if (first[at + 1] == first[at]) continue;
        traffic.expert_bytes += layer.gate_up.bytes() + layer.down.bytes();
        ++traffic.active_experts;
      }
    }
    if (!flight.parts[p].rows.empty()) traffic.dense_bytes += model_.lm_head.bytes();
  }
  return traffic;
}

}  // namespace

std::unique_ptr<Runner> make_runner(RunnerParts parts) {
  return std::make_unique<CudaRunner>(std::move(parts));
}

}  // namespace gauntlet::engine::cuda
