#include "engine/cuda/draft/eagle_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/text/text.h"
#include "engine/speculation/cuda_eagle.h"
#include "engine/steps/step_data.h"

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

CudaEagleDrafter::CudaEagleDrafter(std::unique_ptr<DraftHead> head, const DraftHead::Config& made)
    : head_(std::move(head)),
      longest_(made.longest),
      has_seam_(made.seam.stream != nullptr),
      free_pages_(static_cast<std::size_t>(made.num_pages)),
      free_slots_(has_seam_ ? kKeptRows : 0) {
  std::iota(free_pages_.rbegin(), free_pages_.rend(), 0);
  std::iota(free_slots_.rbegin(), free_slots_.rend(), 0);
}

void CudaEagleDrafter::end(std::int64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  begin_anew(found->second, 0);
  requests_.erase(found);
}

void CudaEagleDrafter::begin_anew(Request& request, std::int64_t position) {
  forget(request, 0);
  free_pages_.insert(free_pages_.end(), request.pages.begin(), request.pages.end());
  request = {.first = position};
}

void CudaEagleDrafter::forget(Request& request, std::int64_t from) {
  while (std::ssize(request.unseen) > from) {
    if (request.unseen.back().slot >= 0) free_slots_.push_back(request.unseen.back().slot);
    request.unseen.pop_back();
  }
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

std::vector<std::uint16_t> CudaEagleDrafter::joined(const ComputedTokens& some,
                                                    std::int64_t token) const {
  const model::EagleHeadConfig& config = head_->config();
  std::vector<float> row(static_cast<std::size_t>(config.features()));
  for (std::int64_t b = 0; b < std::ssize(config.boundaries); ++b) {
    std::copy_n(some.residuals.data() + (b * some.count + token) * config.hidden, config.hidden,
                row.data() + b * config.hidden);
  }
  head_->norm_residuals(row);
  std::vector<std::uint16_t> halves(row.size());
  std::ranges::transform(row, halves.begin(), to_bf16);
  return halves;
}

void CudaEagleDrafter::add(const ComputedTokens& some, std::int64_t skipped, Request& request) {
  if (some.device_row && some.count - skipped > std::ssize(free_slots_)) {
    // As if it had not been shown them.
    forget(request, 0);
    request.first = some.begin + some.count - request.length;
    return;
  }
  for (std::int64_t t = skipped; t < some.count; ++t) {
    if (!some.device_row) {
      request.unseen.push_back({.residuals = joined(some, t)});
      continue;
    }
    const int slot = free_slots_.back();
    free_slots_.pop_back();
    kept_.push_back({.from = static_cast<std::int32_t>(*some.device_row + t), .to = slot});
    request.unseen.push_back({.residuals = {}, .slot = slot});
  }
}

void CudaEagleDrafter::computed(std::span<const ComputedTokens> tokens) {
  kept_.clear();
  for (const ComputedTokens& some : tokens) {
    Request& request = requests_[some.id];
    const std::int64_t next = request.first + request.length;
    if (some.begin > next + std::ssize(request.unseen)) {
      // Of what came from the prefix cache, or was not shown, it has no residuals: it goes on
      // behind, with what it saw before.
      request.first = some.begin - request.length;
      forget(request, 0);
    } else if (some.begin + some.count <= next) {
      continue;  // computed once more after its pages were given up
    } else {
      forget(request, std::max<std::int64_t>(0, some.begin - next));
    }
    add(some, std::max<std::int64_t>(0, request.first + request.length - some.begin), request);
    const std::int64_t beyond = std::ssize(request.unseen) - kMostKept;
    if (beyond <= 0) continue;
    std::deque<Unseen> last;
    for (std::int64_t i = 0; i < kMostKept; ++i) {
      last.push_front(std::move(request.unseen.back()));
      request.unseen.pop_back();
    }
    begin_anew(request, request.first + request.length + beyond);
    request.unseen = std::move(last);
  }
  head_->keep(kept_);
}

void CudaEagleDrafter::answer(std::span<Going> going) {
  std::vector<HeadRow> rows;
  std::vector<HeadText> texts;
  const auto add = [&](const Going& one, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = one.request->first + one.request->length;
    for (std::int64_t i = begin; i < end; ++i) {
      const Unseen& unseen = one.request->unseen[static_cast<std::size_t>(i)];
      rows.push_back({.residuals = unseen.slot < 0 ? unseen.residuals.data() : nullptr,
                      .slot = unseen.slot,
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
  const std::int64_t stride =
      is_late_ ? head_->ask(rows, texts, static_cast<int>(most)) : std::ssize(going);
  std::vector<std::int32_t> ids;
  if (!is_late_) ids = head_->guess(rows, texts, static_cast<int>(most));
  for (std::int64_t t = 0; t < std::ssize(going); ++t) {
    Going& one = going[static_cast<std::size_t>(t)];
    for (std::int64_t g = 0; g < one.wish->most; ++g) {
      const std::int64_t place = g * stride + t;
      one.draft->push_back(is_late_ ? late_guess(place) : ids[static_cast<std::size_t>(place)]);
    }
    one.request->length += one.count;
    forget(*one.request, 0);
  }
}

void CudaEagleDrafter::reveal(Draft& draft) const {
  for (std::int32_t& id : draft) id = head_->answered(place_of_guess(id));
}

std::vector<Draft> CudaEagleDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts(wishes.size());
  std::vector<Going> going;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    Request& request = requests_[wishes[i].id];
    const std::int64_t count = std::ssize(wishes[i].tokens) - 1 - request.first - request.length;
    const bool knows = count >= 1 && std::ssize(request.unseen) >= count;
    if (!knows || wishes[i].most < 1) continue;
    if (!hold(request, request.length + count + wishes[i].most)) continue;
    going.push_back({.wish = &wishes[i], .request = &request, .draft = &drafts[i], .count = count});
  }
  // Guesses of one launch can be late: another would write over their places.
  is_late_ = has_seam_ && !going.empty() && std::ssize(going) <= kMostHeadRows &&
             std::ranges::all_of(wishes, &DraftWish::may_be_late);
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
                               .longest = std::min(config.longest, num_pages * kPage),
                               .seam = config.seam ? *config.seam : DeviceSeam{}};
  const std::int64_t needed = DraftHead::bytes_for(head.config, made);
  if (needed > static_cast<std::int64_t>(free_bytes)) {
    return Error{fmt::format(
        "the draft head needs {} on the GPU and {} are free: take less --gpu-memory for the model",
        format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(free_bytes)))};
  }
  return std::shared_ptr<Drafter>(std::make_shared<cuda::CudaEagleDrafter>(
      std::make_unique<DraftHead>(head, embedding, made), made));
}

}  // namespace gauntlet::engine::inline speculation
