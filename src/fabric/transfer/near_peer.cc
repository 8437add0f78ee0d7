// SPDX-License-Identifier: Apache-2.0
// A peer on this host. It holds the peer's registration table and registered allocations mapped.
// From the first time on that the kernel refuses to move the peer's other memory, messages do.
#include <poll.h>
#include <unistd.h>

#include "core/log.h"
#include "fabric/transfer/copy_engine.h"
#include "fabric/transfer/notification_queue.h"
#include "fabric/transfer/registered_memory.h"
#include "fabric/transfer/registration_view.h"
#include "node/process_watch.h"

namespace memspan::transfer {
namespace {

constexpr Duration kAskPatience = std::chrono::seconds(1);
// The kernel closes the connections of a process that ends before it reports the end.
constexpr Duration kEndPatience = std::chrono::milliseconds(500);

// The address of the allocation here; null: it is not mapped, or the registration table contradicts
// the memory that was given, and is not believed.
std::byte* begin_of(const Range& allocation, const OpenedPointer* mapping) {
  const bool is_adopted = (allocation.allocation & (kAdopted | kOfDevice)) == kAdopted;
  const std::uint64_t lead = is_adopted ? AdoptedMemory::lead_of(allocation.base) : 0;
  if (mapping == nullptr || mapping->bytes < lead || mapping->bytes - lead < allocation.bytes)
    return nullptr;
  return mapping->base.get() + lead;
}

}  // namespace

// Thread-safe.
class NearPeer final : public Peer {
 public:
  void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) override {
    look_up(pieces, resolved);
    if (!uses_link_.load(std::memory_order_acquire) || resolved.count == 0) return;
    // The pieces up to the first that is mapped, or up to the first that is not.
    const auto is_mapped = [&](std::size_t i) { return resolved.mapped[i] != nullptr; };
    std::size_t alike = 1;
    while (alike < resolved.count && is_mapped(alike) == is_mapped(0)) ++alike;
    if (alike == resolved.count && is_mapped(0)) return;
    const bool begins_mapped = is_mapped(0);
    resolved.clear();
    if (begins_mapped)
      resolved.count = alike;
    else if (const auto linked = linked_peer(); linked != nullptr)
      linked->resolve(pieces.first(alike), resolved);
    else
      resolved.is_missing = true;
  }
  bool move_at_once(Direction direction, const Piece& piece, Spot& spot) override {
    if (is_this_process_ || device() != nullptr || uses_link_.load(std::memory_order_acquire))
      return false;
    if (spot.version != table_.header().version.load(std::memory_order_acquire) ||
        !spot.contains(piece)) {
      spot = spot_of(piece);
      if (spot.end == 0) return false;
    }
    if (spot.mapped == nullptr) {
      if (!move_piece(process(), move_direction(direction), piece.local, piece.remote, piece.bytes))
        return false;
    } else {
      const auto held = spot.mapping.lock();
      if (held == nullptr ||
          copy_mapped(direction, piece, spot.mapped + (piece.remote - spot.base)))
        return false;
    }
    return is_open();
  }
  Status fetch(const ResolvedPieces& resolved, Deadline deadline) override {
    const std::uint32_t allocation = resolved.wanted_allocation;
    if (allocation == 0) return fetch_by_link(resolved, deadline);
    MEMSPAN_TRY_ASSIGN(OpenedPointer made, map(allocation, deadline),
                       fmt::format("mapping memory of endpoint {}", record().name));
    MutexLock lock(mutex_);
    if (has_ended()) return Status::ok();  // resolve() reports it
    if (mapping_of(allocation) != nullptr) return Status::ok();
    auto more = mapped_ == nullptr ? std::make_shared<MappedAllocations>()
                                   : std::make_shared<MappedAllocations>(*mapped_);
    more->emplace(allocation, std::move(made));
    mapped_ = std::move(more);
    return Status::ok();
  }
  Status notify(const std::string& sender, const CompletionAction& action) override {
    MEMSPAN_PASS(why_not_live());
    if (action.has_message)
      MEMSPAN_PASS(send_notification(notifications_, {sender, action.message}));
    if (action.has_counter) add_to_counter(table_.counters(), action.counter, action.value);
    return Status::ok();
  }
  void forget_extents() override {
    if (const auto linked = linked_peer(); linked != nullptr) linked->forget_extents();
  }
  bool use_link(const Status& refusal) override {
    if (!member_->may_send()) return false;
    if (!uses_link_.exchange(true, std::memory_order_acq_rel))
      log_line(LogLevel::kInfo,
               fmt::format("endpoint {}: its ordinary memory is reached by messages: {}",
                           record().name, refusal.message()));
    return true;
  }
  // The peer lives as long as its process does. The next transfer connects again.
  void note_lost() override MEMSPAN_EXCLUDES(mutex_) {
    if (is_gone_after(kEndPatience)) return end(End::kDied);
    std::shared_ptr<Peer> lost;  // ends without the lock
    MutexLock lock(mutex_);
    lost.swap(linked_);
  }
  int queue_descriptor() const override { return notifications_.get(); }

