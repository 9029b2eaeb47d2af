#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gle {

// The values are the exit codes of the gle-* programs.
enum class ErrorCode {
  runtime = 1,
  usage = 2,
  data = 3,
  weights = 4,
  memory = 5,
  io = 6,
  not_finite = 7,
};

// What a user of the engine can cause and may want to catch.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

template <class... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(code, text.str());
}

// A rule that the caller of an op broke: the message names the op, the rule and what was found.
template <class... Parts>
void require(bool holds, std::string_view op, const Parts&... parts) {
  if (!holds) [[unlikely]] {
    fail(ErrorCode::usage, op, ": ", parts...);
  }
}

// A bug of the engine itself: prints its place and aborts.
[[noreturn]] void bug(const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

inline void invariant(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    bug(what, file, line);
  }
}

}  // namespace gle
