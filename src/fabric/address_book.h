// SPDX-License-Identifier: Apache-2.0
// The same addresses in every process: which ranges of the pool window belong to which pool is
// written in one book, a key of the store.
//
//   book   | "bm/7": base, bytes, what it is for | "shm/0": ... |
//   users  a key of each process that has the pool; it goes with the process
//
// An entry stays while the pool has users. One without them makes room, when that is needed, for a
// pool of the same name that is laid out differently and for others: it is marked first, then its
// users are asked for once more, then it goes, and a user that finds its entry marked takes the
// mark away. So an entry never goes that somebody has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "device/reservation.h"
#include "fabric/member.h"

namespace memspan {

// One pool's entry. A value.
struct AddressEntry {
  std::string name;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::string layout;      // a sentence; all users have the same
  std::uint64_t mark = 0;  // 0: none; no two are the same, so that a book is never as it was before
  bool operator==(const AddressEntry&) const = default;
};
std::string encode_book(const std::vector<AddressEntry>& book);
// An empty text is an empty book.
Result<std::vector<AddressEntry>> decode_book(std::string_view text);

// Where `bytes` fit between the entries (in any order), at or above `from`; 0: nowhere below `end`.
std::uint64_t find_gap(const std::vector<AddressEntry>& book, std::uint64_t bytes,
                       std::uint64_t from, std::uint64_t end);

// This process's share of one entry: the addresses, reserved. Move-only; one thread at a time.
class AddressRange {
 public:
  // Takes the entry of `name`, or writes it. kInvalidArgument when its users lay it out differently
  // (both are said) or the window is too small, kUnavailable when something else lies there in this
  // process.
  static Result<AddressRange> claim(std::shared_ptr<Member> member, const std::string& name,
                                    std::uint64_t bytes, const std::string& layout,
                                    Deadline deadline);
  AddressRange(AddressRange&&) noexcept = default;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  Reservation& reservation() { return reservation_; }
  std::byte* base() const { return reservation_.base(); }

 private:
  AddressRange(std::shared_ptr<Member> member, std::string user_key, Reservation reservation)
      : member_(std::move(member)),
        user_key_(std::move(user_key)),
        reservation_(std::move(reservation)) {}
  std::shared_ptr<Member> member_;  // shared with the process's other pools; null when moved from
  std::string user_key_;
  Reservation reservation_;
};

}  // namespace memspan