 private:
  friend AttachPeer attach_near;
  NearPeer(std::shared_ptr<Member> member, EndpointRecord record, RegistrationPages table,
           FetchedDescriptors answer, std::function<void()> ended)
      : Peer(std::move(record), answer.pid, table.header().state, std::move(ended)),
        member_(std::move(member)),
        table_(std::move(table)),
        process_handle_(std::move(answer.process)),
        notifications_(std::move(answer.descriptors[1])),
        is_this_process_(answer.pid == getpid()),
        view_(table_) {}
  std::string nearest(const Piece& piece) override {
    MutexLock lock(mutex_);
    return view_.describe(piece.remote);
  }
  bool is_gone() const override { return is_gone_after(Duration::zero()); }
  bool is_gone_after(Duration patience) const {
    pollfd polled{process_handle_.get(), POLLIN, 0};
    return ::poll(&polled, 1, static_cast<int>(patience / std::chrono::milliseconds(1))) > 0;
  }
  // As the table has them.
  void look_up(std::span<const Piece> pieces, ResolvedPieces& resolved) MEMSPAN_EXCLUDES(mutex_) {
    resolved.clear();
    MutexLock lock(mutex_);
    if (view_.refresh()) drop_freed_allocations();
    if (view_.has_allocations()) resolved.held = mapped_;
    for (const Piece& piece : pieces) {
      std::byte* place = is_this_process_ ? reinterpret_cast<std::byte*>(piece.remote) : nullptr;
      const Range* allocation =
          view_.has_allocations() ? view_.allocation_of(piece.remote, piece.bytes) : nullptr;
      if (allocation != nullptr && !is_this_process_ && member_->may_map()) {
        const OpenedPointer* mapping = mapping_of(allocation->allocation);
        std::byte* const begin = begin_of(*allocation, mapping);
        if (begin == nullptr) {
          resolved.wanted_allocation = allocation->allocation;
          resolved.is_missing = mapping == nullptr;
          resolved.is_refused = mapping != nullptr;
          return;
        }
        place = begin + (piece.remote - allocation->base);
      } else if (allocation == nullptr && !view_.covers(piece.remote, piece.bytes)) {
        resolved.is_refused = true;
        return;
      }
      resolved.mapped[resolved.count++] = place;
    }
  }
  // None: the piece is not registered, or memory must be mapped first.
  Spot spot_of(const Piece& piece) MEMSPAN_EXCLUDES(mutex_) {
    // Before the registrations are read: if they change at the same time, the spot is looked up
    // again.
    const std::uint64_t version = table_.header().version.load(std::memory_order_acquire);
    MutexLock lock(mutex_);
    if (view_.refresh()) drop_freed_allocations();
    const Range* allocation =
        member_->may_map() ? view_.allocation_of(piece.remote, piece.bytes) : nullptr;
    if (allocation != nullptr) {
      const OpenedPointer* mapping = mapping_of(allocation->allocation);
      std::byte* const begin = begin_of(*allocation, mapping);
      if (begin == nullptr) return {};
      return {version, allocation->base, allocation->end(), begin, mapping->base};
    }
    const auto extent = view_.extent_of(piece.remote, piece.bytes);
    return extent ? Spot{version, extent->base, extent->end, nullptr, {}} : Spot{};
  }
  std::shared_ptr<Peer> linked_peer() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return linked_;
  }
  Status fetch_by_link(const ResolvedPieces& resolved, Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    if (const auto linked = linked_peer(); linked != nullptr) {
      Status status = linked->fetch(resolved, deadline);
      if (status.code() != Code::kPeerLost) return status;
      note_lost();
      MEMSPAN_PASS(why_not_live());
      return {Code::kUnreachable, fmt::format("the connection to endpoint {} was lost, and process "
                                              "{} lives",
                                              record().name, record().who.process)};
    }
    MEMSPAN_PASS_ASSIGN(auto made, attach_remote(
                                       member_, record(), [] {}, deadline));
    MutexLock lock(mutex_);
    if (linked_ == nullptr) linked_ = made;  // another thread may have been faster
    return Status::ok();
  }
  // A process that has begun another program has no broker any more. A stopped one still exists.
  End how_it_left() override {
    if (is_gone()) return End::kDied;
    const auto answer = member_->broker().fetch_and_wait(
        record().broker_address, record().published_name(), Deadline::after(kAskPatience));
    return answer.code() == Code::kNotFound      ? End::kEnded
           : answer.code() == Code::kUnavailable ? (is_gone() ? End::kDied : End::kLeft)
                                                 : End::kNone;
  }
  void release() override {
    MutexLock lock(mutex_);
    mapped_.reset();
  }
  Result<FetchedDescriptors> fetch_published(const std::string& name, Deadline deadline) const {
    auto answer = member_->broker().fetch_and_wait(record().broker_address, name, deadline);
    if (answer.code() != Code::kUnavailable) return answer;
    return Status(Code::kPeerLost, answer.status().message());
  }
  // Copies that run keep theirs.
  void drop_freed_allocations() MEMSPAN_REQUIRES(mutex_) {
    if (mapped_ == nullptr) return;
    auto kept = std::make_shared<MappedAllocations>(*mapped_);
    const auto is_freed = [this](const auto& each) MEMSPAN_REQUIRES(mutex_) {
      return !view_.has_allocation(each.first);
    };
    if (std::erase_if(*kept, is_freed) > 0) mapped_ = std::move(kept);
  }
  // Null when it is not mapped.
  const OpenedPointer* mapping_of(std::uint32_t allocation) MEMSPAN_REQUIRES(mutex_) {
    if (mapped_ == nullptr) return nullptr;
    const auto found = mapped_->find(allocation);
    return found != mapped_->end() ? &found->second : nullptr;
  }
  Result<OpenedPointer> map(std::uint32_t allocation, Deadline deadline) const {
    const std::string name = record().allocation_name(allocation);
    if ((allocation & kOfDevice) != 0)
      return open_registration(
          device(), name, [&](const std::string& part) { return fetch_published(part, deadline); });
    MEMSPAN_PASS_ASSIGN(FetchedDescriptors answer, fetch_published(name, deadline));
    if (answer.descriptors.size() != 1) return Status(Code::kInternal, "no memory came");
    MEMSPAN_PASS_ASSIGN(Pages pages, Pages::adopt(std::move(answer.descriptors[0])));
    MEMSPAN_PASS_ASSIGN(Reservation made, Reservation::of(pages));
    const auto held = std::make_shared<Reservation>(std::move(made));
    return OpenedPointer{std::shared_ptr<std::byte>(held, held->base()), held->bytes()};
  }

  const std::shared_ptr<Member> member_;
  const RegistrationPages table_;
  const Fd process_handle_;
  const Fd notifications_;
  const bool is_this_process_;
  std::atomic<bool> uses_link_{false};
  Mutex mutex_;
  RegistrationView view_ MEMSPAN_GUARDED_BY(mutex_);
  std::shared_ptr<const MappedAllocations> mapped_
      MEMSPAN_GUARDED_BY(mutex_);  // shared with copies
  // The same peer as messages reach it, once they do; shared with running transfers.
  std::shared_ptr<Peer> linked_ MEMSPAN_GUARDED_BY(mutex_);
  std::unique_ptr<ProcessWatch> watch_;  // ends before what its call uses
};

