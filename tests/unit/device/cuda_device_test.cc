// SPDX-License-Identifier: Apache-2.0
// The CUDA device on the stand-in of its driver (support/cuda_driver), which ctest puts in
// LD_LIBRARY_PATH.
#include "device/cuda/cuda_device.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/pinned_memory.h"
#include "device/host/guarded_copy.h"

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr std::size_t kStep = kDeviceGranularity;
void* const kPlace = reinterpret_cast<void*>(0x3000'0000'0000);  // NOLINT: an address

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto about = cuda::describe_devices();
    if (!about.is_ok() || !about->starts_with("stand-in"))
      GTEST_SKIP() << "does not apply: the stand-in of the driver is not in LD_LIBRARY_PATH";
    device_ = cuda::open_device().value();
  }
  // What the device has there.
  std::vector<char> read(const std::byte* from, std::size_t bytes) {
    std::vector<char> text(bytes);
    EXPECT_TRUE(device_->copy(text.data(), from, bytes).is_ok());
    return text;
  }
  memspan::Device* device_ = nullptr;
};

TEST_F(CudaDeviceTest, IsDescribed) {
  EXPECT_EQ(cuda::describe_devices().value(), "stand-in 0 (device 0 of 2, driver 13.0)");
  EXPECT_EQ(device_->name(), "cuda");
  EXPECT_FALSE(device_->is_host());
}

TEST_F(CudaDeviceTest, AnOrdinalBeyondTheDevicesIsRefused) {
  for (const char* text : {"cuda:2", "cuda:-1", "cuda:", "cuda:x"}) {
    ASSERT_EQ(setenv("MEMSPAN_DEVICE", text, 1), 0);
    const Status refused = cuda::describe_devices().status();
    ASSERT_EQ(unsetenv("MEMSPAN_DEVICE"), 0);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(refused.message(), HasSubstr("the number of the GPU in MEMSPAN_DEVICE is"));
  }
}

TEST_F(CudaDeviceTest, AnOrdinalChoosesTheDevice) {
  ASSERT_EQ(setenv("MEMSPAN_DEVICE", "cuda:1", 1), 0);
  const auto about = cuda::describe_devices();
  ASSERT_EQ(unsetenv("MEMSPAN_DEVICE"), 0);
  EXPECT_EQ(about.value(), "stand-in 1 (device 1 of 2, driver 13.0)");
}

TEST_F(CudaDeviceTest, FailuresHaveTheDriversOwnName) {
  const Status failed = cuda::from_cuda("testing", 2);
  EXPECT_EQ(failed.code(), Code::kOutOfMemory);
  EXPECT_EQ(failed.message(),
            "testing: CUDA_ERROR_OUT_OF_MEMORY (says the stand-in of the driver)");
  EXPECT_EQ(cuda::from_cuda("testing", 77).message(), "testing: error 77 of the CUDA driver");
  EXPECT_TRUE(cuda::from_cuda("testing", 0).is_ok());
}

TEST_F(CudaDeviceTest, TheContextOfTheProgramComesBack) {
  cuda::ContextHandle before = nullptr, within = nullptr, after = nullptr;
  const cuda::Device device = cuda::device().value();
  device.functions->context_get_current(&before);
  {
    const auto context = cuda::CurrentContext::of(device);
    ASSERT_TRUE(context.is_ok());
    device.functions->context_get_current(&within);
  }
  device.functions->context_get_current(&after);
  EXPECT_EQ(within, device.context);
  EXPECT_EQ(before, after);
}

TEST_F(CudaDeviceTest, NewMemoryIsZero) {
  auto range = device_->reserve_at(4 * kStep, kPlace).value();
  auto memory = device_->allocate(2 * kStep, "test").value();
  ASSERT_TRUE(range->map(kStep, *memory, 2 * kStep).is_ok());
  const std::vector<char> there = read(range->base() + kStep, 2 * kStep);
  EXPECT_TRUE(std::all_of(there.begin(), there.end(), [](char byte) { return byte == 0; }));
}

