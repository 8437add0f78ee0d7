// SPDX-License-Identifier: Apache-2.0
// What the tests of transfers share.
#pragma once

#include <gtest/gtest.h>
#include <smem/host/smem_trans.h>

#include <cstddef>
#include <string>

#include "support/sides.h"

namespace trans {

using sides::hear;
using sides::meet;
using sides::say;
using sides::Side;
using sides::Store;
using sides::Wire;

inline constexpr const char* kTarget = "127.0.0.1:6001";
inline constexpr const char* kInitiator = "127.0.0.1:6002";

// An endpoint, or the reason as a failure of the test.
smem_trans_t create(const char* url, const char* name, smem_trans_role_t role = SMEM_TRANS_BOTH);

// Pages of their own, of which a part in the middle can be given away; filled with `byte`.
unsigned char* fresh_pages(std::size_t bytes, int byte);

// The same where the kernel puts nothing by itself: what is unmapped of them stays so, although
// other threads map memory meanwhile. Once at a time in a process.
unsigned char* lone_pages(std::size_t bytes, int byte);

// Such pages full of 7, registered, and said to the other end of the wire.
unsigned char* offer_pages(smem_trans_t endpoint, std::size_t bytes, int wire);

// A target and an initiator, two processes with an endpoint each, which run (handle, their end of a
// wire). Neither ends before the other is done.
template <typename Target, typename Initiate>
void with_pair(Target target_runs, Initiate initiator_runs) {
  Store store;
  Wire wire;
  const auto run = [&](const char* name, int end, const auto& runs) {
    const auto handle = create(store.url(), name);
    runs(handle, end);
    meet(end);
    smem_trans_destroy(handle, 0);
  };
  Side target([&] { run(kTarget, wire.left(), target_runs); });
  Side initiator([&] { run(kInitiator, wire.right(), initiator_runs); });
  initiator.join();
  target.join();
}

// All of them have the value.
bool all_are(const void* bytes, std::size_t count, int value);

// How many a folder has.
std::size_t entries_of(const char* folder);

// The last failure's text has the words.
testing::AssertionResult says(const char* words);

}  // namespace trans
