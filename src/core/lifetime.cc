// SPDX-License-Identifier: Apache-2.0
#include "core/lifetime.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/check.h"

namespace memspan {
namespace {

struct Ends {
  ~Ends() {
    while (count > 0) functions[--count]();
  }
  std::array<void (*)(), 8> functions{};
  std::size_t count = 0;
};

}  // namespace

void at_thread_end(void (*end)()) {
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wexit-time-destructors"
#endif
  thread_local Ends ends;
#pragma GCC diagnostic pop
  const auto known = ends.functions.begin() + static_cast<std::ptrdiff_t>(ends.count);
  if (std::find(ends.functions.begin(), known, end) != known) return;
  MEMSPAN_CHECK(ends.count < ends.functions.size());
  ends.functions[ends.count++] = end;
}

}  // namespace memspan