TEST_F(CudaDeviceTest, BytesComeBackFromWhereTheyWereCopiedTo) {
  auto range = device_->reserve_at(2 * kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  const std::string text = "a row of letters";
  ASSERT_TRUE(device_->copy(range->base() + 100, text.data(), text.size()).is_ok());
  ASSERT_TRUE(device_->copy(range->base() + 8000, range->base() + 100, text.size()).is_ok());
  const std::vector<char> back = read(range->base() + 8000, text.size());
  EXPECT_EQ(std::string(back.begin(), back.end()), text);
}

TEST_F(CudaDeviceTest, APlainLoadFaults) {
  catch_copy_faults();
  auto range = device_->reserve_at(kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  char byte = 0;
  auto load = [&] { byte = *reinterpret_cast<volatile char*>(range->base()); };
  const auto fault = run_guarded(load);
  ASSERT_TRUE(fault.has_value());
  EXPECT_TRUE(fault->is_in(range->base(), 1));
}

TEST_F(CudaDeviceTest, ADescriptorNamesTheSameMemory) {
  auto range = device_->reserve_at(4 * kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  auto twin = device_->adopt(memory->duplicate().value()).value();
  ASSERT_TRUE(range->map(2 * kStep, *twin, kStep).is_ok());
  ASSERT_TRUE(device_->copy(range->base() + 5, "seen", 4).is_ok());
  const std::vector<char> seen = read(range->base() + 2 * kStep + 5, 4);
  EXPECT_EQ(std::string(seen.begin(), seen.end()), "seen");
  // The maker's end does not take it away from who has mapped it.
  ASSERT_TRUE(range->unmap(0, kStep).is_ok());
  memory.reset();
  EXPECT_EQ(read(range->base() + 2 * kStep + 5, 4), seen);
}

TEST_F(CudaDeviceTest, WhatIsNoMemoryOfADeviceIsNotAdopted) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd other(ends[1]);
  EXPECT_EQ(device_->adopt(Fd(ends[0])).code(), Code::kInvalidArgument);
}

TEST_F(CudaDeviceTest, UnmappedMemoryIsNotCopied) {
  auto range = device_->reserve_at(2 * kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  ASSERT_TRUE(range->unmap(0, 2 * kStep).is_ok());
  const Status refused = device_->copy(range->base(), "text", 4);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("CUDA_ERROR_INVALID_VALUE"));
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  EXPECT_TRUE(device_->copy(range->base(), "text", 4).is_ok());
}

TEST_F(CudaDeviceTest, ATakenPlaceIsNotReservedElsewhere) {
  void* const taken =
      mmap(kPlace, kStep, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(taken, kPlace);
  const auto refused = device_->reserve_at(kStep, kPlace);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  munmap(taken, kStep);
  EXPECT_EQ(device_->reserve_at(kStep, kPlace).value()->base(), kPlace);
}

TEST_F(CudaDeviceTest, MappingBeyondTheRangeIsRefused) {
  auto range = device_->reserve_at(kStep, kPlace).value();
  auto memory = device_->allocate(2 * kStep, "test").value();
  EXPECT_EQ(range->map(0, *memory, 2 * kStep).code(), Code::kInvalidArgument);
}

TEST_F(CudaDeviceTest, AShortageSaysWhatIsFreeAndTakesNothing) {
  // ctest gives 64 MiB.
  const auto refused = device_->allocate(std::size_t{80} << 20, "test");
  ASSERT_EQ(refused.code(), Code::kOutOfMemory);
  EXPECT_THAT(refused.status().message(), HasSubstr("64 MiB of 64 MiB are free"));
  EXPECT_TRUE(device_->allocate(std::size_t{64} << 20, "test").is_ok());
}

TEST_F(CudaDeviceTest, KnowsItsPointers) {
  auto range = device_->reserve_at(2 * kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  const char local = 0;
  EXPECT_TRUE(device_->owns(range->base() + kStep - 1));
  EXPECT_FALSE(device_->owns(range->base() + kStep));
  EXPECT_FALSE(device_->owns(&local));
}

TEST_F(CudaDeviceTest, ACopyOfAStreamWaitsForWhatIsBeforeIt) {
  const cuda::Device device = cuda::device().value();
  const auto context = cuda::CurrentContext::of(device);
  auto range = device_->reserve_at(kStep, kPlace).value();
  auto memory = device_->allocate(kStep, "test").value();
  ASSERT_TRUE(range->map(0, *memory, kStep).is_ok());
  cuda::StreamHandle stream = nullptr;
  ASSERT_EQ(device.functions->stream_create(&stream, cuda::kNonBlockingStream), 0);
  static std::array<char, 4> source;
  source = {'o', 'l', 'd', 0};
  device.functions->launch_host_function(
      stream, [](void* text) { static_cast<char*>(text)[0] = 'g'; }, source.data());
  ASSERT_TRUE(device_->begin_copy(range->base(), source.data(), 4, stream).is_ok());
  ASSERT_EQ(device.functions->stream_synchronize(stream), 0);
  EXPECT_EQ(read(range->base(), 4), (std::vector<char>{'g', 'l', 'd', 0}));
  EXPECT_EQ(device.functions->stream_destroy(stream), 0);
}

// As aclshmem and transfers move memory that is not mapped here.
TEST_F(CudaDeviceTest, AStreamReadsAndWritesInPartsInItsOrder) {
  constexpr std::size_t kBytes = 2 * cuda::PinnedMemory::kMostBytes + 17;
  const cuda::Device device = cuda::device().value();
  const auto context = cuda::CurrentContext::of(device);
  auto memory = device_->allocate_mapped(kBytes, "test").value();
  cuda::StreamHandle stream = nullptr;
  ASSERT_EQ(device.functions->stream_create(&stream, cuda::kNonBlockingStream), 0);
  std::vector<std::byte> sent(kBytes), came(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * 7 + (i >> 16));
  std::vector<std::size_t> written, taken;
  const auto fill = [&](std::byte* part, std::size_t at, std::size_t bytes) {
    std::copy_n(sent.data() + at, bytes, part);
    written.push_back(at);
  };
  const auto use = [&](std::byte* part, std::size_t at, std::size_t bytes) {
    std::copy_n(part, bytes, came.data() + at);
    taken.push_back(at);
  };
  using Parts = Device::Parts;
  ASSERT_TRUE(device_->begin_parts(Parts::kWrite, memory.get(), kBytes, fill, stream).is_ok());
  ASSERT_TRUE(device_->begin_parts(Parts::kRead, memory.get(), kBytes, use, stream).is_ok());
  ASSERT_EQ(device.functions->stream_synchronize(stream), 0);
  EXPECT_EQ(came, sent);
  const std::vector<std::size_t> parts{0, cuda::PinnedMemory::kMostBytes,
                                       2 * cuda::PinnedMemory::kMostBytes};
  EXPECT_EQ(written, parts);
  EXPECT_EQ(taken, parts);
  EXPECT_EQ(device.functions->stream_destroy(stream), 0);
}

// What the driver has pinned by the functions below.
struct Pins {
  static inline std::vector<void*> places;
  static inline std::size_t most_bytes = 0;
};

TEST_F(CudaDeviceTest, PinnedBuffersAreUsedAgainAndThenReleased) {
  cuda::Functions functions = *cuda::device().value().functions;
  functions.host_register = [](void* base, std::size_t bytes, unsigned) {
    Pins::places.push_back(base);
    Pins::most_bytes = std::max(Pins::most_bytes, bytes);
    return cuda::kSuccess;
  };
  functions.host_unregister = [](void* base) {
    const auto removed = std::erase(Pins::places, base);
    return removed == 1 ? cuda::kSuccess : cuda::kInvalidValue;
  };
  cuda::Device device = cuda::device().value();
  device.functions = &functions;
  static cuda::PinnedMemory pinned;  // never destroyed, as in a program
  const std::byte* const first = pinned.take(device, 1).value().get();
  EXPECT_EQ(pinned.take(device, 4096).value().get(), first);
  EXPECT_NE(pinned.take(device, 4097).value().get(), first);
  EXPECT_EQ(Pins::places.size(), 2U);
  std::vector<std::shared_ptr<std::byte>> held;
  held.reserve(20);
  for (int i = 0; i < 20; ++i)
    held.push_back(pinned.take(device, cuda::PinnedMemory::kMostBytes).value());
  EXPECT_EQ(Pins::places.size(), 22U);
  held.clear();
  const auto kept = pinned.take(device, 5000).value();
  EXPECT_EQ(Pins::places.size(), 1U) << "80 MiB were idle";
  EXPECT_EQ(Pins::most_bytes, cuda::PinnedMemory::kMostBytes);
}

}  // namespace
}  // namespace memspan
