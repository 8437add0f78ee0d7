// SPDX-License-Identifier: Apache-2.0
// Memory that peers can reach. A region is named by number and generation, never by an address. The
// generation changes each time a number is reused, so an old handle is recognized as stale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/pages.h"
#include "core/status.h"

namespace memspan {

enum class MemoryKind : std::uint8_t { kHost, kDevice };

// A value. In an existing region neither number is 0.
struct RegionId {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;
  bool operator==(const RegionId&) const = default;
};

// Describes a region to a peer. A value, sent at join or on demand.
struct RemoteRegion {
  RegionId id;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::string transport_key;  // only the transport that made it reads it

  // Whether an access is completely inside.
  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes && length <= bytes - offset;
  }
  std::string encode() const;
  // kInvalidArgument for text that encode() does not write.
  static Result<RemoteRegion> decode(std::string_view text);
  bool operator==(const RemoteRegion&) const = default;
};

// Memory that this process exposes. `number` 0: the next free number.
struct LocalRegion {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t number = 0;
  // The memory stays in place until the job ends. So a network may register it and reach it without
  // this process (docs/design/0014-native-rma.md).
  bool lasts = false;
};

// Memory of this process that peers may reach. Destruction retracts it: later accesses do not touch
// the memory and return kStale. It must not outlive its transport.
class ExposedRegion {
 public:
  virtual ~ExposedRegion() = default;
  virtual const RemoteRegion& describe() const = 0;
};

}  // namespace memspan
