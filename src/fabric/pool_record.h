// SPDX-License-Identifier: Apache-2.0
// The store's record of a pool's member.
#pragma once

#include "core/bytes.h"
#include "fabric/pool.h"

namespace memspan {

// A value.
struct Pool::Record {
  std::uint64_t generation = 0;  // of this join: no other has the same
  MemberIdentity who;
  std::string broker_address;
  std::array<std::uint64_t, kRanges> bytes = {};
  bool has_own_host_memory = true;  // not the caller's
  std::string tag;

  std::string encode() const {
    ByteWriter writer;
    writer.u64(generation);
    writer.u64(who.session);
    writer.i64(who.process);
    writer.text(who.host.id);
    writer.text(who.host.name);
    writer.text(broker_address);
    for (const std::uint64_t number : bytes) writer.u64(number);
    writer.u8(has_own_host_memory ? 1 : 0);
    writer.text(tag);
    return writer.take();
  }
  static std::optional<Record> decode(std::string_view text) {
    ByteReader reader(text);
    Record record;
    record.generation = reader.u64();
    record.who.session = reader.u64();
    record.who.process = reader.i64();
    record.who.host.id = reader.text();
    record.who.host.name = reader.text();
    record.broker_address = reader.text();
    for (std::uint64_t& number : record.bytes) number = reader.u64();
    record.has_own_host_memory = reader.u8() != 0;
    record.tag = reader.text();
    if (!reader.is_finished()) return std::nullopt;
    return record;
  }
};

}  // namespace memspan
