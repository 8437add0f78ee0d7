// SPDX-License-Identifier: Apache-2.0
// What a process is told that asks for a CUDA device on a machine without the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/choice.h"
#include "device/cuda/driver.h"
#include "device/reservation.h"

namespace memspan {
namespace {

using testing::HasSubstr;

TEST(CudaAbsentTest, TheReasonNamesTheLibraryThatIsMissing) {
  const auto driver = cuda::driver();
  if (driver.is_ok()) GTEST_SKIP() << "does not apply: there is a CUDA driver here";
  if (driver.code() == Code::kUnavailable)
    GTEST_SKIP() << "does not apply: " << driver.status().message();
  EXPECT_EQ(driver.code(), Code::kNotSupported);
  EXPECT_EQ(driver.status().message(),
            "no CUDA driver: libcuda.so.1 cannot be loaded [memspan-explain no-cuda-driver]");
  EXPECT_EQ(cuda::describe_devices().status().message(), driver.status().message());
  for (const char* text : {"cuda", "cuda:1"}) {
    ASSERT_EQ(setenv("MEMSPAN_DEVICE", text, 1), 0);
    const auto device = chosen_device();
    EXPECT_EQ(device.code(), Code::kNotSupported);
    EXPECT_THAT(device.status().message(), HasSubstr("MEMSPAN_DEVICE=cuda"));
    EXPECT_THAT(device.status().message(), HasSubstr("libcuda.so.1 cannot be loaded"));
  }
}

TEST(CudaAbsentTest, TheHostIsTheDeviceUnlessAnotherIsChosen) {
  ASSERT_EQ(unsetenv("MEMSPAN_DEVICE"), 0);
  EXPECT_EQ(chosen_device().value(), &host_device());
  ASSERT_EQ(setenv("MEMSPAN_DEVICE", "host", 1), 0);
  EXPECT_EQ(chosen_device().value(), &host_device());
}

TEST(CudaAbsentTest, AnotherWordIsRefused) {
  ASSERT_EQ(setenv("MEMSPAN_DEVICE", "gpu", 1), 0);
  const auto device = chosen_device();
  EXPECT_EQ(device.code(), Code::kInvalidArgument);
  EXPECT_EQ(device.status().message(),
            "MEMSPAN_DEVICE is \"gpu\", allowed are host, cuda and cuda:N");
}

}  // namespace
}  // namespace memspan
