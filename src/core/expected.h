// Expected<T>: a value, or an error sentence that says what, where, and what to do.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace gauntlet {

/// The process exit code an error maps to.
enum class ErrorKind { check_failed = 1, wrong_use = 2, environment = 3 };

struct Error {
  std::string message;
  ErrorKind kind = ErrorKind::environment;
};

template <class T>
class Expected {
 public:
  Expected(T held) : state_(std::move(held)) {}
  Expected(Error error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T& value() {
    check(state_.index() == 0, "value() of an Expected that holds an error");
    return std::get<0>(state_);
  }
  const T& value() const {
    check(state_.index() == 0, "value() of an Expected that holds an error");
    return std::get<0>(state_);
  }
  const Error& error() const {
    check(state_.index() == 1, "error() of an Expected that holds a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// For operations that return nothing but may fail.
template <>
class Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Error& error() const {
    check(error_.has_value(), "error() of an Expected that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace gauntlet
