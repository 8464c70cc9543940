// Does the head compute what its golden values say, and is what it guesses what came of them?
#include "engine/speculation/eagle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/golden.h"
#include "engine/serving/recorded_events.h"
#include "engine/speculation/model_drafter.h"
#include "engine/speculation/ngram.h"

namespace gauntlet::engine {
namespace {

constexpr float kHeadTolerance = 0.02f;  // the golden values' own, for logits of a head on CPUs

model::EagleHead golden_head(const model::ModelConfig& target) {
  const auto files =
      model::open_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny-eagle3");
  return model::load_eagle_head(files.value(), target).value();
}

struct GoldenHead {
  explicit GoldenHead(const EngineOptions& options = {})
      : weights(golden_model("gauntlet-tiny")),
        head(golden_head(weights.config)),
        executor(
            std::move(make_cpu_executor(weights, {.options = options,
                                                  .export_layers = head.config.export_layers()})
                          .value())),
        layer(std::make_shared<EagleLayer>(head, weights.embedding, weights.storage,
                                           executor->plan().simd)),
        golden(golden_file("gauntlet-tiny-eagle3")) {}

  model::ModelWeights weights;
  model::EagleHead head;
  std::unique_ptr<Executor> executor;
  std::shared_ptr<const EagleLayer> layer;
  nlohmann::json golden;
};

TEST(EagleLayer, drafts_what_the_golden_values_say) {
  GoldenHead here;
  const std::int64_t hidden = here.weights.config.hidden;
  for (const auto& entry : here.golden.at("cases")) {
    auto ids = entry.at("ids").get<std::vector<std::int32_t>>();
    const SequenceId sequence = here.executor->kv().create();
    std::vector<float> features;
    for (std::int64_t at = 0; at < std::ssize(ids); at += 100) {
      const std::int64_t end = std::min<std::int64_t>(at + 100, std::ssize(ids));
      const ItemResult result =
          step(*here.executor, {.sequence = sequence,
                                .tokens = {ids.begin() + at, ids.begin() + end},
                                .want = Want::nothing,
                                .exports = true});
      features.resize(static_cast<std::size_t>(end * hidden));
      here.layer->fuse(result.residuals, 0, features.data() + at * hidden);
    }
    here.executor->kv().free(sequence);
    const auto first = entry.at("fused_first8").get<std::vector<float>>();
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_NEAR(features[features.size() - hidden + i], first[i], 5e-3);
    }
    ids.push_back(entry.at("next").get<std::int32_t>());
    EagleLayer::Cache cache;
    std::vector<float> out(features.size());
    here.layer->run(cache, std::span(ids).subspan(1), features.data(), out.data());
    std::vector<float> feature(out.end() - hidden, out.end());
    const auto drafted = entry.at("drafted").get<std::vector<std::int32_t>>();
    for (std::size_t i = 0; i < drafted.size(); ++i) {
      const std::vector<float> logits = here.layer->logits(feature.data());
      std::map<std::int32_t, float> by_target;
      for (std::size_t d = 0; d < logits.size(); ++d) {
        by_target[here.layer->target_id(static_cast<std::int64_t>(d))] = logits[d];
      }
      for (const auto& pair : entry.at("top8")[i]) {
        EXPECT_NEAR(by_target[pair[0].get<std::int32_t>()], pair[1].get<float>(), kHeadTolerance)
            << "draft " << i;
      }
      const std::int64_t best = here.layer->kernels().argmax(logits.data(), std::ssize(logits));
      EXPECT_EQ(here.layer->target_id(best), drafted[i]) << "draft " << i;
      std::vector<float> next(feature.size());
      here.layer->run(cache, {&drafted[i], 1}, feature.data(), next.data());
      feature = std::move(next);
    }
  }
}

std::vector<RecordedEvents> answers(Executor& executor, const std::vector<ServiceRequest>& requests,
                                    const Speculation& speculation, ServiceStats* stats = nullptr) {
  std::vector<RecordedEvents> events(requests.size());
  Service service(executor, {.scheduler = {.max_step_tokens = 96}, .speculation = speculation});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(service.submit(requests[i], events[i].events_to()));
    for (std::size_t s = 0; s < i % 3; ++s) service.step();
  }
  while (service.step()) {
  }
  EXPECT_EQ(service.check_integrity(), "");
  if (stats) *stats = service.stats();
  return events;
}

