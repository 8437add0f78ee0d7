// SPDX-License-Identifier: Apache-2.0
#include "node/process_identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace memspan {
namespace {

TEST(ProcessIdentityTest, AProcessSaysWhoItIsInWords) {
  const auto same = ProcessIdentity::parse(ProcessIdentity::own().to_string());
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(same->process, getpid());
  EXPECT_NE(same->pid_namespace, 0);
  for (const char* text : {"", "1", "x 2", "0 2", "1 -2", "1 2 3"})
    EXPECT_EQ(ProcessIdentity::parse(text).code(), Code::kInvalidArgument) << text;
}

TEST(ProcessIdentityTest, NumbersOfAnotherNamespaceTellNothing) {
  const ProcessIdentity own = ProcessIdentity::own();
  EXPECT_TRUE(own.may_be(getpid()));
  EXPECT_FALSE(own.may_be(getppid()));
  EXPECT_TRUE((ProcessIdentity{own.process, own.pid_namespace + 1}.may_be(getppid())));
  EXPECT_TRUE((ProcessIdentity{own.process, 0}.may_be(getppid())));
}

}  // namespace
}  // namespace memspan
