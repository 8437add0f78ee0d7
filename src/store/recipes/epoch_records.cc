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

std::string EpochSlot::encode() const {
  ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(state));
  write(writer, caller);
  writer.u32(size);
  writer.u64(length);
  writer.text(bytes);
  return writer.take();
}

Result<EpochSlot> EpochSlot::decode(std::string_view text) {
  ByteReader reader(text);
  EpochSlot slot;
  const std::uint8_t state = reader.u8();
  slot.state = state == 0 ? State::kEmpty : State::kFilled;
  slot.caller = read_caller(reader);
  slot.size = reader.u32();
  slot.length = reader.u64();
  slot.bytes = reader.text();
  if (!reader.is_finished() || state > 1) return malformed("slot");
  return slot;
}

bool EpochDecision::concerns(std::uint64_t nonce) const {
  return std::any_of(decided.begin(), decided.end(),
                     [&](const EpochCaller& caller) { return caller.nonce == nonce; });
}

std::string EpochDecision::encode() const {
  ByteWriter writer;
  writer.u64(serial);
  writer.u8(static_cast<std::uint8_t>(code));
  writer.text(message);
  write(writer, decided);
  write(writer, last);
  writer.u32(static_cast<std::uint32_t>(consumed.size()));
  for (std::uint64_t nonce : consumed) writer.u64(nonce);
  return writer.take();
}

Result<EpochDecision> EpochDecision::decode(std::string_view text) {
  EpochDecision decision;
  if (text.empty()) return decision;
  ByteReader reader(text);
  decision.serial = reader.u64();
  const std::uint8_t code = reader.u8();
  decision.code = static_cast<Code>(code);
  decision.message = reader.text();
  decision.decided = read_callers(reader);
  decision.last = read_callers(reader);
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i)
    decision.consumed.insert(reader.u64());
  if (!reader.is_finished() || code > static_cast<std::uint8_t>(Code::kInternal))
    return malformed("decision");
  return decision;
}

Result<EpochView> EpochView::read(const StoreListing& listing, std::string_view prefix) {
  EpochView view;
  const std::string slots = fmt::format("{}slot/", prefix);
  for (const auto& [key, value] : listing) {
    if (key == fmt::format("{}decision", prefix)) view.decision_text = value;
    if (!key.starts_with(slots)) continue;
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(key, slots), "reading an all-gather");
    MEMSPAN_TRY_ASSIGN(view.slots[rank], EpochSlot::decode(value), "reading an all-gather");
  }
  MEMSPAN_TRY_ASSIGN(view.decision, EpochDecision::decode(view.decision_text),
                     "reading an all-gather");
  return view;
}

std::map<int, EpochSlot> EpochView::fresh() const {
  std::map<int, EpochSlot> fresh;
  for (const auto& [rank, slot] : slots)
    if (slot.state == EpochSlot::State::kFilled && !decision.consumed.contains(slot.caller.nonce))
      fresh.emplace(rank, slot);
  return fresh;
}

EpochDecision EpochView::next_decision() const {
  EpochDecision next;
  next.serial = decision.serial + 1;
  next.last = decision.last;
  for (const auto& [rank, slot] : slots)
    if (decision.consumed.contains(slot.caller.nonce)) next.consumed.insert(slot.caller.nonce);
  return next;
}

}  // namespace memspan
