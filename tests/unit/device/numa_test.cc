// SPDX-License-Identifier: Apache-2.0
// Memory of a NUMA node, on systems that refuse to choose one.
#include "device/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <thread>

#include "core/pages.h"
#include "support/forbidden_syscalls.h"
#include "support/needs.h"

namespace memspan {
namespace {

TEST(NumaTest, WithOneNodeNothingDependsOnMbind) {
  for (const char* online : {"0", "0\n", ""}) {
    EXPECT_TRUE(without_mbind(0, online, EPERM).is_ok()) << online;
    EXPECT_EQ(without_mbind(1, online, EPERM).code(), Code::kInvalidArgument) << online;
  }
  EXPECT_TRUE(without_mbind(3, "3", ENOSYS).is_ok());
  EXPECT_EQ(without_mbind(0, "3", ENOSYS).code(), Code::kInvalidArgument);
}

TEST(NumaTest, WithSeveralNodesTheRefusedCallIsNamed) {
  for (const int node : {0, 1, 4}) {
    const Status status = without_mbind(node, "0-1,4", EPERM);
    EXPECT_EQ(status.code(), Code::kNotSupported) << node;
    EXPECT_THAT(status.message(), testing::HasSubstr("refuses mbind (Operation not permitted)"));
    EXPECT_THAT(status.message(), testing::HasSubstr("SYS_NICE"));
  }
  for (const int node : {2, 3, 5})
    EXPECT_EQ(without_mbind(node, "0-1,4", EPERM).code(), Code::kInvalidArgument) << node;
}

// A filter of system calls, which is the thread's that ends with the test.
TEST(NumaTest, ARefusedMbindIsNoFailure) {
  MEMSPAN_NEEDS("seccomp");
  for (const int error : {EPERM, ENOSYS})
    std::thread([error] {
      constexpr long kMbind = SYS_mbind;
      ASSERT_EQ(forbid_syscalls(&kMbind, 1, error), 0);
      void* const place =
          mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(place, MAP_FAILED);
      const Status status = prefer_node(place, page_size(), current_node());
      EXPECT_TRUE(status.is_ok() || status.code() == Code::kNotSupported) << status.to_string();
      EXPECT_EQ(prefer_node(place, page_size(), 1023).code(), Code::kInvalidArgument);
      munmap(place, page_size());
    }).join();
}

}  // namespace
}  // namespace memspan
