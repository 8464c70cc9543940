// In which order tiles are computed: at any time those that run should share rows and columns, so
// that L2 reads them from memory once.
#pragma once

namespace gauntlet::labs::matmul_ladder {

struct TilePlace {
  int row = 0;
  int column = 0;
};

/// Column after column through kGroup rows of tiles, then through the next rows.
template <int kGroup = 8>
constexpr TilePlace tile_in_groups(int tile, int rows, int columns) {
  const int group = tile / (kGroup * columns);
  const int first = group * kGroup, in_group = tile - first * columns;
  const int height = rows - first < kGroup ? rows - first : kGroup;
  return {.row = first + in_group % height, .column = in_group / height};
}

}  // namespace gauntlet::labs::matmul_ladder
