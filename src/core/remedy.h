// SPDX-License-Identifier: Apache-2.0
// The end of a message for which memspan-explain has a remedy. The .cc file that makes the message
// declares it:
//
//   MEMSPAN_REMEDY(kHeapFull, "heap-full", "What the message means.", "What the user does.");
//   return {Code::kOutOfMemory, fmt::format("{} bytes do not fit ...{}", bytes, kHeapFull)};
//
// tools/explain/collect_remedies.cmake copies the texts into memspan-explain. In Python it is
// python/memspan/remedy.py.
#pragma once

#define MEMSPAN_REMEDY(name, identifier, meaning, action) \
  const char name[] = " [memspan-explain " identifier "]"
