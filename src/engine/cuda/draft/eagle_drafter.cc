#include "engine/cuda/draft/eagle_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/text/text.h"
#include "engine/speculation/cuda_eagle.h"

namespace gauntlet::engine::cuda::inline draft {
namespace {

using kernels::cuda::kPageTokens;

/// Of a long prompt no more is kept: the head begins further on, and guesses a little worse.
constexpr std::int64_t kMostKept = 4096;

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

CudaEagleDrafter::CudaEagleDrafter(std::unique_ptr<DraftHead> head, std::int64_t num_pages,
                                   std::int64_t longest)
    : head_(std::move(head)), longest_(longest), free_pages_(static_cast<std::size_t>(num_pages)) {
  std::iota(free_pages_.rbegin(), free_pages_.rend(), 0);
}

void CudaEagleDrafter::end(std::int64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  begin_anew(found->second, 0);
  requests_.erase(found);
}

void CudaEagleDrafter::begin_anew(Request& request, std::int64_t position) {
  free_pages_.insert(free_pages_.end(), request.pages.begin(), request.pages.end());
  request = {.first = position};
}

bool CudaEagleDrafter::hold(Request& request, std::int64_t positions) {
  const std::int64_t more = (positions + kPageTokens - 1) / kPageTokens - std::ssize(request.pages);
  if (positions > longest_ || more > std::ssize(free_pages_)) return false;
  for (std::int64_t i = 0; i < more; ++i) {
    request.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
  return true;
}

void CudaEagleDrafter::join(const ComputedTokens& some, std::int64_t skipped,
                            std::vector<std::uint16_t>& to) const {
  const model::EagleHeadConfig& config = head_->config();
  std::vector<float> row(static_cast<std::size_t>(config.features()));
  for (std::int64_t t = skipped; t < some.count; ++t) {
    for (std::int64_t b = 0; b < std::ssize(config.boundaries); ++b) {
      std::copy_n(some.residuals.data() + (b * some.count + t) * config.hidden, config.hidden,
                  row.data() + b * config.hidden);
    }
    head_->norm_residuals(row);
    std::ranges::transform(row, std::back_inserter(to), to_bf16);
  }
}

void CudaEagleDrafter::computed(std::span<const ComputedTokens> tokens) {
  for (const ComputedTokens& some : tokens) {
    Request& request = requests_[some.id];
    const std::int64_t next = request.first + request.length;
    const std::int64_t known = next + std::ssize(request.residuals) / features();
    if (some.begin > known) {
      // Of what came from the prefix cache, or was not shown, it has no residuals: it goes on
      // behind, with what it saw before.
      request.first = some.begin - request.length;
      request.residuals.clear();
    } else if (some.begin + some.count <= next) {
      continue;  // computed once more after its pages were given up
    } else {
      request.residuals.resize(
          static_cast<std::size_t>(std::max<std::int64_t>(0, some.begin - next) * features()));
    }
    join(some, std::max<std::int64_t>(0, request.first + request.length - some.begin),
         request.residuals);
    const std::int64_t beyond = std::ssize(request.residuals) / features() - kMostKept;
    if (beyond <= 0) continue;
    std::vector<std::uint16_t> kept(
        request.residuals.begin() + static_cast<std::ptrdiff_t>(beyond * features()),
        request.residuals.end());
    begin_anew(request, request.first + request.length + beyond);
    request.residuals = std::move(kept);
  }
}

void CudaEagleDrafter::answer(std::span<Going> going) {
  std::vector<HeadRow> rows;
  std::vector<HeadText> texts;
  const auto add = [&](const Going& one, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = one.request->first + one.request->length;
    for (std::int64_t i = begin; i < end; ++i) {
      rows.push_back({.residuals = one.request->residuals.data() + i * features(),
                      .token = one.wish->tokens[static_cast<std::size_t>(at + i + 1)],
                      .position = static_cast<std::int32_t>(one.request->length + i),
                      .text = static_cast<int>(texts.size())});
    }
  };
  std::int64_t all = 0, most = 0;
  for (const Going& one : going) {
    all += one.count;
    most = std::max(most, one.wish->most);
  }
  // What does not fit one launch goes ahead, but for each text's last position.
  const bool goes_ahead = all > kMostHeadRows;
  for (Going& one : going) {
    for (std::int64_t begin = 0; goes_ahead && begin < one.count - 1; begin += kMostHeadRows) {
      rows.clear();
      texts.clear();
      add(one, begin, std::min<std::int64_t>(begin + kMostHeadRows, one.count - 1));
      texts.push_back({.pages = one.request->pages});
      head_->see(rows, texts);
    }
  }
  rows.clear();
  texts.clear();
  for (const Going& one : going) {
    add(one, goes_ahead ? one.count - 1 : 0, one.count);
    texts.push_back(
        {.pages = one.request->pages, .last_row = static_cast<int>(std::ssize(rows)) - 1});
  }
  const std::vector<std::int32_t> ids = head_->guess(rows, texts, static_cast<int>(most));
  for (std::size_t t = 0; t < going.size(); ++t) {
    Going& one = going[t];
    for (std::int64_t g = 0; g < one.wish->most; ++g) {
      one.draft->push_back(ids[static_cast<std::size_t>(g) * going.size() + t]);
    }
    one.request->length += one.count;
    one.request->residuals.clear();
  }
}

std::vector<Draft> CudaEagleDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts(wishes.size());
  std::vector<Going> going;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    Request& request = requests_[wishes[i].id];
    const std::int64_t count = std::ssize(wishes[i].tokens) - 1 - request.first - request.length;
    const bool knows = count >= 1 && std::ssize(request.residuals) >= count * features();
    if (!knows || wishes[i].most < 1) continue;
    if (!hold(request, request.length + count + wishes[i].most)) continue;
    going.push_back({.wish = &wishes[i], .request = &request, .draft = &drafts[i], .count = count});
  }
  for (std::size_t first = 0; first < going.size(); first += kMostHeadRows) {
    answer(std::span(going).subspan(first,
                                    std::min<std::size_t>(kMostHeadRows, going.size() - first)));
  }
  return drafts;
}

}  // namespace gauntlet::engine::cuda::inline draft

