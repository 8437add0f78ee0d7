// SPDX-License-Identifier: Apache-2.0
// MEMSPAN_CHECK is for our own bugs: it prints one line and aborts. User input never reaches it.
#pragma once

namespace memspan {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace memspan

#define MEMSPAN_CHECK(condition)                     \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void()                                      \
       : ::memspan::check_failed(#condition, __FILE__, __LINE__))
