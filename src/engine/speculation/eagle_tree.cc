#include "engine/speculation/eagle.h"
#include "engine/speculation/tree_search.h"

namespace gauntlet::engine::inline speculation {

Draft EagleDrafter::tree(EagleLayer::Cache& cache, const DraftWish& wish,
                         std::vector<float> feature) const {
  const std::int64_t hidden = layer_->config().hidden;
  const std::int64_t known = cache.length;
  const auto id_of = [&](std::int64_t draft_id) { return layer_->target_id(draft_id); };
  TreeSearch search(wish.tree, wish.most);
  std::unordered_map<std::int32_t, std::int32_t> places;          // of guesses, in the cache
  std::unordered_map<std::int32_t, std::vector<float>> features;  // that come out behind them
  std::vector<float> rows = std::move(feature);                   // of those followed
  while (true) {
    const auto logits = layer_->logits(rows.data(), std::ssize(search.followed()));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      search.add(i, logits[i],
                 layer_->kernels().log_sum_exp(logits[i].data(), std::ssize(logits[i])), id_of);
      const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i) * hidden;
      features[search.followed()[i]].assign(row, row + hidden);
    }
    if (!search.descend()) return search.draft();
    std::vector<std::int32_t> tokens;
    std::vector<std::vector<std::int32_t>> paths;
    std::vector<float> before;
    for (const std::int32_t guess : search.followed()) {
      const std::int32_t parent = search[guess].parent;
      tokens.push_back(search[guess].token);
      paths.emplace_back();
      for (const std::int32_t one : search.path_to(parent)) paths.back().push_back(places.at(one));
      before.insert(before.end(), features.at(parent).begin(), features.at(parent).end());
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      places[search.followed()[i]] =
          static_cast<std::int32_t>(cache.length + static_cast<std::int64_t>(i));
    }
    rows.assign(before.size(), 0);
    layer_->run_branches(cache, known, tokens, paths, before.data(), rows.data());
  }
}

}  // namespace gauntlet::engine::inline speculation
