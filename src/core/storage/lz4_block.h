// LZ4's block format, read by ourselves, for host and device: where each sequence's bytes come from
// and go to, with every bound checked before a byte moves.
#pragma once
#include <cstdint>
#include <span>

namespace gauntlet {

/// Literals from the input, then a match from what was written already.
struct Lz4Sequence {
  std::int64_t literals_at = 0;  // in the input
  std::int64_t num_literals = 0;
  std::int64_t to = 0;        // in the output: where the literals go, and the match after them
  std::int64_t distance = 0;  // how far before its place the match begins; 0: no match (the last)
  std::int64_t match_length = 0;
};

/// Walks the sequences of a block. A sequence that it hands out lies within both buffers, and its
/// match within what earlier ones wrote.
class Lz4Parser {
 public:
  enum class Step { sequence, end, corrupt };

  constexpr Lz4Parser(const unsigned char* in, std::int64_t in_bytes, std::int64_t out_bytes)
      : in_(in), in_bytes_(in_bytes), out_bytes_(out_bytes) {}

  constexpr Step next(Lz4Sequence& sequence) {
    if (ended_) return Step::end;
    if (at_ >= in_bytes_) return Step::corrupt;
    const int token = in_[at_++];
    sequence = {};
    sequence.num_literals = token >> 4;
    if (!extend(sequence.num_literals)) return Step::corrupt;
    sequence.literals_at = at_;
    sequence.to = written_;
    if (sequence.num_literals > in_bytes_ - at_) return Step::corrupt;
    if (sequence.num_literals > out_bytes_ - written_) return Step::corrupt;
    at_ += sequence.num_literals;
    written_ += sequence.num_literals;
    if (at_ == in_bytes_) {
      // The last sequence has no match, whatever its token says of one's length.
      ended_ = true;
      return Step::sequence;
    }
    if (in_bytes_ - at_ < 2) return Step::corrupt;
    sequence.distance = in_[at_] | in_[at_ + 1] << 8;
    at_ += 2;
    sequence.match_length = token & kNibble;
    if (!extend(sequence.match_length)) return Step::corrupt;
    sequence.match_length += kLeastMatch;
    if (sequence.distance == 0 || sequence.distance > written_) return Step::corrupt;
    if (sequence.match_length > out_bytes_ - written_) return Step::corrupt;
    written_ += sequence.match_length;
    return Step::sequence;
  }

  /// Bytes of output that the sequences so far make.
  constexpr std::int64_t written() const { return written_; }

 private:
  static constexpr int kNibble = 15;
  static constexpr std::int64_t kLeastMatch = 4;

  /// A nibble of 15 goes on in bytes, until one is not 255. Lengths past the output are refused
  /// before they can grow beyond a number.
  constexpr bool extend(std::int64_t& length) {
    if (length != kNibble) return true;
    for (;;) {
      if (at_ >= in_bytes_ || length > out_bytes_) return false;
      const int more = in_[at_++];
      length += more;
      if (more != 255) return true;
    }
  }

  const unsigned char* in_;
  std::int64_t in_bytes_;
  std::int64_t out_bytes_;
  std::int64_t at_ = 0;
  std::int64_t written_ = 0;
  bool ended_ = false;
};

constexpr std::int64_t kLz4Corrupt = -1;

/// Where byte `i` of a match comes from, in the output. A match that runs into what it writes
/// itself repeats what stood before it, so that every byte of it can be moved at once.
constexpr std::int64_t lz4_match_source(const Lz4Sequence& sequence, std::int64_t i) {
  const std::int64_t begin = sequence.to + sequence.num_literals - sequence.distance;
  return begin + (i < sequence.distance ? i : i % sequence.distance);
}

/// Which bytes of a sequence are whose, where several lanes share the work.
struct Lz4Lane {
  int number = 0;
  int of = 1;
};

/// A lane's part of the literals. In any order.
constexpr void move_lz4_literals(const Lz4Sequence& sequence, const unsigned char* in,
                                 unsigned char* out, Lz4Lane lane) {
  for (std::int64_t i = lane.number; i < sequence.num_literals; i += lane.of) {
    out[sequence.to + i] = in[sequence.literals_at + i];
  }
}

/// A lane's part of the match: in any order, once all lanes have moved their literals.
constexpr void move_lz4_match(const Lz4Sequence& sequence, unsigned char* out, Lz4Lane lane) {
  for (std::int64_t i = lane.number; i < sequence.match_length; i += lane.of) {
    out[sequence.to + sequence.num_literals + i] = out[lz4_match_source(sequence, i)];
  }
}

/// How many bytes the block came to, or kLz4Corrupt. By one lane: what the device's decoder, whose
/// lanes are those of a warp, is held against.
constexpr std::int64_t decode_lz4_block(std::span<const unsigned char> in,
                                        std::span<unsigned char> out) {
  Lz4Parser parser(in.data(), static_cast<std::int64_t>(in.size()),
                   static_cast<std::int64_t>(out.size()));
  for (Lz4Sequence sequence;;) {
    switch (parser.next(sequence)) {
      case Lz4Parser::Step::corrupt:
        return kLz4Corrupt;
      case Lz4Parser::Step::end:
        return parser.written();
      case Lz4Parser::Step::sequence:
        break;
    }
    move_lz4_literals(sequence, in.data(), out.data(), {});
    move_lz4_match(sequence, out.data(), {});
  }
}

}  // namespace gauntlet
