// opaque(): a value the optimizer cannot look through, for loops whose access width is the subject:
// such a loop is neither vectorised nor replaced by memcpy. Costs no instruction.
#pragma once

namespace gauntlet {

/// T is a float, a double or a vector that fits one register.
template <class T>
[[gnu::always_inline]] inline T opaque(T value) {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
#error "opaque() needs the name of this architecture's vector registers"
#endif
  return value;
}

}  // namespace gauntlet
