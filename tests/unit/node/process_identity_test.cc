// SPDX-License-Identifier: Apache-2.0
#include "node/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace memspan {
namespace {

TEST(ProcessIdentityTest, IsTheNumberAndItsNamespace) {
  EXPECT_EQ(ProcessIdentity::own().process, getpid());
  EXPECT_NE(ProcessIdentity::own().pid_namespace, 0);
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
