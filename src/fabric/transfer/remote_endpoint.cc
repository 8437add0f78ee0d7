// SPDX-License-Identifier: Apache-2.0
// A peer on another host, or one whose memory this host's kernel does not move. Its registered
// memory is reached as regions on a link. The peer is asked for them once, and again when one was
// stale.

#include "fabric/transfer/peers.h"

namespace memspan::transfer {
namespace {

// How many extents are known at a time; a block of pieces needs far fewer.
constexpr std::size_t kMostKnown = 4096;
constexpr Duration kNotifyPatience = std::chrono::seconds(10);
constexpr Duration kRemoteAskPatience = std::chrono::seconds(1);

// The last extent that begins at or before the piece, and holds it.
const RegionExtent* find_extent(const KnownExtents& extents, const Piece& piece) {
  auto after = std::ranges::upper_bound(extents, piece.remote, {}, &RegionExtent::base);
  while (after != extents.begin()) {
    const RegionExtent& extent = *--after;
    if (extent.region.contains(piece.remote - extent.base, piece.bytes)) return &extent;
  }
  return nullptr;
}

}  // namespace

// Thread-safe.
class RemoteEndpoint final : public Peer {
 public:
  void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) override {
    resolved.clear();
    resolved.link = std::shared_ptr<Link>(remote_, &remote_->link());
    {
      MutexLock lock(mutex_);
      resolved.held_extents = extents_;
    }
    for (const Piece& piece : pieces) {
      const RegionExtent* const extent = find_extent(*resolved.held_extents, piece);
      if (extent == nullptr) {
        resolved.is_missing = true;
        resolved.wanted_pieces.assign(pieces.begin() + static_cast<std::ptrdiff_t>(resolved.count),
                                      pieces.end());
        return;
      }
      resolved.mapped[resolved.count] = nullptr;
      resolved.extents[resolved.count++] = extent;
    }
  }
  Status fetch(const ResolvedPieces& resolved, Deadline deadline) override {
    if (resolved.wanted_pieces.empty()) return Status::ok();
    MEMSPAN_PASS_ASSIGN(auto bytes, call({.resolve = resolved.wanted_pieces}, deadline));
    MEMSPAN_PASS_ASSIGN(auto answer, decode_message<ResolveAnswer>(bytes));
    MEMSPAN_PASS(add(answer));
    if (!answer.extents.empty() || answer.refusal.empty()) return Status::ok();
    MutexLock lock(mutex_);
    nearest_ = std::move(answer.refusal);
    return {Code::kNotFound, nearest_};
  }
  void forget_extents() override MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    extents_ = std::make_shared<const KnownExtents>();
  }
  Status notify(const std::string& sender, const CompletionAction& action) override {
    MEMSPAN_PASS(why_not_live());
    if (!action.has_message && !action.has_counter) return Status::ok();
    const auto answer = call({.is_notify = true, .sender = sender, .action = action},
                             Deadline::after(kNotifyPatience));
    // It may have been done all the same, so that it is not tried again.
    if (answer.code() == Code::kTimeout) return {Code::kUnreachable, answer.status().message()};
    if (answer.code() == Code::kUnavailable) return {Code::kTimeout, answer.status().message()};
    return answer.status();
  }
  // The store may report its end later than the program does.
  Status ask() override {
    MEMSPAN_PASS(why_not_live());
    return call(EndpointRequest{}, Deadline::after(kRemoteAskPatience)).status();
  }
  // A peer that says goodbye has destroyed its endpoints.
  void note_lost() override { end(remote_->has_left() ? End::kEnded : End::kLost); }

 private:
  friend AttachPeer attach_remote;
  RemoteEndpoint(std::shared_ptr<Member> member, EndpointRecord record,
                 std::shared_ptr<RemotePeer> remote, std::function<void()> ended)
      : Peer(std::move(record), 0, kAlwaysOpen, std::move(ended)),
        member_(std::move(member)),
        remote_(std::move(remote)),
        extents_(std::make_shared<const KnownExtents>()) {}
  std::string nearest(const Piece& /*piece*/) override {
    MutexLock lock(mutex_);
    return nearest_;
  }
  // A process that lives knows whether it has destroyed the endpoint.
  End how_it_left() override {
    const auto answer = remote_->call(record().published_name(), encode_record(EndpointRequest{}),
                                      Deadline::after(kRemoteAskPatience));
    return answer.is_ok()                     ? End::kNone
           : answer.code() == Code::kNotFound ? End::kEnded
           : answer.code() == Code::kPeerLost ? End::kLost
                                              : End::kLeft;
  }
  // The peer has destroyed an endpoint that it does not have any more. An answer counts even if the
  // peer has ended since: a program may end once it was notified.
  Result<std::string> call(const EndpointRequest& request, Deadline deadline) {
    auto answer = remote_->call(record().published_name(), encode_record(request), deadline);
    if (answer.code() == Code::kPeerLost) note_lost();
    if (answer.code() == Code::kNotFound) end(End::kEnded);
    if (answer.code() == Code::kTimeout)
      return answer.status().annotate(fmt::format("endpoint {}", record().name));
    if (answer.is_ok() || !has_ended()) return answer;
    return why_not_live();
  }
  Status add(const ResolveAnswer& answer) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const bool is_too_much = extents_->size() + answer.extents.size() > kMostKnown;
    auto more =
        is_too_much ? std::make_shared<KnownExtents>() : std::make_shared<KnownExtents>(*extents_);
    for (const auto& [base, encoded] : answer.extents) {
      MEMSPAN_PASS_ASSIGN(auto region, RemoteRegion::decode(encoded));
      more->insert(std::ranges::upper_bound(*more, base, {}, &RegionExtent::base),
                   {base, std::move(region)});
    }
    extents_ = std::move(more);
    return Status::ok();
  }

  const std::shared_ptr<Member> member_;
  const std::shared_ptr<RemotePeer> remote_;
  Mutex mutex_;
  std::shared_ptr<const KnownExtents> extents_ MEMSPAN_GUARDED_BY(mutex_);  // shared with transfers
  std::string nearest_ MEMSPAN_GUARDED_BY(mutex_);                          // of the last refusal
};

Result<std::shared_ptr<Peer>> attach_remote(std::shared_ptr<Member> member, EndpointRecord record,
                                            std::function<void()> ended, Deadline deadline) {
  const auto check_presence = [&](const Deadline& until) {
    auto bytes = member->store().get_now(record_key(record.name), until);
    if (!bytes.is_ok() && bytes.code() != Code::kNotFound) return bytes.status();
    const auto now = bytes.is_ok() ? decode_record(*bytes) : Result<EndpointRecord>(bytes.status());
    if (now.is_ok() && now->generation == record.generation) return Status::ok();
    return Status(Code::kPeerLost, "it has left the store");
  };
  MEMSPAN_TRY_ASSIGN(auto remote, member->remote_peer(record.who, check_presence, deadline),
                     fmt::format("reaching endpoint {}", record.name));
  return std::shared_ptr<Peer>(new RemoteEndpoint(std::move(member), std::move(record),
                                                  std::move(remote), std::move(ended)));
}

}  // namespace memspan::transfer
