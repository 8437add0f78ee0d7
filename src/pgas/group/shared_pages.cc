// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/shared_pages.h"

#include <fmt/format.h>

#include "device/host/copy.h"
#include "pgas/exchange_texts.h"
#include "pgas/group/call.h"

namespace memspan::inline pgas {
namespace {

// A member's memory, for the other members.
struct Contribution {
  std::uint64_t name;  // at the member's descriptor broker
  std::uint64_t offset;
  std::uint64_t bytes;  // 0: no memory
};
static_assert(sizeof(Contribution) <= kCallDataBytes);

std::string published_name(std::uint64_t number) {
  return fmt::format("shareable/{}", number);
}

Status check_contributions(const std::vector<Contribution>& all) {
  for (std::size_t member = 0; member < all.size(); ++member) {
    if (all[member].bytes == 0)
      return {Code::kInvalidArgument,
              fmt::format("member {}'s address is not in shareable memory", member)};
    if (all[member].bytes != all[0].bytes || all[member].offset != all[0].offset)
      return {Code::kInvalidArgument,
              fmt::format("member {} gave byte {} of {}, member 0 byte {} of {}", member,
                          all[member].offset, all[member].bytes, all[0].offset, all[0].bytes)};
  }
  return Status::ok();
}

// All of it, anywhere.
Result<Reservation> map_whole(const Pages& pages) {
  MEMSPAN_PASS_ASSIGN(Reservation range, Reservation::of(pages));
  MEMSPAN_PASS(check_copy_setting());
  advise_huge(range.base(), range.bytes());
  return range;
}

// The member publishes it until the next barrier.
Result<Reservation> map_contribution(Membership& membership, int member,
                                     const Contribution& contribution, Deadline deadline) {
  const MemberAddress& from = membership.members[member];
  const std::string doing = fmt::format("mapping the memory of member {}", member);
  MEMSPAN_TRY_ASSIGN(FetchedDescriptors fetched,
                     membership.broker->fetch_and_wait(
                         from.broker, published_name(contribution.name), deadline, from.process),
                     doing);
  if (fetched.descriptors.size() != 1)
    return Status(Code::kInternal, fmt::format("{}: {} descriptors came instead of 1", doing,
                                               fetched.descriptors.size()));
  MEMSPAN_TRY_ASSIGN(const Pages pages, Pages::adopt(std::move(fetched.descriptors[0])), doing);
  if (pages.bytes() < contribution.bytes)
    return Status(Code::kInternal, doing + ": it is less memory than was said");
  MEMSPAN_TRY_ASSIGN(Reservation range, map_whole(pages), doing);
  return range;
}

// Lets the members fetch a descriptor.
Status publish(const Membership& membership, const std::string& name, int descriptor) {
  std::vector<Fd> descriptors(1);
  MEMSPAN_PASS_ASSIGN(descriptors[0], duplicate(descriptor, "duplicating a descriptor"));
  Access access{.channel = membership.channel};
  for (const MemberAddress& member : membership.members) access.processes.push_back(member.process);
  return membership.broker->publish(name, std::move(descriptors), std::move(access));
}

// Ends that.
struct Retract {
  std::string name;
  void operator()(DescriptorBroker* broker) const { broker->retract(name); }
};

}  // namespace

Result<std::byte*> SharedPages::create(std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(bytes, "memspan-shareable"), "making memory");
  MEMSPAN_TRY_ASSIGN(Reservation range, map_whole(pages), "making memory");
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
  MEMSPAN_PASS(group.check_one_node("mapping memory"));
  Membership& membership = group.world().membership();
  const Duration limit = group.world().waiting().limit;
  const Deadline deadline = limit == Duration::zero() ? Deadline::never() : Deadline::after(limit);
  static std::atomic<std::uint64_t> last{0};
  Contribution own{++last, 0, 0};
  if (mine) own = {own.name, mine->offset, mine->bytes};
  const std::string name = published_name(own.name);
  const std::unique_ptr<DescriptorBroker, Retract> published(membership.broker.get(), {name});
  if (mine) MEMSPAN_TRY(publish(membership, name, mine->descriptor), "mapping");
  MEMSPAN_PASS(checked_barrier(group, {GroupCall::kMap}, &own, sizeof own));
  std::vector<Contribution> all(static_cast<std::size_t>(group.size()));
  for (int member = 0; member < group.size(); ++member)
    read_call_data(group, member, &all[member], sizeof(Contribution));
  MEMSPAN_PASS(check_contributions(all));

  std::vector<Reservation> ranges;
  Status status;
  for (int member = 0; member < group.size() && status.is_ok(); ++member) {
    if (member == group.rank()) continue;
    auto range = map_contribution(membership, member, all[member], deadline);
    if (range.is_ok())
      ranges.push_back(std::move(range).value());
    else
      status = range.status();
  }
  MEMSPAN_PASS(agree(exchange_by_barriers(group.team(), "map"), status, "member"));

  MutexLock lock(mutex_);
  auto range = ranges.begin();
  for (int member = 0; member < group.size(); ++member) {
    if (member == group.rank()) {
      mapped[member] = address;
      continue;
    }
    mapped[member] = range->base() + own.offset;
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
  MEMSPAN_PASS(check_member(group, "member", member));
  if (!group.is_near(member)) return group.check_one_node("a signal");
  const World& world = group.world();
  // Pairs with itself at the other end: what was written before is seen after.
  const Status over = wait_for(
      group.world().waiting(), WaitsFor::kSync, "a signal", deadline,
      [&] {
        std::uint32_t now = expected;
        return word.compare_exchange_strong(now, value, std::memory_order_acq_rel,
                                            std::memory_order_relaxed);
      },
      [&] { return world.segment().peer(member).is_dead() ? member : -1; });
  if (over.code() == Code::kTimeout) return over.annotate(fmt::format("waiting for PE {}", member));
  MEMSPAN_PASS(over);
  world.route(member).notify_sync();
  return Status::ok();
}

}  // namespace memspan::inline pgas
