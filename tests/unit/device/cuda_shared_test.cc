// SPDX-License-Identifier: Apache-2.0
// Memory that was made in several ways, shared and opened again, on the stand-in of the CUDA
// driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "device/cuda/driver.h"
#define CHECK(what) EXPECT_TRUE(what)
#include "support/cuda_driver/gpu.h"

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr std::size_t kStep = kDeviceGranularity;

class CudaSharedTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto about = cuda::describe_devices();
    if (!about.is_ok() || !about->starts_with("stand-in"))
      GTEST_SKIP() << "does not apply: the stand-in of the driver is not in LD_LIBRARY_PATH";
    device_ = cuda::open_device().value();
    use_gpu();
  }
  std::string read(const std::byte* from, std::size_t bytes) {
    std::string text(bytes, 0);
    EXPECT_TRUE(device_->copy(text.data(), from, bytes).is_ok());
    return text;
  }
  static std::size_t handles() {
    return reinterpret_cast<std::size_t (*)()>(gpu_function("standin_handles"))();
  }
  // Two allocations side by side, with a word over the border.
  std::byte* two_allocations() {
    auto* const at = reinterpret_cast<std::byte*>(gpu_map(2, kStep, GPU_SHAREABLE));
    EXPECT_TRUE(device_->copy(at + kStep - 2, "word", 4).is_ok());
    return at;
  }
  memspan::Device* device_ = nullptr;
};

TEST_F(CudaSharedTest, ARangeOverTwoAllocationsIsOpenedAsOne) {
  std::byte* const at = two_allocations();
  SharedPointer shared = device_->share_pointer(at + kStep - 2, 4).value();
  EXPECT_EQ(shared.descriptors.size(), 2u);
  {
    const OpenedPointer opened = device_->open_pointer(std::move(shared)).value();
    EXPECT_NE(opened.base.get(), at + kStep - 2);
    EXPECT_EQ(opened.bytes, 4u);
    EXPECT_EQ(read(opened.base.get(), 4), "word");
    ASSERT_TRUE(device_->copy(opened.base.get(), "same", 4).is_ok());
    EXPECT_EQ(read(at + kStep - 2, 4), "same");
    EXPECT_TRUE(device_->owns(opened.base.get()));
  }
  EXPECT_EQ(handles(), 0u);
}

TEST_F(CudaSharedTest, OnlyTheAllocationsOfTheRangeAreShared) {
  std::byte* const at = two_allocations();
  EXPECT_EQ(device_->share_pointer(at + 1, kStep - 1)->descriptors.size(), 1u);
  EXPECT_EQ(device_->share_pointer(at + 1, kStep)->descriptors.size(), 2u);
  const auto refused = device_->share_pointer(at + 1, 2 * kStep);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("are more than the"));
}

TEST_F(CudaSharedTest, WhatIsNotMadeForItIsNotShared) {
  auto* const at = reinterpret_cast<std::byte*>(gpu_map(1, kStep, GPU_NOT_SHAREABLE));
  const auto refused = device_->share_pointer(at, 1);
  EXPECT_EQ(refused.code(), Code::kNotSupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("asked for the handle types 0x0"));
  EXPECT_EQ(device_->share_pointer(gpu_alloc_async(10), 10).code(), Code::kNotSupported);
  EXPECT_EQ(handles(), 0u);
}

