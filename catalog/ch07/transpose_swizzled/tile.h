// The tile of both sides and which thread touches what of it; a layout proves itself with
// conflict_free().
#pragma once

namespace gauntlet::ch07::transpose_swizzled {

constexpr int kTileRows = 128;
constexpr int kTileColumns = 32;
constexpr int kThreads = 256;
constexpr int kVector = 4;                               // floats of a 16-byte access
constexpr int kVectorsPerRow = kTileColumns / kVector;   // threads that read a row of the tile
constexpr int kRowsPerStep = kThreads / kVectorsPerRow;  // rows that a block reads at a time
constexpr int kPerThread = kTileRows / kRowsPerStep;     // vectors that a thread moves
constexpr int kBanks = 32;
static_assert(kRowsPerStep == kTileColumns, "a step writes one part of every column");
static_assert(kVectorsPerRow * kVector * kPerThread == kTileRows, "the steps write whole columns");

/// Whether slot(row, column), the word of the tile that holds an element, gives every warp access
/// 32 different banks.
template <class Slot>
constexpr bool conflict_free(Slot slot) {
  for (int warp = 0; warp < kThreads / kBanks; ++warp) {
    for (int step = 0; step < kPerThread; ++step) {
      for (int k = 0; k < kVector; ++k) {
        unsigned written = 0, read = 0;
        for (int thread = warp * kBanks; thread < (warp + 1) * kBanks; ++thread) {
          const int line = thread / kVectorsPerRow;
          const int vector = thread % kVectorsPerRow;
          const int turned_row = (vector + step * kVectorsPerRow) * kVector;
          written |= 1u << slot(line + step * kRowsPerStep, vector * kVector + k) % kBanks;
          read |= 1u << slot(turned_row + k, line) % kBanks;
        }
        if (written != ~0u || read != ~0u) return false;
      }
    }
  }
  return true;
}

}  // namespace gauntlet::ch07::transpose_swizzled
