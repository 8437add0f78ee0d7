// SPDX-License-Identifier: Apache-2.0
#include "transport/region.h"

#include "core/bytes.h"

namespace memspan {

std::string RemoteRegion::encode() const {
  ByteWriter out;
  out.u32(id.number);
  out.u32(id.generation);
  out.u64(bytes);
  out.u8(static_cast<std::uint8_t>(kind));
  out.text(transport_key);
  return out.take();
}

Result<RemoteRegion> RemoteRegion::decode(std::string_view text) {
  ByteReader in(text);
  RemoteRegion region;
  region.id.number = in.u32();
  region.id.generation = in.u32();
  region.bytes = in.u64();
  const std::uint8_t kind = in.u8();
  region.kind = static_cast<MemoryKind>(kind);
  region.transport_key = in.text();
  if (!in.is_finished() || kind > static_cast<std::uint8_t>(MemoryKind::kDevice) ||
      region.id.number == 0 || region.id.generation == 0)
    return Status(Code::kInvalidArgument, "a peer's description of a region cannot be read");
  return region;
}

}  // namespace memspan