/// Writes down how long each text was when its next guesses were asked for.
class WatchedDrafter final : public Drafter {
 public:
  explicit WatchedDrafter(std::shared_ptr<const EagleLayer> layer) : inner_(std::move(layer)) {}
  std::string_view name() const override { return inner_.name(); }
  std::vector<int> residuals_after() const override { return inner_.residuals_after(); }
  void computed(std::span<const ComputedTokens> tokens) override { inner_.computed(tokens); }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    lengths.push_back(std::ssize(wishes[0].tokens));
    return inner_.propose(wishes);
  }
  std::vector<std::int64_t> lengths;

 private:
  EagleDrafter inner_;
};

TEST(ModelDrafter, guesses_what_its_model_says_alone_and_keeps_no_page) {
  const model::ModelWeights weights = golden_model("gauntlet-draft");
  auto executor = executor_for(weights, {});
  KvPool& pool = executor->kv();
  ModelDrafter drafter(std::move(executor));
  const std::int64_t free_pages = pool.free_pages(KvGroup::full);
  for (const GoldenCase& golden : golden_cases("gauntlet-draft")) {
    // The text grows by some tokens of the model's own, and then by one that it did not guess.
    std::vector<std::int32_t> text = golden.ids;
    for (std::size_t at = 0; at + 6 < golden.greedy.size(); at += 3) {
      const DraftWish wish{.id = 1, .tokens = text, .most = 5};
      const Draft draft = drafter.propose({&wish, 1})[0];
      ASSERT_EQ(draft.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) {
        if (golden.margins[at + i] < kDecided) break;
        EXPECT_EQ(draft[i], golden.greedy[at + i]);
      }
      text.insert(text.end(), golden.greedy.begin() + static_cast<std::ptrdiff_t>(at),
                  golden.greedy.begin() + static_cast<std::ptrdiff_t>(at) + 3);
      EXPECT_EQ(pool.check_integrity(), "");
    }
    drafter.end(1);
    EXPECT_EQ(pool.free_pages(KvGroup::full), free_pages);
  }
}

TEST(ModelDrafter, branches_into_what_its_model_finds_likeliest_and_keeps_no_page) {
  const model::ModelWeights weights = golden_model("gauntlet-draft");
  const auto judge = executor_for(weights, {});
  auto executor = executor_for(weights, {});
  KvPool& pool = executor->kv();
  ModelDrafter drafter(std::move(executor));
  const std::int64_t free_pages = pool.free_pages(KvGroup::full);
  const std::vector<std::int32_t> first = golden_cases("gauntlet-draft")[0].ids;
  const std::vector<std::int32_t> second = {first.begin(), first.begin() + 5};
  const TreeShape tree{.width = 3, .depth = 4};
  std::vector<DraftWish> wishes = {{.id = 1, .tokens = first, .most = 12, .tree = tree},
                                   {.id = 2, .tokens = second, .most = 2, .tree = tree},
                                   {.id = 3, .tokens = second, .most = 3}};
  const std::vector<Draft> drafts = drafter.propose(wishes);
  EXPECT_EQ(drafts[0].size(), 12u);
  EXPECT_TRUE(drafts[0].is_tree());
  EXPECT_GT(drafts[0].num_levels(), 1);
  EXPECT_EQ(drafts[1].size(), 2u);
  EXPECT_EQ(drafts[2].size(), 3u);
  EXPECT_FALSE(drafts[2].is_tree());
  // Each guess is among the three likeliest behind its path, by the model alone.
  for (std::size_t i = 0; i < drafts[0].size(); ++i) {
    std::vector<std::int32_t> path;
    for (auto p = drafts[0].parent(i); p >= 0; p = drafts[0].parent(p)) {
      path.insert(path.begin(), drafts[0][p]);
    }
    std::vector<std::int32_t> text = first;
    text.insert(text.end(), path.begin(), path.end());
    const SequenceId sequence = judge->kv().create();
    const std::vector<float> logits = prefill(*judge, sequence, text, 64).logits;
    judge->kv().free(sequence);
    const auto likelier =
        std::ranges::count_if(logits, [&](float logit) { return logit > logits[drafts[0][i]]; });
    EXPECT_LT(likelier, 3) << "guess " << i;
  }
  EXPECT_EQ(pool.check_integrity(), "");
  for (const std::int64_t id : {1, 2, 3}) drafter.end(id);
  EXPECT_EQ(pool.free_pages(KvGroup::full), free_pages);
}

