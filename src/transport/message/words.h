// SPDX-License-Identifier: Apache-2.0
// Copies between a frame and memory that the program uses at the same time: each aligned word of up
// to 8 bytes of the memory is read or written once and as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memspan {

// The largest payload that is copied so.
inline constexpr std::size_t kMostWords = 64;

enum class Words : bool { kStored, kLoaded };  // `to`, or `from`, is that memory

template <Words way, typename Word>
void copy_word(std::byte*& to, const std::byte*& from, std::size_t& bytes) {
  Word word;
  if constexpr (way == Words::kStored) {
    std::memcpy(&word, from, sizeof word);
    __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELAXED);
  } else {
    word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
    std::memcpy(to, &word, sizeof word);
  }
  to += sizeof word;
  from += sizeof word;
  bytes -= sizeof word;
}

template <Words way>
void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const auto at = reinterpret_cast<std::uintptr_t>(way == Words::kStored ? to : from);
    const auto fits = [&](std::size_t word) { return bytes >= word && at % word == 0; };
    if (fits(8))
      copy_word<way, std::uint64_t>(to, from, bytes);
    else if (fits(4))
      copy_word<way, std::uint32_t>(to, from, bytes);
    else if (fits(2))
      copy_word<way, std::uint16_t>(to, from, bytes);
    else
      copy_word<way, std::uint8_t>(to, from, bytes);
  }
}

}  // namespace memspan
