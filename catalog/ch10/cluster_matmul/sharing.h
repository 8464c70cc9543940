// Which blocks of a cluster of two by two share what. Block x + 2 y has the rows of its x and the
// columns of its y.
#pragma once

namespace gauntlet::ch10::cluster_matmul {

inline constexpr int kBlocks = 4;
inline constexpr int kShares = 2;   // blocks that share a tile, of A or of B
inline constexpr int kWriters = 3;  // blocks that write into a block's stages

/// A bit for each block that needs the same rows of A, or the same columns of B.
constexpr unsigned sharing_rows(int rank) { return 0b101u << (rank % 2); }
constexpr unsigned sharing_columns(int rank) { return 0b11u << (rank / 2 * 2); }

/// Which part of a shared tile a block fetches for all who share it.
constexpr int part_of_rows(int rank) { return rank / 2; }
constexpr int part_of_columns(int rank) { return rank % 2; }

/// The blocks that write into this one's stages, and so wait until it has read them.
constexpr int writer(int rank, int number) { return rank ^ number; }

}  // namespace gauntlet::ch10::cluster_matmul
