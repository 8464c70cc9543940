// What does it cost to keep the fields a loop does not use next to those it does?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::aos_to_soa {

struct Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass;
  float charge;
};
constexpr int kFields = sizeof(Particle) / sizeof(float);

/// The arrays of the fields that the loop uses.
struct Fields {
  const float* vx;
  const float* vy;
  const float* vz;
  const float* mass;
};

struct Params {
  const Particle* particles;  // [count]
  Fields fields;              // [count] each: the same values
  float* energy;              // [count] mass/2 · |v|²
  std::int64_t count;
};

}  // namespace gauntlet::ch07::aos_to_soa
