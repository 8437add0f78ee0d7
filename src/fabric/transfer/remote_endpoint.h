// SPDX-License-Identifier: Apache-2.0
// A peer on another host, or one whose memory this host's kernel does not move. Its registered
// memory is reached as regions on a link. The peer is asked for them once, and again when one was
// stale.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/mutex.h"
#include "fabric/member.h"
#include "fabric/transfer/peer.h"

namespace memspan::transfer {

// Thread-safe.
class RemoteEndpoint final : public Peer {
 public:
  // Finds the way to the record's process. kTimeout when it does not answer.
  static Result<std::shared_ptr<Peer>> attach(std::shared_ptr<Member> member, EndpointRecord record,
                                              std::function<void()> ended, Deadline deadline);

  void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) override;
  Status fetch(const ResolvedPieces& resolved, Deadline deadline) override;
  void forget_extents() override MEMSPAN_EXCLUDES(mutex_);
  Status refusal(const Piece& piece, std::uint64_t number) override;
  Status notify(const std::string& sender, const CompletionAction& action) override;
  Status ask() override;
  void note_lost() override;

 private:
  RemoteEndpoint(std::shared_ptr<Member> member, EndpointRecord record,
                 std::shared_ptr<RemotePeer> remote, std::function<void()> ended);
  End how_it_left() override;
  Result<std::string> call(const EndpointRequest& request, Deadline deadline);
  void add(std::vector<RegionExtent> extents) MEMSPAN_EXCLUDES(mutex_);

  const std::shared_ptr<Member> member_;
  const std::shared_ptr<RemotePeer> remote_;
  Mutex mutex_;
  std::shared_ptr<const KnownExtents> extents_ MEMSPAN_GUARDED_BY(mutex_);  // shared with transfers
  std::string nearest_ MEMSPAN_GUARDED_BY(mutex_);                          // of the last refusal
};

}  // namespace memspan::transfer
