#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "engine/error.h"

namespace gle::test {

inline void expect_text(const Error& error, ErrorCode code, const std::vector<std::string_view>& parts) {
  EXPECT_EQ(error.code(), code) << error.what();
  for (const std::string_view part : parts) {
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
        << "'" << error.what() << "' does not say '" << part << "'";
  }
}

}  // namespace gle::test

// EXPECT_ERROR(statement, code, {parts...}): the statement throws an Error of that code whose text has all the parts.
#define EXPECT_ERROR(statement, code, ...)                           \
  try {                                                              \
    (void)(statement);                                               \
    ADD_FAILURE() << #statement " throws nothing";                   \
  } catch (const ::gle::Error& error_of_statement) {                 \
    ::gle::test::expect_text(error_of_statement, code, __VA_ARGS__); \
  }
