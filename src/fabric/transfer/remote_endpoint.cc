// SPDX-License-Identifier: Apache-2.0
// A peer on another host, or one whose memory this host's kernel does not move. Its registered
// memory is reached as regions on a link. The peer is asked for them once, and again when one was
// stale.

#include "core/bytes.h"
#include "fabric/transfer/peers.h"

namespace memspan::transfer {
namespace {

constexpr std::uint32_t kMostPieces = 4096;

Status malformed() {
  return {Code::kInvalidArgument, "what another host said to an endpoint is malformed"};
}

// How many extents are known at a time; a block of pieces needs far fewer.
constexpr std::size_t kMostKnown = 4096;
constexpr Duration kNotifyPatience = std::chrono::seconds(10);
constexpr Duration kRemoteAskPatience = std::chrono::seconds(1);

// The last extent that begins at or before the piece, and holds it.
const RegionExtent* find_extent(const KnownExtents& extents, const Piece& piece) {
  auto after = std::upper_bound(
      extents.begin(), extents.end(), piece.remote,
      [](std::uint64_t address, const RegionExtent& extent) { return address < extent.base; });
  while (after != extents.begin()) {
    const RegionExtent& extent = *--after;
    if (extent.region.contains(piece.remote - extent.base, piece.bytes)) return &extent;
  }
  return nullptr;
}

}  // namespace

// ---- requests and answers

std::string encode(const EndpointRequest& request) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(request.resolve.size()));
  for (const Piece& piece : request.resolve) {
    writer.u64(piece.remote);
    writer.u64(piece.bytes);
  }
  writer.u8(request.notify ? 1 : 0);
  if (!request.notify) return writer.take();
  const CompletionAction& action = request.notify->action;
  writer.text(request.notify->sender);
  writer.u8(action.message ? 1 : 0);
  writer.text(action.message.value_or(""));
  writer.u8(action.counter ? 1 : 0);
  writer.u32(action.counter.value_or(0));
  writer.u64(action.value);
  return writer.take();
}

Result<EndpointRequest> decode_endpoint_request(std::string_view bytes) {
  ByteReader reader(bytes);
  EndpointRequest request;
  const std::uint32_t pieces = reader.u32();
  if (pieces > kMostPieces) return malformed();
  request.resolve.resize(pieces);
  for (Piece& piece : request.resolve) {
    piece.remote = reader.u64();
    piece.bytes = reader.u64();
  }
  if (reader.u8() != 0) {
    Notify notify;
    notify.sender = reader.text();
    const bool has_message = reader.u8() != 0;
    std::string message(reader.text());
    if (has_message) notify.action.message = std::move(message);
    const bool has_counter = reader.u8() != 0;
    const std::uint32_t counter = reader.u32();
    if (has_counter) notify.action.counter = counter;
    notify.action.value = reader.u64();
    request.notify = std::move(notify);
  }
  if (!reader.is_finished()) return malformed();
  return request;
}

std::string encode(const ResolveAnswer& answer) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(answer.extents.size()));
  for (const RegionExtent& extent : answer.extents) {
    writer.u64(extent.base);
    writer.text(extent.region.encode());
  }
  writer.text(answer.refusal);
  return writer.take();
}

Result<ResolveAnswer> decode_resolve_answer(std::string_view bytes) {
  ByteReader reader(bytes);
  ResolveAnswer answer;
  const std::uint32_t extents = reader.u32();
  if (extents > kMostPieces) return malformed();
  answer.extents.resize(extents);
  for (RegionExtent& extent : answer.extents) {
    extent.base = reader.u64();
    auto region = RemoteRegion::decode(reader.text());
    if (!region.is_ok()) return malformed();
    extent.region = std::move(region).value();
  }
  answer.refusal = reader.text();
  if (!reader.is_finished()) return malformed();
  return answer;
}

// ---- the peer

// Thread-safe.
class RemoteEndpoint final : public Peer {
 public:
  void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) override {
    resolved.count = 0;
    resolved.is_refused = false;
    resolved.is_missing = false;
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
    MEMSPAN_PASS_ASSIGN(auto bytes,
                        call({.resolve = resolved.wanted_pieces, .notify = {}}, deadline));
    MEMSPAN_PASS_ASSIGN(auto answer, decode_resolve_answer(bytes));
    const bool has_some = !answer.extents.empty();
    add(std::move(answer.extents));
    if (has_some || answer.refusal.empty()) return Status::ok();
    MutexLock lock(mutex_);
    nearest_ = std::move(answer.refusal);
    return {Code::kNotFound, nearest_};
  }
  void forget_extents() override MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    extents_ = std::make_shared<const KnownExtents>();
  }
  Status refusal(const Piece& piece, std::uint64_t number) override {
    MutexLock lock(mutex_);
    return not_registered(piece, number, record().name, nearest_);
  }
  Status notify(const std::string& sender, const CompletionAction& action) override {
    MEMSPAN_PASS(why_not_live());
    if (!action.message && !action.counter) return Status::ok();
    const auto answer =
        call({.resolve = {}, .notify = Notify{sender, action}}, Deadline::after(kNotifyPatience));
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
  // A process that lives knows whether it has destroyed the endpoint.
  End how_it_left() override {
    const auto answer = remote_->call(record().published_name(), encode(EndpointRequest{}),
                                      Deadline::after(kRemoteAskPatience));
    return answer.is_ok()                     ? End::kNone
           : answer.code() == Code::kNotFound ? End::kEnded
           : answer.code() == Code::kPeerLost ? End::kLost
                                              : End::kLeft;
  }
  // The peer has destroyed an endpoint that it does not have any more. An answer counts even if the
  // peer has ended since: a program may end once it was notified.
  Result<std::string> call(const EndpointRequest& request, Deadline deadline) {
    auto answer = remote_->call(record().published_name(), encode(request), deadline);
    if (answer.code() == Code::kPeerLost) note_lost();
    if (answer.code() == Code::kNotFound) end(End::kEnded);
    if (answer.code() == Code::kTimeout)
      return answer.status().annotate(fmt::format("endpoint {}", record().name));
    if (answer.is_ok() || !has_ended()) return answer;
    return why_not_live();
  }
  void add(std::vector<RegionExtent> extents) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const bool is_too_much = extents_->size() + extents.size() > kMostKnown;
    auto more =
        is_too_much ? std::make_shared<KnownExtents>() : std::make_shared<KnownExtents>(*extents_);
    for (RegionExtent& extent : extents) {
      const auto at = std::upper_bound(
          more->begin(), more->end(), extent.base,
          [](std::uint64_t address, const RegionExtent& known) { return address < known.base; });
      more->insert(at, std::move(extent));
    }
    extents_ = std::move(more);
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
