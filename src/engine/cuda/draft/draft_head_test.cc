// Does a head on a GPU guess what its golden values say, through a service, by graphs and without,
// and beside others?
#include <map>

#include "engine/cuda/draft/eagle_drafter.h"
#include "engine/golden.h"
#include "engine/serving/recorded_events.h"
#include "engine/speculation/cuda_eagle.h"
#include "engine/speculation/ngram.h"
#include "engine/steps/cuda_executor.h"
#include "model/eagle_head.h"

namespace gauntlet::engine::cuda::inline draft {
namespace {

constexpr float kHeadTolerance = 0.15f;  // of logits, against float32
constexpr float kClear = 0.3f;           // twice that: the first choice stays the first

struct GoldenHead {
  GoldenHead()
      : weights(golden_model("gauntlet-tiny")),
        head(model::load_eagle_head(model::open_model(std::string(GAUNTLET_SOURCE_DIR) +
                                                      "/models/gauntlet-tiny-eagle3")
                                        .value(),
                                    weights.config)
                 .value()),
        executor(
            std::move(make_cuda_executor(
                          weights, {.options = {.cuda = {.determinism = Determinism::per_request}},
                                    .max_sequences = 8,
                                    .max_tokens = 8192,
                                    .max_batch_tokens = 512,
                                    .export_layers = head.config.export_layers()})
                          .value())),
        golden(golden_file("gauntlet-tiny-eagle3")) {}

  std::shared_ptr<Drafter> drafter() const {
    return make_cuda_eagle_drafter(
               head, weights.embedding,
               {.positions = 8192, .longest = 4096, .seam = executor->device_seam()})
        .value();
  }

  model::ModelWeights weights;
  model::EagleHead head;
  std::unique_ptr<Executor> executor;
  nlohmann::json golden;
};

std::vector<std::uint16_t> joined(std::span<const float> residuals, std::int64_t boundaries,
                                  std::int64_t hidden) {
  const std::int64_t tokens = std::ssize(residuals) / boundaries / hidden;
  std::vector<std::uint16_t> rows;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t b = 0; b < boundaries; ++b) {
      for (std::int64_t i = 0; i < hidden; ++i) {
        const __nv_bfloat16 rounded =
            __float2bfloat16(residuals[static_cast<std::size_t>((b * tokens + t) * hidden + i)]);
        rows.push_back(std::bit_cast<std::uint16_t>(rounded));
      }
    }
  }
  return rows;
}

