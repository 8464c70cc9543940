// What went wrong with one request, as OpenAI's clients read it.
#pragma once
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace gauntlet::server::inline http {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;      // the field at fault; empty: none
  std::string code;       // empty: none
  int retry_after_s = 0;  // 0: not said
};

/// {"error": {"message", "type", "param", "code"}}
std::string to_json(const ApiError& error);

/// A value, or what to tell the client.
template <class T>
class ApiResult {
 public:
  ApiResult(T value) : state_(std::move(value)) {}
  ApiResult(ApiError error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return value(); }
  const T& operator*() const { return const_cast<ApiResult*>(this)->value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &**this; }
  const ApiError& error() const {
    check(state_.index() == 1, "error() of an ApiResult that holds a value");
    return std::get<1>(state_);
  }

 private:
  T& value() {
    check(state_.index() == 0, "value of an ApiResult that holds an error");
    return std::get<0>(state_);
  }

  std::variant<T, ApiError> state_;
};

}  // namespace gauntlet::server::inline http
