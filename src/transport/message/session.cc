// SPDX-License-Identifier: Apache-2.0
#include "transport/message/session.h"

#include <fmt/format.h>

#include <cstring>

#include "core/random.h"

namespace memspan {
namespace {

using Header = std::span<const std::byte, kFrameBytes>;

// The keys of the connecting and of the accepting side, and its proof. They stay the same in all
// versions of the protocol.
enum class Purpose : std::uint64_t { kConnecting = 1, kAccepting = 2, kProof = 3 };

std::uint64_t hash(const SipKey& secret, const Nonce& nonce, Purpose purpose, std::uint64_t more) {
  const std::array<std::uint64_t, 4> input{nonce.low, nonce.high,
                                           static_cast<std::uint64_t>(purpose), more};
  return siphash(secret, std::as_bytes(std::span(input)));
}

SipKey derive_key(const SipKey& secret, const Nonce& nonce, Purpose purpose) {
  return {hash(secret, nonce, purpose, 0), hash(secret, nonce, purpose, 1)};
}

std::uint64_t seal_of(const SipKey& key, Header header, std::uint32_t sequence) {
  std::array<std::byte, kSealOffset + sizeof sequence> input;
  std::memcpy(input.data(), header.data(), kSealOffset);
  std::memcpy(input.data() + kSealOffset, &sequence, sizeof sequence);
  return siphash(key, input);
}

bool is_sealed(const SipKey& key, Header header, std::uint32_t sequence) {
  std::uint64_t seal = 0;
  std::memcpy(&seal, header.data() + kSealOffset, sizeof seal);
  return seal == seal_of(key, header, sequence);
}

}  // namespace

Session Session::connecting(const SipKey& secret) {
  Session made(secret);
  const SipKey drawn = SipKey::from_hex(random_hex(sizeof(Nonce))).value();
  made.derive({drawn.low, drawn.high});
  return made;
}

Session Session::accepting(const SipKey& secret) {
  Session made(secret);
  made.accepts_ = true;
  return made;
}

void Session::derive(const Nonce& nonce) {
  nonce_ = nonce;
  const SipKey connecting = derive_key(secret_, nonce, Purpose::kConnecting);
  const SipKey accepting = derive_key(secret_, nonce, Purpose::kAccepting);
  sends_ = accepts_ ? accepting : connecting;
  receives_ = accepts_ ? connecting : accepting;
  has_keys_ = true;
}

// The key makes it useless to other owners, although they see it.
std::uint64_t Session::proof(const SipKey& secret) const {
  return hash(secret, nonce_, Purpose::kProof, accepts_ ? receives_.low : sends_.low);
}

void Session::seal(FrameHeader& header, std::uint32_t sequence) const {
  const std::uint64_t seal = seal_of(sends_, header, sequence);
  std::memcpy(header.data() + kSealOffset, &seal, sizeof seal);
}

Result<Frame> Session::open(Header header, std::uint32_t sequence) {
  if (has_keys_ && is_sealed(receives_, header, sequence)) return decode(header);
  const bool is_first = sequence == 0;
  if (is_first && !accepts_ && is_sealed({}, header, sequence)) {
    MEMSPAN_TRY_ASSIGN(Frame frame, decode(header), "receiving");
    frame.flags = 0;  // it is not an answer
    if (frame.type == FrameType::kRefused && frame.kind == static_cast<int>(Refusal::kHello))
      return frame;
  }
  if (is_first && accepts_) {
    MEMSPAN_TRY_ASSIGN(const Frame frame, decode(header), "receiving");
    if (frame.type != FrameType::kHello) return Status(Code::kAuth, "it did not greet first");
    Session tried = *this;
    tried.derive({frame.operand, frame.compare});
    if (is_sealed(tried.receives_, header, sequence)) {
      *this = tried;
      return frame;
    }
    return Status(
        Code::kAuth,
        "the caller does not know the secret of this process, or speaks another version of "
        "the protocol");
  }
  return Status(Code::kInvalidArgument,
                fmt::format("frame {} is not sealed as the next frame of this connection: forged, "
                            "damaged, repeated or out of its order",
                            sequence));
}

}  // namespace memspan
