// SPDX-License-Identifier: Apache-2.0
// Memory that peers can reach. A region is named by number and generation, never by an address:
// the generation is another one each time a number is used again, so that a handle from before is
// recognized as stale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "device/pages.h"

namespace memspan {

enum class MemoryKind : std::uint8_t { kHost, kDevice };

// A value. Neither number is ever 0 in a region that exists.
struct RegionId {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;
  bool operator==(const RegionId&) const = default;
};

// What a peer needs to reach a region. A value, sent at join or when it is needed.
struct RemoteRegion {
  RegionId id;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::string transport_key;  // only the transport that made it reads it

  // Whether an access is wholly inside.
  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes && length <= bytes - offset;
  }
  std::string encode() const;
  // kInvalidArgument for bytes that encode() does not write.
  static Result<RemoteRegion> decode(std::string_view text);
  bool operator==(const RemoteRegion&) const = default;
};

// Memory of this process that it exposes. `number` 0 takes the next free one.
struct LocalRegion {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t number = 0;
  // For `mapped`: where the memory is in its file, and where a peer has it in its address range.
  std::size_t pages_offset = 0;
  std::size_t mapped_at = 0;
  // The memory stays where it is until the job ends, so it may be registered with a network and
  // reached without this process (docs/design/0014-native-rma.md).
  bool lasts = false;
};

// Memory of this process that peers may reach. It is retracted when destroyed: no access touches
// the memory after that, and a late one is kStale. It must not outlive its transport.
class ExposedRegion {
 public:
  virtual ~ExposedRegion() = default;
  virtual const RemoteRegion& describe() const = 0;
};

}  // namespace memspan