namespace gauntlet::engine::inline speculation {

Expected<std::shared_ptr<Drafter>> make_cuda_eagle_drafter(const model::EagleHead& head,
                                                           const model::Matrix& embedding,
                                                           const CudaEagleConfig& config) {
  using cuda::DraftHead;
  if (const auto fits = DraftHead::check_shape(head.config); !fits) return fits.error();
  cuda_check(cudaSetDevice(config.device));
  constexpr std::int64_t kPage = kernels::cuda::kPageTokens;
  std::size_t free_bytes = 0, all_bytes = 0;
  cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes));
  // Keys and values take a quarter of what is free at most: a text without pages has no guesses.
  const std::int64_t page_bytes = 4 * kPage * head.config.num_kv_heads * head.config.head_dim;
  const std::int64_t num_pages = std::min((config.positions + kPage - 1) / kPage,
                                          static_cast<std::int64_t>(free_bytes) / 4 / page_bytes);
  const DraftHead::Config made{.device = config.device,
                               .num_pages = num_pages,
                               .longest = std::min(config.longest, num_pages * kPage)};
  const std::int64_t needed = DraftHead::bytes_for(head.config, made);
  if (needed > static_cast<std::int64_t>(free_bytes)) {
    return Error{fmt::format(
        "the draft head needs {} on the GPU and {} are free: take less --gpu-memory for the model",
        format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(free_bytes)))};
  }
  return std::shared_ptr<Drafter>(std::make_shared<cuda::CudaEagleDrafter>(
      std::make_unique<DraftHead>(head, embedding, made), made.num_pages, made.longest));
}

}  // namespace gauntlet::engine::inline speculation
