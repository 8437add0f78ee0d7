// SPDX-License-Identifier: Apache-2.0
// Writing and reading messages byte by byte, little-endian, with every length checked, and a
// buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace memspan::inline core {

// Appends to a string it owns. Not thread-safe.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }
  void i64(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  // A u32 length and the bytes.
  void text(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  template <typename T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

// Reads from a view it does not own. After the first read past the end, `is_ok()` is false for
// good and every further read gives zero or an empty view.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int64_t i64() { return static_cast<std::int64_t>(number<std::uint64_t>()); }
  std::string_view text() { return take(u32()); }

  bool is_ok() const { return ok_; }
  // Everything was read and nothing was missing.
  bool is_finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      return {};
    }
    std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  template <typename T>
  T number() {
    std::string_view raw = take(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i)
      value =
          static_cast<T>(value | (static_cast<T>(static_cast<unsigned char>(raw[i])) << (8 * i)));
    return value;
  }
  std::string_view rest_;
  bool ok_ = true;
};

// An owned buffer that can be moved and is not cleared first, for example for received bytes.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes)
      : bytes_(bytes == 0 ? nullptr : std::make_unique_for_overwrite<std::byte[]>(bytes)),
        size_(bytes) {}
  // Leaves the other one empty.
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
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

}  // namespace memspan::inline core