TEST_F(CudaSharedTest, WhatIsMappedBehindByOthersMeansIsNotShared) {
  char* const at = gpu_reserve(2 * kStep);
  gpu_map_at(at, kStep, GPU_SHAREABLE);
  EXPECT_EQ(device_->share_pointer(at + kStep, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(device_->share_pointer(at + kStep - 1, 2).code(), Code::kInvalidArgument);
}

TEST_F(CudaSharedTest, MemoryOfAPoolIsOpenedByThePool) {
  auto* const at = reinterpret_cast<std::byte*>(gpu_alloc_of_new_pool(kStep, GPU_SHAREABLE));
  ASSERT_TRUE(device_->copy(at + 100, "word", 4).is_ok());
  SharedPointer shared = device_->share_pointer(at + 100, 4).value();
  EXPECT_EQ(shared.descriptors.size(), 1u);
  EXPECT_EQ(read(device_->open_pointer(std::move(shared))->base.get(), 4), "word");
  EXPECT_EQ(device_->share_pointer(at + 1, kStep).code(), Code::kInvalidArgument);
}

TEST_F(CudaSharedTest, MemoryOfCudaMallocNeedsNoDescriptor) {
  auto* const at = reinterpret_cast<std::byte*>(gpu_alloc(100));
  SharedPointer shared = device_->share_pointer(at, 100).value();
  EXPECT_TRUE(shared.descriptors.empty());
  // The process itself cannot open it, and the driver says so.
  const auto refused = device_->open_pointer(std::move(shared));
  EXPECT_THAT(refused.status().message(), HasSubstr("CUDA_ERROR_INVALID_CONTEXT"));
}

TEST_F(CudaSharedTest, WordsOfOthersAreNotBelieved) {
  std::byte* const at = two_allocations();
  const SharedPointer shared = device_->share_pointer(at, 2 * kStep).value();
  for (std::size_t length = 0; length < shared.text.size(); ++length) {
    SharedPointer cut{shared.text.substr(0, length), {}};
    for (const Fd& each : shared.descriptors) cut.descriptors.push_back(duplicate(each.get()));
    EXPECT_EQ(device_->open_pointer(std::move(cut)).code(), Code::kInvalidArgument) << length;
  }
  EXPECT_EQ(device_->open_pointer({shared.text, {}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(device_->open_pointer({"\xff" + shared.text, {}}).code(), Code::kInvalidArgument);
  // More than the descriptors' memory: the driver refuses it, and nothing is left.
  SharedPointer large{shared.text, {}};
  large.text[large.text.size() - 5] = 1;  // 4 GiB more in the second allocation
  for (const Fd& each : shared.descriptors) large.descriptors.push_back(duplicate(each.get()));
  EXPECT_EQ(device_->open_pointer(std::move(large)).code(), Code::kInvalidArgument);
  EXPECT_EQ(handles(), 0u);
}

TEST_F(CudaSharedTest, MappedMemoryLivesAsLongAsItIsHeld) {
  const std::size_t before = gpu_free_bytes();
  auto memory = device_->allocate_mapped(kStep + 1, "test").value();
  EXPECT_EQ(read(memory.get() + kStep, 3), std::string(3, 0));
  EXPECT_EQ(gpu_free_bytes(), before - 2 * kStep);
  EXPECT_EQ(device_->hold(memory.get() + 2 * kStep), nullptr);
  EXPECT_EQ(device_->hold(memory.get() - 1), nullptr);
  std::byte* const at = memory.get();
  auto held = device_->hold(at + 2 * kStep - 1);
  memory.reset();
  EXPECT_TRUE(device_->owns(at));
  held.reset();
  EXPECT_FALSE(device_->owns(at));
  EXPECT_EQ(device_->hold(at), nullptr);
  EXPECT_EQ(gpu_free_bytes(), before);
}

TEST_F(CudaSharedTest, AStreamKeepsMemoryAndGivesItUpWhereTheDeviceMayBeUsed) {
  const std::size_t before = gpu_free_bytes();
  void* const stream = gpu_stream();
  auto memory = device_->allocate_mapped(kStep, "test").value();
  ASSERT_TRUE(device_->begin_copy(memory.get(), "word", 4, stream).is_ok());
  ASSERT_TRUE(device_->keep(std::move(memory), stream).is_ok());
  ASSERT_EQ(gpu_synchronize(stream), 0);
  char byte = 0;
  std::byte* const other = two_allocations();
  ASSERT_TRUE(device_->copy(&byte, other, 1).is_ok());
  EXPECT_EQ(gpu_free_bytes(), before - 2 * kStep);
}

}  // namespace
}  // namespace memspan
