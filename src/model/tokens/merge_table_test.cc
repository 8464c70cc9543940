#include "model/tokens/merge_table.h"

#include <gtest/gtest.h>

#include <map>

#include "core/random.h"

namespace gauntlet::model::inline tokens {
namespace {

using Ids = std::vector<std::int32_t>;

/// The definition, word for word.
Ids merged_slowly(Ids ids, const std::map<std::pair<int, int>, std::pair<int, int>>& merges) {
  while (true) {
    std::size_t best = ids.size();
    int best_rank = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = merges.find({ids[i], ids[i + 1]});
      if (merge == merges.end()) continue;
      if (best == ids.size() || merge->second.first < best_rank) {
        best = i;
        best_rank = merge->second.first;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergeTable, merges_as_defined_whatever_the_table_and_the_length) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    // Any two of a few tokens make any other: ranks need not rise with the tokens they build.
    const auto num_tokens = static_cast<std::int32_t>(3 + random.next_below(12));
    const auto any = [&] {
      return static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(num_tokens)));
    };
    MergeTable table;
    std::array<std::int32_t, 256> byte_tokens;
    for (std::size_t byte = 0; byte < 256; ++byte) byte_tokens[byte] = static_cast<int>(byte % 3);
    table.set_byte_tokens(byte_tokens);
    std::map<std::pair<int, int>, std::pair<int, int>> merges;
    for (int rank = 0; rank < 2 * num_tokens; ++rank) {
      const std::int32_t left = any(), right = any(), made = any();
      table.add(left, right, made);
      merges[{left, right}] = {rank, made};  // the last of equal pairs counts
    }
    for (const std::size_t size : {1u, 2u, 3u, 63u, 64u, 65u, 66u, 200u}) {
      std::string piece(size, '\0');
      Ids ids;
      for (char& c : piece) {
        c = static_cast<char>(random.next_below(6));
        ids.push_back(byte_tokens[static_cast<unsigned char>(c)]);
      }
      Ids got = {-7};  // what is there stays
      table.encode(piece, got);
      EXPECT_EQ(got.front(), -7);
      got.erase(got.begin());
      EXPECT_EQ(got, merged_slowly(ids, merges)) << "round " << round << ", size " << size;
    }
  }
}

}  // namespace
}  // namespace gauntlet::model::inline tokens
