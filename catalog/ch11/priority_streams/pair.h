// How long does a short request wait beside bulk work, and how long if it may go first?
#pragma once
#include <cstdint>

namespace gauntlet::ch11::priority_streams {

constexpr int kBulkRounds = 1024;  // of a word in a kernel: a block takes some 20 us of an H200
constexpr int kRequestRounds = 64;

/// Bulk work, kernel after kernel over the same words, and requests that come one by one meanwhile.
struct Params {
  const std::uint32_t* bulk_in;     // [bulk_words]
  const std::uint32_t* request_in;  // [requests, request_words]
  const std::uint32_t* factor;      // [kBulkRounds]: affine rounds, see core/affine_rounds.h
  std::uint32_t* bulk_out;          // [bulk_words]
  std::uint32_t* answer;            // [requests, request_words]
  std::int64_t bulk_words;
  std::int64_t bulk_kernels;
  std::int64_t requests;
  std::int64_t request_words;
};

}  // namespace gauntlet::ch11::priority_streams
