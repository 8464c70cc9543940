#include "kernels/cpu/path_pages.h"

#include <algorithm>
#include <cstring>

namespace gauntlet::kernels::cpu {
namespace {

template <class Element>
Element* elements(std::uint8_t* bytes) {
  return reinterpret_cast<Element*>(bytes);
}
template <class Element>
const Element* elements(const std::uint8_t* bytes) {
  return reinterpret_cast<const Element*>(bytes);
}

}  // namespace

void copy_slot(const PageLayout& layout, ConstPage from, int from_slot, Page to, int to_slot) {
  const int dim = layout.head_dim;
  if (layout.type == KvType::f32) {
    for (int d = 0; d < dim; ++d) {
      elements<float>(to.keys)[d * kPageTokens + to_slot] =
          elements<float>(from.keys)[d * kPageTokens + from_slot];
    }
    std::memmove(elements<float>(to.values) + to_slot * dim,
                 elements<float>(from.values) + from_slot * dim,
                 static_cast<std::size_t>(dim) * sizeof(float));
    return;
  }
  // Two dimensions of a key share a word; a value shares its word with the neighbouring position's.
  for (int d = 0; d < dim / 2; ++d) {
    elements<std::uint32_t>(to.keys)[d * kPageTokens + to_slot] =
        elements<std::uint32_t>(from.keys)[d * kPageTokens + from_slot];
  }
  for (int d = 0; d < dim; ++d) {
    elements<std::uint16_t>(to.values)[(to_slot / 2 * dim + d) * 2 + to_slot % 2] =
        elements<std::uint16_t>(from.values)[(from_slot / 2 * dim + d) * 2 + from_slot % 2];
  }
}

std::int64_t path_bytes(const TreePath& path, std::int64_t last, const PageLayout& layout) {
  return (last / kPageTokens - path.first / kPageTokens + 1) * layout.bytes();
}

void gather_path(const TreePath& path, std::int64_t last, Page room, AttentionTask& task) {
  const PageLayout layout{task.head_dim, task.type};
  const std::int64_t bytes = layout.bytes();
  const std::int64_t first_page = path.first / kPageTokens;
  const auto page_at = [&](std::int64_t place) {
    const std::int64_t at = task.pages[place / kPageTokens] * task.page_stride_bytes;
    return ConstPage{task.k_base + at, task.v_base + at};
  };
  const ConstPage shared = page_at(path.first);
  std::memcpy(room.keys, shared.keys, static_cast<std::size_t>(bytes));
  std::memcpy(room.values, shared.values, static_cast<std::size_t>(bytes));
  const std::int64_t count = std::min(std::ssize(path.slots), last - path.first + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = path.first + i;
    const std::int64_t at = (position / kPageTokens - first_page) * bytes;
    copy_slot(layout, page_at(path.slots[i]), static_cast<int>(path.slots[i] % kPageTokens),
              {room.keys + at, room.values + at}, static_cast<int>(position % kPageTokens));
  }
  task.tail_page = first_page;
  task.tail_keys = room.keys;
  task.tail_values = room.values;
}

}  // namespace gauntlet::kernels::cpu