Result<std::shared_ptr<Peer>> attach_near(std::shared_ptr<Member> member, EndpointRecord record,
                                          std::function<void()> ended, Deadline deadline) {
  const std::string doing = fmt::format("reaching endpoint {}", record.name);
  auto answer =
      member->broker().fetch_and_wait(record.broker_address, record.published_name(), deadline);
  if (answer.code() == Code::kUnavailable)
    return Status(Code::kPeerLost, fmt::format("endpoint {} is gone: process {} has ended",
                                               record.name, record.who.process));
  if (answer.code() == Code::kNotFound)
    return Status(Code::kStale, fmt::format("endpoint {} has just ended", record.name));
  if (!answer.is_ok()) return answer.status().annotate(doing);
  if (answer->descriptors.size() != 2)
    return Status(Code::kInternal, fmt::format("{}: {} descriptors came instead of 2", doing,
                                               answer->descriptors.size()));
  MEMSPAN_TRY_ASSIGN(RegistrationPages pages,
                     RegistrationPages::open(std::move(answer->descriptors[0])), doing);
  std::shared_ptr<NearPeer> peer(new NearPeer(std::move(member), std::move(record),
                                              std::move(pages), std::move(answer).value(),
                                              std::move(ended)));
  // The watch ends before the peer does, so the pointer is good.
  MEMSPAN_TRY_ASSIGN(peer->watch_,
                     ProcessWatch::start(peer->process_handle_.get(), -1,
                                         [raw = peer.get()](ProcessWatch::Sign) {
                                           raw->end(NearPeer::End::kDied);
                                         }),
                     doing);
  return std::shared_ptr<Peer>(std::move(peer));
}

}  // namespace memspan::transfer