TEST(EagleDrafter, has_as_many_guesses_accepted_as_the_golden_values_say) {
  GoldenHead here;
  double steps = 0;
  double accepted = 0;
  for (const auto& entry : here.golden.at("cases")) {
    const auto expected = entry.at("accepted_along_greedy").get<std::vector<std::int64_t>>();
    const auto watched = std::make_shared<WatchedDrafter>(here.layer);
    answers(*here.executor,
            {{.prompt = entry.at("ids").get<std::vector<std::int32_t>>(),
              .max_tokens = 80,
              .end_of_sequence = EndOfSequence::ignored}},
            {.drafter = watched, .max_drafts = 5, .lengths = DraftLengths::fixed});
    ASSERT_GT(watched->lengths.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      steps += 1;
      accepted += static_cast<double>(watched->lengths[i + 1] - watched->lengths[i] - 1);
    }
  }
  EXPECT_NEAR(accepted / steps, here.golden.at("mean_accepted_of_5_greedy").get<double>(), 0.1);
}

std::vector<ServiceRequest> mixed_requests() {
  std::vector<ServiceRequest> requests;
  for (const auto& one : golden_cases("gauntlet-tiny")) {
    const auto size = std::min<std::size_t>(one.ids.size(), 150);
    ServiceRequest request{.prompt = {one.ids.begin(), one.ids.begin() + size},
                           .max_tokens = 24,
                           .end_of_sequence = EndOfSequence::ignored};
    if (requests.size() % 3 == 1) {
      request.sampling = {.temperature = 0.9f, .top_p = 0.9f, .seed = requests.size()};
    }
    if (requests.size() % 3 == 2) {
      request.allowed = [](std::span<const std::int32_t> output) {
        return std::vector<std::uint32_t>(128, output.size() % 2 == 0 ? 0x0FFFFFF0u : ~0u);
      };
    }
    if (requests.size() % 4 == 3) request.top_log_probs = 2;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Speculation, gives_gauntlet_tiny_the_tokens_and_log_probabilities_it_has_without) {
  GoldenHead here;
  const std::vector<ServiceRequest> requests = mixed_requests();
  auto plain = answers(*here.executor, requests, {});
  const std::vector<std::shared_ptr<Drafter>> drafters = {
      std::make_shared<NgramDrafter>(), std::make_shared<EagleDrafter>(here.layer),
      std::make_shared<ModelDrafter>(executor_for(golden_model("gauntlet-draft"), {}))};
  for (const auto& drafter : drafters) {
    for (const DraftLengths lengths : {DraftLengths::fixed, DraftLengths::measured}) {
      SCOPED_TRACE(drafter->name());
      ServiceStats stats;
      auto guessed = answers(*here.executor, requests,
                             {.drafter = drafter, .max_drafts = 3, .lengths = lengths}, &stats);
      EXPECT_EQ(stats.draft_fault, "");
      if (lengths == DraftLengths::fixed) {
        EXPECT_GT(stats.speculation.accepted, 0);
      }
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(plain[i].tokens[0], guessed[i].tokens[0]) << "request " << i;
        ASSERT_EQ(plain[i].events.size(), guessed[i].events.size());
        for (std::size_t t = 0; t < plain[i].events.size(); ++t) {
          EXPECT_EQ(plain[i].events[t].log_probability, guessed[i].events[t].log_probability);
        }
      }
    }
  }
}

TEST(EagleLayer, computes_branches_as_it_does_chains) {
  GoldenHead here;
  const std::int64_t hidden = here.weights.config.hidden;
  const std::vector<std::int32_t> known = {17, 4, 99, 250, 8, 31, 7, 12, 77, 5, 64, 3, 2, 1};
  std::vector<float> features(known.size() * static_cast<std::size_t>(hidden));
  for (std::size_t i = 0; i < features.size(); ++i) {
    features[i] = 0.01f * static_cast<float>(i % 97) - 0.4f;
  }
  EagleLayer::Cache cache;
  std::vector<float> out(features.size());
  here.layer->run(cache, known, features.data(), out.data());
  const EagleLayer::Cache before = cache;
  const std::vector<float> last(out.end() - hidden, out.end());
  // Two branches, a level at a time: their places in the cache lie among each other.
  const std::vector<std::vector<std::int32_t>> branches = {{40, 41, 42}, {50, 51, 52}};
  std::vector<std::vector<float>> of_branch(2, last);
  std::vector<std::vector<std::int32_t>> paths(2);
  for (std::size_t level = 0; level < 3; ++level) {
    const std::vector<std::int32_t> tokens = {branches[1][level], branches[0][level]};
    const std::vector<std::vector<std::int32_t>> both_paths = {paths[1], paths[0]};
    std::vector<float> both = of_branch[1];
    both.insert(both.end(), of_branch[0].begin(), of_branch[0].end());
    std::vector<float> after(both.size());
    const auto place = static_cast<std::int32_t>(cache.length);
    here.layer->run_branches(cache, std::ssize(known), tokens, both_paths, both.data(),
                             after.data());
    of_branch[1].assign(after.begin(), after.begin() + hidden);
    of_branch[0].assign(after.begin() + hidden, after.end());
    paths[1].push_back(place);
    paths[0].push_back(place + 1);
  }
  for (std::size_t b = 0; b < 2; ++b) {
    EagleLayer::Cache alone = before;
    std::vector<float> feature = last;
    for (const std::int32_t token : branches[b]) {
      std::vector<float> next(feature.size());
      here.layer->run(alone, {&token, 1}, feature.data(), next.data());
      feature = std::move(next);
    }
    EXPECT_EQ(of_branch[b], feature) << "branch " << b;
  }
}

