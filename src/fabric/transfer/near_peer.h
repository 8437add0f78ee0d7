// SPDX-License-Identifier: Apache-2.0
// A peer on this host. It holds the peer's registration table and registered allocations mapped.
// From the first time on that the kernel refuses to move the peer's other memory, messages do.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/mutex.h"
#include "fabric/member.h"
#include "fabric/transfer/peer.h"
#include "fabric/transfer/registration_view.h"
#include "node/process_watch.h"

namespace memspan::transfer {

// Thread-safe.
class NearPeer final : public Peer {
 public:
  // Asks the broker of the record's process. kTimeout, kAuth; kPeerLost: it died; kStale: it has
  // ended.
  static Result<std::shared_ptr<Peer>> attach(std::shared_ptr<Member> member, EndpointRecord record,
                                              std::function<void()> ended, Deadline deadline);

  void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) override;
  bool move_at_once(Direction direction, const Piece& piece, Spot& spot) override;
  Status fetch(const ResolvedPieces& resolved, Deadline deadline) override;
  Status refusal(const Piece& piece, std::uint64_t number) override;
  Status notify(const std::string& sender, const CompletionAction& action) override;
  void forget_extents() override;
  bool use_link(const Status& refusal) override;
  void note_lost() override MEMSPAN_EXCLUDES(mutex_);
  int queue_descriptor() const override { return notifications_.get(); }

 private:
  NearPeer(std::shared_ptr<Member> member, EndpointRecord record, RegistrationPages table,
           FetchedDescriptors answer, std::function<void()> ended);
  bool is_gone() const override { return is_gone_after(Duration::zero()); }
  bool is_gone_after(Duration patience) const;
  // As the table has them.
  void look_up(std::span<const Piece> pieces, ResolvedPieces& resolved) MEMSPAN_EXCLUDES(mutex_);
  // None: the piece is not registered, or memory must be mapped first.
  Spot spot_of(const Piece& piece) MEMSPAN_EXCLUDES(mutex_);
  std::shared_ptr<Peer> linked_peer() MEMSPAN_EXCLUDES(mutex_);
  Status fetch_by_link(const ResolvedPieces& resolved, Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  End how_it_left() override;
  void release() override;
  Result<FetchedDescriptors> fetch_published(const std::string& name, Deadline deadline) const;
  void drop_freed_allocations() MEMSPAN_REQUIRES(mutex_);
  // Null when it is not mapped.
  const MappedAllocation* mapping_of(std::uint32_t allocation) MEMSPAN_REQUIRES(mutex_);
  Result<MappedAllocation> map(std::uint32_t allocation, const std::string& doing,
                               Deadline deadline) const;

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
  ProcessWatch watch_;  // ends before what its call uses
};

}  // namespace memspan::transfer
