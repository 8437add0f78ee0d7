// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return Status(Code::kInvalidArgument, "an odd number");
  return number / 2;
}

Status quarter(int number, int& into) {
  MEMSPAN_TRY_ASSIGN(int half, half_of(number), "halving once");
  MEMSPAN_TRY_ASSIGN(into, half_of(half), "halving twice");
  return Status::ok();
}

TEST(StatusTest, IsOnePointerWideAndOkByDefault) {
  static_assert(sizeof(Status) == sizeof(void*));
  EXPECT_TRUE(Status().is_ok());
  EXPECT_EQ(Status().code(), Code::kOk);
  EXPECT_EQ(Status().message(), "");
}

TEST(StatusTest, AnOkCodeIsOkWhateverTheText) {
  EXPECT_TRUE(Status(Code::kOk, "fine").is_ok());
}

TEST(StatusTest, CallersAddWhatTheyWereDoing) {
  int into = 0;
  EXPECT_TRUE(quarter(8, into).is_ok());
  EXPECT_EQ(into, 2);
  EXPECT_EQ(quarter(6, into).to_string(), "INVALID_ARGUMENT: halving twice: an odd number");
  EXPECT_EQ(quarter(3, into).message(), "halving once: an odd number");
}

TEST(StatusTest, WhatWasBeingDoneIsSaidOnce) {
  const Status failed = Status(Code::kTimeout, "nobody came").annotate("joining");
  EXPECT_EQ(failed.annotate("joining").message(), "joining: nobody came");
  EXPECT_EQ(failed.annotate("join").message(), "join: joining: nobody came");
}

TEST(StatusTest, CopiesAreIndependent) {
  Status first(Code::kTimeout, "late");
  Status second = first;
  first = Status::ok();
  EXPECT_EQ(second.message(), "late");
  EXPECT_TRUE(first.is_ok());
}

TEST(StatusTest, TranslatesErrnoWithItsNumber) {
  EXPECT_EQ(Status::from_errno("opening", ENOENT).message(),
            "opening: No such file or directory (errno 2)");
  EXPECT_EQ(Status::from_errno("opening", ENOENT).code(), Code::kSystem);
  EXPECT_EQ(Status::from_errno("mapping", ENOMEM).code(), Code::kOutOfMemory);
}

TEST(StatusTest, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code)
    EXPECT_NE(code_name(static_cast<Code>(code)), "UNKNOWN") << code;
}

}  // namespace
}  // namespace memspan