/// Asks as `tree` has it, whoever asks, and writes down what was guessed.
class TreeDrafter final : public Drafter {
 public:
  TreeDrafter(std::shared_ptr<const EagleLayer> layer, const TreeShape& tree)
      : inner_(std::move(layer)), tree_(tree) {}
  std::string_view name() const override { return inner_.name(); }
  bool fans_out() const override { return true; }
  std::vector<int> residuals_after() const override { return inner_.residuals_after(); }
  void computed(std::span<const ComputedTokens> tokens) override { inner_.computed(tokens); }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    std::vector<Draft> drafts = inner_.propose(wishes);
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      EXPECT_TRUE(drafts[i].is_well_formed());
      EXPECT_LE(std::ssize(drafts[i]), wishes[i].most);
      EXPECT_LE(drafts[i].num_levels(), tree_.depth);
      branched += drafts[i].is_tree();
    }
    return drafts;
  }
  int branched = 0;

 private:
  EagleDrafter inner_;
  const TreeShape tree_;
};

TEST(Speculation, gives_gauntlet_tiny_the_same_by_trees) {
  GoldenHead here;
  const std::vector<ServiceRequest> requests = mixed_requests();
  auto plain = answers(*here.executor, requests, {});
  const TreeShape tree{.width = 3, .depth = 4};
  const auto head = std::make_shared<TreeDrafter>(here.layer, tree);
  const std::vector<std::shared_ptr<Drafter>> drafters = {
      head, std::make_shared<NgramDrafter>(),
      std::make_shared<ModelDrafter>(executor_for(golden_model("gauntlet-draft"), {}))};
  for (const auto& drafter : drafters) {
    for (const DraftLengths lengths : {DraftLengths::fixed, DraftLengths::measured}) {
      SCOPED_TRACE(drafter->name());
      ServiceStats stats;
      auto guessed =
          answers(*here.executor, requests,
                  {.drafter = drafter, .max_drafts = 12, .lengths = lengths, .tree = tree}, &stats);
      EXPECT_EQ(stats.draft_fault, "");
      if (lengths == DraftLengths::fixed) {
        EXPECT_GT(stats.speculation.accepted, 0);
      }
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(plain[i].tokens[0], guessed[i].tokens[0]) << "request " << i;
        ASSERT_EQ(plain[i].events.size(), guessed[i].events.size());
        for (std::size_t t = 0; t < plain[i].events.size(); ++t) {
          EXPECT_EQ(plain[i].events[t].log_probability, guessed[i].events[t].log_probability);
        }
      }
    }
  }
  EXPECT_GT(head->branched, 20);
}

TEST(EagleDrafter, has_more_accepted_of_a_tree_than_of_a_chain) {
  GoldenHead here;
  const auto accepted_per_step = [&](const TreeShape& tree, std::int64_t guesses) {
    SpeculationCounts counts;
    for (const auto& entry : here.golden.at("cases")) {
      ServiceStats stats;
      answers(*here.executor,
              {{.prompt = entry.at("ids").get<std::vector<std::int32_t>>(),
                .max_tokens = 80,
                .end_of_sequence = EndOfSequence::ignored}},
              {.drafter = std::make_shared<EagleDrafter>(here.layer),
               .max_drafts = guesses,
               .lengths = DraftLengths::fixed,
               .tree = tree},
              &stats);
      counts.steps += stats.speculation.steps;
      counts.accepted += stats.speculation.accepted;
    }
    return static_cast<double>(counts.accepted) / static_cast<double>(counts.steps);
  };
  const double chain = accepted_per_step({}, 5);
  const double narrow = accepted_per_step({.width = 2, .depth = 5}, 10);
  const double wide = accepted_per_step({.width = 4, .depth = 5}, 20);
  EXPECT_GT(narrow, chain + 0.1);
  EXPECT_GT(wide, narrow);
}

}  // namespace
}  // namespace gauntlet::engine
