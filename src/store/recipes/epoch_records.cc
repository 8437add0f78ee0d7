// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/epoch_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "store/recipes/key_names.h"

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
}

EpochCaller read_caller(ByteReader& reader) {
  EpochCaller caller;
  caller.rank = static_cast<int>(reader.u32());
  caller.nonce = reader.u64();
  caller.lease = reader.u64();
  caller.member = reader.text();
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

std::string EpochCaller::encode() const {
  ByteWriter writer;
  write(writer, *this);
  return writer.take();
}

Result<EpochCaller> EpochCaller::decode(std::string_view text) {
  ByteReader reader(text);
  EpochCaller caller = read_caller(reader);
  if (!reader.is_finished()) return malformed("caller");
  return caller;
}

std::string EpochSlot::encode() const {
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(state));
  write(writer, caller);
  writer.u64(serial);
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
  slot.serial = reader.u64();
  slot.size = static_cast<int>(reader.u32());
  slot.part = Contribution::read(reader);
  if (!reader.is_finished() || state > 2) return malformed("slot");
  return slot;
}

bool EpochDecision::concerns(std::uint64_t nonce) const {
  return std::any_of(decided.begin(), decided.end(),
                     [&](const EpochCaller& caller) { return caller.nonce == nonce; });
}

std::string EpochDecision::encode() const {
  ByteWriter writer;
  writer.u64(serial);
  writer.u8(static_cast<std::uint8_t>(status.code()));
  writer.text(status.message());
  write(writer, decided);
  write(writer, last);
  writer.u32(static_cast<std::uint32_t>(consumed.size()));
  for (const auto& [nonce, slot] : consumed) {
    writer.u64(nonce);
    writer.u32(static_cast<std::uint32_t>(slot.rank));
    writer.u64(slot.serial);
  }
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
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i) {
    const std::uint64_t nonce = reader.u64();
    const int rank = static_cast<int>(reader.u32());
    decision.consumed[nonce] = {rank, reader.u64()};
  }
  while (reader.is_ok() && !reader.is_finished()) decision.parts.emplace_back(reader.text());
  if (!reader.is_finished() || code > Code::kInternal) return malformed("decision");
  return decision;
}

Result<EpochSlots> read_slots(const StoreListing& listing, std::string_view prefix) {
  EpochSlots slots;
  for (const auto& [key, value] : listing) {
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(key, prefix), "reading an all-gather");
    MEMSPAN_TRY_ASSIGN(slots[rank], EpochSlot::decode(value), "reading an all-gather");
  }
  return slots;
}

std::vector<const EpochSlot*> EpochView::fresh(int size) const {
  using enum EpochSlot::State;
  std::vector<const EpochSlot*> fresh;
  for (const auto& [rank, slot] : slots)
    if ((slot.state == kFilled || (slot.state == kGaveUp && slot.size == size)) &&
        !decision.consumed.contains(slot.caller.nonce))
      fresh.push_back(&slot);
  return fresh;
}

EpochDecision EpochView::next_decision() const {
  constexpr std::uint64_t kLongAgo = 64;  // decisions
  EpochDecision next{.serial = decision.serial + 1, .last = decision.last};
  for (const auto& [nonce, consumed] : decision.consumed) {
    const auto slot = slots.find(consumed.rank);
    const bool is_over = slot == slots.end() ? consumed.serial + kLongAgo < next.serial
                                             : slot->second.caller.nonce != nonce &&
                                                   slot->second.serial >= consumed.serial;
    if (!is_over) next.consumed.emplace(nonce, consumed);
  }
  return next;
}

}  // namespace memspan