TEST(EagleOnGpu, drafts_what_the_golden_values_say) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  GoldenHead here;
  const model::EagleHeadConfig& shape = here.head.config;
  const std::int64_t features = shape.features();
  for (const Graphs graphs : {Graphs::off, Graphs::on}) {
    DraftHead head(here.head, here.weights.embedding,
                   {.num_pages = 64, .longest = 4096, .graphs = graphs});
    std::vector<std::int32_t> pages(64);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      pages[i] = static_cast<std::int32_t>(i * 29 % 64);
    }
    for (const auto& entry : here.golden.at("cases")) {
      auto ids = entry.at("ids").get<std::vector<std::int32_t>>();
      const SequenceId sequence = here.executor->kv().create();
      std::vector<std::uint16_t> residuals;
      for (std::int64_t at = 0; at < std::ssize(ids); at += 100) {
        const std::int64_t end = std::min<std::int64_t>(at + 100, std::ssize(ids));
        const ItemResult result =
            step(*here.executor, {.sequence = sequence,
                                  .tokens = {ids.begin() + at, ids.begin() + end},
                                  .want = Want::nothing,
                                  .exports = true});
        const auto more = joined(result.residuals, std::ssize(shape.boundaries), shape.hidden);
        residuals.insert(residuals.end(), more.begin(), more.end());
      }
      here.executor->kv().free(sequence);
      ids.push_back(entry.at("next").get<std::int32_t>());
      // All but the last position ahead, in launches of an odd size, then one to guess from.
      const auto count = static_cast<std::int64_t>(std::ssize(ids)) - 1;
      const auto row = [&](std::int64_t at) {
        return HeadRow{.residuals = residuals.data() + at * features,
                       .token = ids[static_cast<std::size_t>(at + 1)],
                       .position = static_cast<std::int32_t>(at)};
      };
      for (std::int64_t at = 0; at < count - 1; at += 77) {
        std::vector<HeadRow> rows;
        for (std::int64_t i = at; i < std::min(at + 77, count - 1); ++i) rows.push_back(row(i));
        head.see(rows, std::vector<HeadText>{{.pages = pages}});
      }
      const auto drafted = entry.at("drafted").get<std::vector<std::int32_t>>();
      // One guess more each time: the last one's logits are looked at, on the way that was guessed.
      for (std::size_t i = 0; i < drafted.size(); ++i) {
        const std::vector<HeadRow> rows = {row(count - 1)};
        const auto got =
            head.guess(rows, std::vector<HeadText>{{.pages = pages}}, static_cast<int>(i) + 1);
        const std::vector<float> logits = head.last_logits(1);
        std::map<std::int32_t, float> by_target;
        for (std::size_t d = 0; d < logits.size(); ++d) {
          by_target[here.head.target_ids[d]] = logits[d];
        }
        for (const auto& pair : entry.at("top8")[i]) {
          EXPECT_NEAR(by_target[pair[0].get<std::int32_t>()], pair[1].get<float>(), kHeadTolerance)
              << "draft " << i;
        }
        EXPECT_EQ(got[i], drafted[i]) << "draft " << i;
        const float margin =
            entry.at("top8")[i][0][1].get<float>() - entry.at("top8")[i][1][1].get<float>();
        if (got[i] != drafted[i] && margin < kClear) break;  // another way from here on
      }
    }
  }
}

std::vector<RecordedEvents> answers(Executor& executor, const std::vector<ServiceRequest>& requests,
                                    const Speculation& speculation, ServiceStats* stats = nullptr) {
  std::vector<RecordedEvents> events(requests.size());
  Service service(executor, {.scheduler = {.max_step_tokens = 96}, .speculation = speculation});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(service.submit(requests[i], events[i].events_to()));
  }
  while (service.step()) {
  }
  EXPECT_EQ(service.check_integrity(), "");
  if (stats) *stats = service.stats();
  return events;
}

/// Writes down how long the text was when its next guesses were asked for.
class WatchedDrafter final : public Drafter {
 public:
  explicit WatchedDrafter(std::shared_ptr<Drafter> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return inner_->name(); }
  std::vector<int> residuals_after() const override { return inner_->residuals_after(); }
  void computed(std::span<const ComputedTokens> tokens) override {
    for (const ComputedTokens& some : tokens) on_device += some.device_row.has_value();
    inner_->computed(tokens);
  }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    lengths.push_back(std::ssize(wishes[0].tokens));
    auto drafts = inner_->propose(wishes);
    late += !drafts[0].empty() && is_late_guess(drafts[0][0]);
    return drafts;
  }
  bool reads_on_device() const override { return inner_->reads_on_device(); }
  void reveal(Draft& draft) const override { inner_->reveal(draft); }
  double late_seconds() const override { return inner_->late_seconds(); }
  void end(std::int64_t id) override { inner_->end(id); }
  std::vector<std::int64_t> lengths;
  int on_device = 0;  // times that it was told of residuals there
  int late = 0;       // times that its guesses were

 private:
  std::shared_ptr<Drafter> inner_;
};

