// SPDX-License-Identifier: Apache-2.0
#include "fabric/address_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/bytes.h"
#include "core/environment.h"
#include "core/random.h"
#include "memory/address_plan.h"

namespace memspan {
namespace {

constexpr const char* kBookKey = "fabric/addresses";
constexpr std::uint64_t kStep = std::uint64_t{1} << 30;
// Places that something else has in this process are passed over, so many times.
constexpr int kMostPlaces = 64;
constexpr auto kEndPatience = std::chrono::seconds(5);

std::string users_prefix(const std::string& name) {
  return "fabric/users/" + name + "/";
}

using Book = std::vector<AddressEntry>;

std::uint64_t new_mark() {
  return std::strtoull(random_hex(8).c_str(), nullptr, 16) | 1;
}

Book::iterator entry_of(Book& book, const std::string& name) {
  return std::find_if(book.begin(), book.end(),
                      [&](const AddressEntry& entry) { return entry.name == name; });
}

// One attempt after the other to turn the book into one in which this process's entry stands.
class Claim {
 public:
  Claim(StoreClient& store, std::string name, std::uint64_t bytes, std::string layout,
        Deadline deadline)
      : store_(store),
        name_(std::move(name)),
        bytes_(bytes),
        layout_(std::move(layout)),
        deadline_(deadline) {}

  Result<Reservation> run() {
    while (!deadline_.has_passed()) {
      auto reservation = attempt();
      if (!reservation.is_ok()) return reservation.status();
      if (*reservation) return std::move(**reservation);
    }
    return Status(Code::kTimeout, "the book of addresses changed all the time");
  }

 private:
  // Empty: somebody else changed the book, or this did; look again.
  Result<std::optional<Reservation>> attempt() {
    auto text = store_.get_now(kBookKey, deadline_);
    if (!text.is_ok() && text.code() != Code::kNotFound) return text.status();
    text_ = text.is_ok() ? *text : std::string();
    MEMSPAN_TRY_ASSIGN(Book book, decode_book(text_), "reading the book of addresses");
    const auto mine = entry_of(book, name_);
    if (mine == book.end()) return write_entry(std::move(book));
    if (mine->layout != layout_ || mine->bytes != bytes_)
      return again(drop(std::move(book), name_, mine->layout));
    if (mine->mark != 0) {
      mine->mark = 0;
      return again(swap(book).status());
    }
    return found(Reservation::make_at(bytes_, reinterpret_cast<void*>(mine->base)));
  }

  static Result<std::optional<Reservation>> again(Status status) {
    if (!status.is_ok()) return status;
    return std::optional<Reservation>();
  }
  static Result<std::optional<Reservation>> found(Result<Reservation> reservation) {
    if (!reservation.is_ok()) return reservation.status();
    return std::optional<Reservation>(std::move(*reservation));
  }

  Result<std::optional<Reservation>> write_entry(Book book) {
    std::uint64_t from = kPoolWindow;
    for (int place = 0; place < kMostPlaces; ++place) {
      const std::uint64_t base = find_gap(book, bytes_, from, kPoolWindow + kPoolWindowBytes);
      if (base == 0) return make_room(std::move(book));
      auto reservation = Reservation::make_at(bytes_, reinterpret_cast<void*>(base));
      if (reservation.is_ok()) {
        book.push_back({.name = name_, .base = base, .bytes = bytes_, .layout = layout_});
        MEMSPAN_TRY_ASSIGN(bool is_written, swap(book), "writing to the book of addresses");
        if (!is_written) return std::optional<Reservation>();
        return found(std::move(reservation));
      }
      if (reservation.code() != Code::kUnavailable) return reservation.status();
      from = base + align_up(bytes_, kStep);
    }
    return Status(Code::kUnavailable,
                  fmt::format("{} places for {} of addresses are taken by something else here",
                              kMostPlaces, format_size(bytes_)));
  }

  // Drops an entry that nobody uses.
  Result<std::optional<Reservation>> make_room(Book book) {
    for (const AddressEntry& entry : Book(book)) {
      MEMSPAN_TRY_ASSIGN(auto users, store_.list(users_prefix(entry.name), deadline_),
                         "looking for unused addresses");
      if (users.empty()) return again(drop(std::move(book), entry.name, entry.layout));
    }
    return Status(Code::kInvalidArgument,
                  fmt::format("the pool needs {} of addresses; what pools may have, {}, is too "
                              "little, or full",
                              format_size(bytes_), format_size(kPoolWindowBytes)));
  }

