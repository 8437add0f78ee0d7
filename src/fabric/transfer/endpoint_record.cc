// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/endpoint_record.h"

#include <algorithm>

#include "core/bytes.h"

namespace memspan::transfer {
namespace {

constexpr std::uint8_t kRecordFormat = 4;

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSender:
      return "SENDER";
    case Role::kReceiver:
      return "RECEIVER";
    case Role::kBoth:
      return "BOTH";
  }
  return "UNKNOWN";
}

bool may_reach(Role from, Role to) {
  return from != to || from == Role::kBoth;
}

std::string record_key(std::string_view normal_name) {
  return std::string(kRecordsPrefix).append(normal_name).append("/");
}

std::string_view name_of_key(std::string_view key) {
  key.remove_prefix(std::min(key.size(), kRecordsPrefix.size()));
  return key.substr(0, key.find('/'));
}

std::string destroyed_key(const EndpointRecord& record) {
  return record_key(record.name) + "destroyed/" + record.generation;
}

std::string encode(const EndpointRecord& record) {
  ByteWriter writer;
  writer.u8(kRecordFormat);
  writer.text(record.name);
  writer.text(record.generation);
  writer.u8(static_cast<std::uint8_t>(record.role));
  writer.text(record.broker_address);
  writer.u64(record.who.session);
  writer.i64(record.who.process);
  writer.text(record.who.host.id);
  writer.text(record.who.host.name);
  writer.u32(record.renewals);
  return writer.take();
}

Result<EndpointRecord> decode_record(std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint8_t format = reader.u8();
  EndpointRecord record;
  record.name = reader.text();
  record.generation = reader.text();
  const std::uint8_t role = reader.u8();
  record.broker_address = reader.text();
  record.who.session = reader.u64();
  record.who.process = reader.i64();
  record.who.host.id = reader.text();
  record.who.host.name = reader.text();
  record.renewals = reader.u32();
  if (!reader.is_finished() || format != kRecordFormat || role < 1 || role > 3)
    return Status(Code::kInvalidArgument, "an endpoint's record at the store is damaged");
  record.role = static_cast<Role>(role);
  return record;
}

}  // namespace memspan::transfer
