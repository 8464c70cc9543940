// In place of the toolkit's: what checks and launches use.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include "core/random.h"

/// A stream is an emulated GPU: its order of events, and the first fault of what was launched.
struct CUstream_st {
  gauntlet::Random random;
  std::string fault = {};
};
using cudaStream_t = CUstream_st*;

enum EmulatedError { cudaSuccess, cudaErrorEmulated };
using cudaError_t = EmulatedError;
inline const char* cudaGetErrorName(cudaError_t) { return "cudaErrorEmulated"; }
inline const char* cudaGetErrorString(cudaError_t) { return "not an emulated launch"; }
