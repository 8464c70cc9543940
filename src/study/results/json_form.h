// How a type looks in JSON, said once for writing and for reading: a function
//   template <class Io> void fields(Io& io, Of<Io, Gain>& gain) { io("ratio", gain.ratio); ... }
// names the keys, and JsonWriter and JsonReader go through them.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "study/results/measured.h"

namespace gauntlet::study::inline results {

/// T for a reader, const T for a writer.
template <class Io, class T>
using Of = typename Io::template Of<T>;

/// A type that is written as another one: `to` and `from` convert.
template <class T>
struct JsonForm;
template <class T>
concept HasForm = requires(const T& value) { JsonForm<T>::to(value); };

/// A type whose JSON belongs to another folder: `to` gives it, `from` returns Expected<T>.
template <class T>
struct ForeignJson;
template <class T>
concept IsForeign = requires(const T& value) { ForeignJson<T>::to(value); };

/// All values of an enum that is written by name.
template <class E>
inline constexpr std::array<E, 0> kAllOf{};
template <class E>
std::string json_name(E value) {
  return name_of(value);
}

namespace io_detail {
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsMeasured = false;
template <class T>
inline constexpr bool kIsMeasured<Measured<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;
template <class T>
inline constexpr bool kIsList = kIsArray<T>;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsList<std::set<T>> = true;
}  // namespace io_detail

inline constexpr const char* kGap = "gap";

}  // namespace gauntlet::study::inline results
