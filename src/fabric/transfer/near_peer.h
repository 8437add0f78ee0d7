// SPDX-License-Identifier: Apache-2.0
// A peer on this host. It holds the peer's registration table and registered allocations mapped.
#pragma once

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
  Status fetch(const ResolvedPieces& resolved, Deadline deadline) override;
  Status refusal(const Piece& piece, std::uint64_t number) override;
  Status notify(const std::string& sender, const CompletionAction& action) override;
  int queue_descriptor() const override { return notifications_.get(); }

 private:
  NearPeer(std::shared_ptr<Member> member, EndpointRecord record, RegistrationPages table,
           FetchedDescriptors answer, std::function<void()> ended);
  bool is_gone() const override;
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
  Mutex mutex_;
  RegistrationView view_ MEMSPAN_GUARDED_BY(mutex_);
  std::shared_ptr<const MappedAllocations> mapped_
      MEMSPAN_GUARDED_BY(mutex_);  // shared with copies
  ProcessWatch watch_;             // ends before what its call uses
};

}  // namespace memspan::transfer