TEST(EagleOnGpu, has_as_many_guesses_accepted_as_the_golden_values_say_and_keeps_no_page) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  GoldenHead here;
  double steps = 0, accepted = 0;
  for (const auto& entry : here.golden.at("cases")) {
    const auto expected = entry.at("accepted_along_greedy").get<std::vector<std::int64_t>>();
    const auto drafter = here.drafter();
    const auto watched = std::make_shared<WatchedDrafter>(drafter);
    const auto& eagle = dynamic_cast<const CudaEagleDrafter&>(*drafter);
    const std::int64_t free_pages = eagle.free_pages();
    ServiceStats stats;
    answers(*here.executor,
            {{.prompt = entry.at("ids").get<std::vector<std::int32_t>>(),
              .max_tokens = 80,
              .end_of_sequence = EndOfSequence::ignored}},
            {.drafter = watched, .max_drafts = 5, .lengths = DraftLengths::fixed}, &stats);
    EXPECT_EQ(stats.draft_fault, "");
    EXPECT_EQ(eagle.free_pages(), free_pages);
    EXPECT_GT(watched->late, 0);
    EXPECT_GT(watched->on_device, 0);
    ASSERT_GT(watched->lengths.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      steps += 1;
      accepted += static_cast<double>(watched->lengths[i + 1] - watched->lengths[i] - 1);
    }
  }
  EXPECT_NEAR(accepted / steps, here.golden.at("mean_accepted_of_5_greedy").get<double>(), 0.1);
}

TEST(EagleOnGpu, gives_the_tokens_that_come_without_guesses_alone_and_among_others) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  GoldenHead here;
  std::vector<ServiceRequest> requests;
  for (const auto& one : golden_cases("gauntlet-tiny")) {
    const auto size = std::min<std::size_t>(one.ids.size(), 150);
    ServiceRequest request{.prompt = {one.ids.begin(), one.ids.begin() + size},
                           .max_tokens = 40,
                           .end_of_sequence = EndOfSequence::ignored};
    if (requests.size() % 2 == 1) {
      request.sampling = {.temperature = 0.9f, .top_p = 0.9f, .seed = requests.size()};
    }
    requests.push_back(std::move(request));
  }
  auto plain = answers(*here.executor, requests, {});
  const std::vector<std::shared_ptr<Drafter>> drafters = {here.drafter(),
                                                          std::make_shared<NgramDrafter>()};
  for (const auto& drafter : drafters) {
    for (const DraftLengths lengths : {DraftLengths::fixed, DraftLengths::measured}) {
      SCOPED_TRACE(drafter->name());
      ServiceStats stats;
      auto guessed = answers(*here.executor, requests,
                             {.drafter = drafter, .max_drafts = 3, .lengths = lengths}, &stats);
      EXPECT_EQ(stats.draft_fault, "");
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(plain[i].tokens[0], guessed[i].tokens[0]) << "request " << i;
      }
    }
  }
}

TEST(EagleOnGpu, guesses_alike_past_the_host_and_through_it) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  GoldenHead here;
  std::vector<ServiceRequest> requests;
  for (const auto& one : golden_cases("gauntlet-tiny")) {
    const auto size = std::min<std::size_t>(one.ids.size(), 40 + 17 * requests.size());
    requests.push_back({.prompt = {one.ids.begin(), one.ids.begin() + size},
                        .max_tokens = 40,
                        .end_of_sequence = EndOfSequence::ignored});
  }
  const auto through_host = make_cuda_eagle_drafter(here.head, here.weights.embedding,
                                                    {.positions = 8192, .longest = 4096})
                                .value();
  EXPECT_FALSE(through_host->reads_on_device());
  const auto past_host = here.drafter();
  EXPECT_TRUE(past_host->reads_on_device());
  const auto run = [&](std::shared_ptr<Drafter> drafter) {
    ServiceStats stats;
    auto events = answers(
        *here.executor, requests,
        {.drafter = std::move(drafter), .max_drafts = 3, .lengths = DraftLengths::fixed}, &stats);
    EXPECT_EQ(stats.draft_fault, "");
    return events;
  };
  auto through = run(through_host), past = run(past_host);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(through[i].tokens[0], past[i].tokens[0]) << "request " << i;
    EXPECT_EQ(through[i].ends[0].speculation.by_position, past[i].ends[0].speculation.by_position)
        << "request " << i;
    EXPECT_EQ(through[i].ends[0].speculation.drafted, past[i].ends[0].speculation.drafted);
  }
}

}  // namespace
}  // namespace gauntlet::engine::cuda::inline draft
