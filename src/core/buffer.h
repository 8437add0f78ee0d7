// SPDX-License-Identifier: Apache-2.0
// An owned buffer that can be moved and is not cleared first, for example for received bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace memspan {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes)
      : bytes_(bytes == 0 ? nullptr : std::make_unique_for_overwrite<std::byte[]>(bytes)),
        size_(bytes) {}
  // Leaves the other one empty.
  Buffer(Buffer&& other) noexcept
      : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace memspan
