// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/shared_pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/fd.h"
#include "pgas/group/call.h"

namespace memspan::pgas {
namespace {

// What members tell each other of their memory; bytes 0: there is none.
struct Offer {
  std::int32_t process;
  std::int32_t descriptor;
  std::uint64_t device;
  std::uint64_t file;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(Offer) == kCallDataBytes);

Result<struct stat> look_at(int descriptor) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return Status::from_errno("looking at shared memory");
  return info;
}

Result<Offer> offer_of(const std::optional<SharedPlace>& place) {
  if (!place) return Offer{};
  MEMSPAN_TRY_ASSIGN(const struct stat info, look_at(place->descriptor), "offering memory");
  return Offer{getpid(), place->descriptor, info.st_dev, info.st_ino, place->offset, place->bytes};
}

Status check_offers(const std::vector<Offer>& offers) {
  for (std::size_t member = 0; member < offers.size(); ++member) {
    if (offers[member].bytes == 0)
      return {Code::kInvalidArgument,
              fmt::format("member {}'s address is not in shareable memory", member)};
    if (offers[member].bytes != offers[0].bytes || offers[member].offset != offers[0].offset)
      return {Code::kInvalidArgument,
              fmt::format("member {} gave byte {} of {}, member 0 byte {} of {}", member,
                          offers[member].offset, offers[member].bytes, offers[0].offset,
                          offers[0].bytes)};
  }
  return Status::ok();
}

// The member's own descriptor, by /proc: it stays open until all have met again.
Result<Reservation> map_offer(const Offer& offer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.descriptor);
  Fd descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor.is_valid())
    return Status::from_errno(fmt::format(
        "opening memory of process {}, which needs its pid to be seen here", offer.process));
  MEMSPAN_TRY_ASSIGN(const struct stat info, look_at(descriptor.get()), "mapping");
  if (info.st_dev != offer.device || info.st_ino != offer.file)
    return Status(Code::kNotSupported,
                  fmt::format("process {} is another one here than there: the members do not see "
                              "each other's process ids",
                              offer.process));
  MEMSPAN_TRY_ASSIGN(const Pages pages, Pages::adopt(std::move(descriptor)), "mapping");
  MEMSPAN_TRY_ASSIGN(Reservation range, Reservation::make(pages.bytes(), nullptr), "mapping");
  MEMSPAN_TRY(range.map(0, pages, 0, pages.bytes()), "mapping");
  return range;
}

}  // namespace

Result<std::byte*> SharedPages::create(std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(bytes, "memspan-shareable"), "making memory");
  MEMSPAN_TRY_ASSIGN(Reservation range, Reservation::make(pages.bytes(), nullptr), "making memory");
  MEMSPAN_TRY(range.map(0, pages, 0, pages.bytes()), "making memory");
  std::byte* const base = range.base();
  MutexLock lock(mutex_);
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(base),
                  Block{std::move(pages), std::move(range)});
  return base;
}

bool SharedPages::destroy(const void* base) {
  MutexLock lock(mutex_);
  return blocks_.erase(reinterpret_cast<std::uintptr_t>(base)) != 0;
}

std::optional<SharedPlace> SharedPages::find(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  MutexLock lock(mutex_);
  auto next = blocks_.upper_bound(wanted);
  if (next == blocks_.begin()) return std::nullopt;
  const auto& [base, block] = *--next;
  if (wanted - base >= block.pages.bytes()) return std::nullopt;
  return SharedPlace{block.pages.descriptor(), wanted - base, block.pages.bytes()};
}

Status MappedPages::map(ProcessGroup& group, std::optional<SharedPlace> mine, void* address,
                        void* mapped[]) {
  MEMSPAN_TRY_ASSIGN(const Offer offer, offer_of(mine), "mapping");
  const CallTerms terms{GroupCall::kMap};
  MEMSPAN_PASS(meet_for(group, terms, &offer, sizeof offer));
  std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member)
    read_call_data(group, member, &offers[static_cast<std::size_t>(member)], sizeof(Offer));
  MEMSPAN_PASS(check_offers(offers));

  std::vector<Reservation> ranges;
  Status status;
  for (int member = 0; member < group.size() && status.is_ok(); ++member) {
    if (member == group.rank()) continue;
    auto range = map_offer(offers[static_cast<std::size_t>(member)]);
    if (range.is_ok())
      ranges.push_back(std::move(range).value());
    else
      status = range.status();
  }
  // All have it, or nobody.
  const std::uint64_t is_mapped = status.is_ok() ? 1 : 0;
  MEMSPAN_PASS(meet_for(group, terms, &is_mapped, sizeof is_mapped));
  MEMSPAN_PASS(status);
  for (int member = 0; member < group.size(); ++member) {
    std::uint64_t theirs = 0;
    read_call_data(group, member, &theirs, sizeof theirs);
    if (theirs == 0)
      return {Code::kUnavailable, fmt::format("member {} could not map the memory", member)};
  }

  MutexLock lock(mutex_);
  auto range = ranges.begin();
  for (int member = 0; member < group.size(); ++member) {
    if (member == group.rank()) {
      mapped[member] = address;
      continue;
    }
    mapped[member] = range->base() + offer.offset;
    ranges_.emplace(mapped[member], std::move(*range++));
  }
  return Status::ok();
}

Status MappedPages::unmap(const ProcessGroup& group, void* const mapped[]) {
  MutexLock lock(mutex_);
  for (int member = 0; member < group.size(); ++member)
    if (member != group.rank() && ranges_.count(mapped[member]) == 0)
      return {Code::kInvalidArgument,
              fmt::format("entry {} is not what mapping gave for member {}", member, member)};
  for (int member = 0; member < group.size(); ++member)
    if (member != group.rank()) ranges_.erase(ranges_.find(mapped[member]));
  return Status::ok();
}

Status swap_word(ProcessGroup& group, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint32_t value, int member, Deadline deadline) {
  if (member < 0 || member >= group.size())
    return {Code::kInvalidArgument,
            fmt::format("the member is {}, allowed are 0 to {}", member, group.size() - 1)};
  const World& world = group.world();
  // Pairs with itself at the other end: what was written before is seen after.
  MEMSPAN_PASS(wait_for(
      group.world().waiting(), WaitsFor::kMeeting, "a signal", deadline,
      [&] {
        std::uint32_t now = expected;
        return word.compare_exchange_strong(now, value, std::memory_order_acq_rel,
                                            std::memory_order_relaxed);
      },
      [&] {
        return world.board().peer(member).death.load(std::memory_order_acquire) != 0 ? member : -1;
      }));
  world.route(member).notify_meeting();
  return Status::ok();
}

}  // namespace memspan::pgas
