// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/epoch_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"

namespace memspan {
namespace {

Status malformed(std::string_view what) {
  return {Code::kInternal, fmt::format("a malformed {} of an all-gather in the store", what)};
}

void write(ByteWriter& writer, const EpochCaller& caller) {
  writer.u32(static_cast<std::uint32_t>(caller.rank));
  writer.u64(caller.nonce);
  writer.u64(caller.lease);
  writer.text(caller.member);
  writer.text(caller.alive);
}

EpochCaller read_caller(ByteReader& reader) {
  EpochCaller caller;
  caller.rank = static_cast<int>(reader.u32());
  caller.nonce = reader.u64();
  caller.lease = reader.u64();
  caller.member = reader.text();
  caller.alive = reader.text();
  return caller;
}

void write(ByteWriter& writer, const std::vector<EpochCaller>& callers) {
  writer.u32(static_cast<std::uint32_t>(callers.size()));
  for (const EpochCaller& caller : callers) write(writer, caller);
}

std::vector<EpochCaller> read_callers(ByteReader& reader) {
  std::vector<EpochCaller> callers;
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i)
    callers.push_back(read_caller(reader));
  return callers;
}

}  // namespace

std::string EpochSlot::encode() const {
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(state));
  write(writer, caller);
  write(writer, met);
  writer.u64(static_cast<std::uint64_t>(gave_up_at));
  writer.u32(static_cast<std::uint32_t>(size));
  part.write(writer);
  return writer.take();
}

Result<EpochSlot> EpochSlot::decode(std::string_view text) {
  ByteReader reader(text);
  EpochSlot slot;
  const std::uint8_t state = reader.u8();
  slot.state = static_cast<State>(state);
  slot.caller = read_caller(reader);
  slot.met = read_caller(reader);
  slot.gave_up_at = static_cast<std::int64_t>(reader.u64());
  slot.size = static_cast<int>(reader.u32());
  slot.part = Contribution::read(reader);
  if (!reader.is_finished() || state > 2) return malformed("slot");
  return slot;
}

bool EpochDecision::concerns(std::uint64_t nonce) const {
  return std::any_of(decided.begin(), decided.end(),
                     [&](const EpochCaller& caller) { return caller.nonce == nonce; });
}

bool EpochDecision::has_lost_one_of(std::uint64_t lease) const {
  return lost.nonce != 0 &&
         std::any_of(last.begin(), last.end(),
                     [lease](const EpochCaller& caller) { return caller.lease == lease; });
}

std::string EpochDecision::encode() const {
  ByteWriter writer;
  writer.u64(serial);
  writer.u8(static_cast<std::uint8_t>(status.code()));
  writer.text(status.message());
  write(writer, decided);
  write(writer, last);
  write(writer, lost);
  writer.u32(static_cast<std::uint32_t>(consumed.size()));
  for (const std::uint64_t nonce : consumed) writer.u64(nonce);
  for (const std::string& part : parts) writer.text(part);
  return writer.take();
}

Result<EpochDecision> EpochDecision::decode(std::string_view text) {
  EpochDecision decision;
  if (text.empty()) return decision;
  ByteReader reader(text);
  decision.serial = reader.u64();
  const auto code = static_cast<Code>(reader.u8());
  const std::string_view message = reader.text();
  if (code != Code::kOk) decision.status = Status(code, std::string(message));
  decision.decided = read_callers(reader);
  decision.last = read_callers(reader);
  decision.lost = read_caller(reader);
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i)
    decision.consumed.insert(reader.u64());
  while (reader.is_ok() && !reader.is_finished()) decision.parts.emplace_back(reader.text());
  if (!reader.is_finished() || code > Code::kInternal) return malformed("decision");
  return decision;
}

EpochDecision EpochDecision::next(const EpochSlots& slots) const {
  EpochDecision next{.serial = serial + 1, .last = last, .lost = lost};
  for (const auto& [rank, slot] : slots)
    if (consumed.contains(slot.caller.nonce)) next.consumed.insert(slot.caller.nonce);
  return next;
}

}  // namespace memspan