  // Marks the entry; when it is marked, looks for users of that layout, and drops it when there
  // are none. kInvalidArgument when there are.
  Status drop(Book book, const std::string& name, const std::string& layout) {
    const auto entry = entry_of(book, name);
    if (entry->mark == 0) {
      entry->mark = new_mark();
      return swap(book).status();
    }
    MEMSPAN_TRY_ASSIGN(auto users, store_.list(users_prefix(name), deadline_),
                       "looking for users of addresses");
    const bool is_used = std::any_of(users.begin(), users.end(),
                                     [&](const auto& user) { return user.second == layout; });
    if (!is_used) {
      book.erase(entry);
      return swap(book).status();
    }
    entry->mark = 0;
    MEMSPAN_TRY(swap(book).status(), "keeping addresses that are used");
    return {Code::kInvalidArgument,
            fmt::format("this process makes the pool of {}, but others have it of {}", layout_,
                        layout)};
  }

  // False when the book was another one by then.
  Result<bool> swap(const Book& book) {
    const std::string wanted = encode_book(book);
    auto now = store_.compare_and_swap(kBookKey, text_, wanted, deadline_);
    if (!now.is_ok()) return now.status();
    return *now == wanted;
  }

  StoreClient& store_;
  const std::string name_;
  const std::uint64_t bytes_;
  const std::string layout_;
  const Deadline deadline_;
  std::string text_;  // of the book that this attempt began with
};

}  // namespace

std::string encode_book(const std::vector<AddressEntry>& book) {
  ByteWriter writer;
  for (const AddressEntry& entry : book) {
    writer.text(entry.name);
    writer.u64(entry.base);
    writer.u64(entry.bytes);
    writer.text(entry.layout);
    writer.u64(entry.mark);
  }
  return writer.take();
}

Result<std::vector<AddressEntry>> decode_book(std::string_view text) {
  std::vector<AddressEntry> book;
  ByteReader reader(text);
  while (reader.is_ok() && !reader.is_finished()) {
    AddressEntry entry;
    entry.name = reader.text();
    entry.base = reader.u64();
    entry.bytes = reader.u64();
    entry.layout = reader.text();
    entry.mark = reader.u64();
    book.push_back(std::move(entry));
  }
  if (!reader.is_ok()) return Status(Code::kInvalidArgument, "the book of addresses is malformed");
  return book;
}

std::uint64_t find_gap(const std::vector<AddressEntry>& book, std::uint64_t bytes,
                       std::uint64_t from, std::uint64_t end) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  taken.reserve(book.size());
  for (const AddressEntry& entry : book) taken.emplace_back(entry.base, entry.base + entry.bytes);
  std::sort(taken.begin(), taken.end());
  std::uint64_t place = from;
  for (const auto& [begin, past] : taken) {
    if (past <= place) continue;
    if (begin >= place && begin - place >= bytes) break;
    place = align_up(past, kStep);
  }
  return place < end && bytes <= end - place ? place : 0;
}

Result<AddressRange> AddressRange::claim(std::shared_ptr<Member> member, const std::string& name,
                                         std::uint64_t bytes, const std::string& layout,
                                         Deadline deadline) {
  StoreClient& store = member->store();
  std::string user_key = users_prefix(name) + std::to_string(store.session());
  MEMSPAN_TRY(store.set(user_key, layout, deadline, StoreOwner::kSession),
              "reserving the addresses of the pool");
  auto reservation = Claim(store, name, bytes, layout, deadline).run();
  if (!reservation.is_ok()) {
    static_cast<void>(store.remove(user_key, Deadline::after(kEndPatience)));
    return reservation.status().annotate("reserving the addresses of the pool");
  }
  return AddressRange(std::move(member), std::move(user_key), std::move(reservation).value());
}

// Best effort: without it the key goes with the session.
AddressRange::~AddressRange() {
  if (member_ != nullptr)
    static_cast<void>(member_->store().remove(user_key_, Deadline::after(kEndPatience)));
}

}  // namespace memspan
