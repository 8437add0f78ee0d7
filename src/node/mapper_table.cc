// SPDX-License-Identifier: Apache-2.0
#include "node/mapper_table.h"

#include <fmt/format.h>

namespace memspan {
namespace {

std::size_t bytes_for(std::uint32_t ranks) {
  return sizeof(EventCount) + std::size_t{ranks} * sizeof(std::uint32_t);
}

}  // namespace

Result<MapperTable> MapperTable::create(std::uint32_t ranks) {
  auto pages = Pages::create(bytes_for(ranks), "memspan-mappers");
  if (!pages.is_ok()) return pages.status();
  return map(std::move(pages).value(), ranks);
}

Result<MapperTable> MapperTable::open(Fd descriptor, std::uint32_t ranks) {
  auto pages = Pages::adopt(std::move(descriptor));
  if (!pages.is_ok()) return pages.status();
  return map(std::move(pages).value(), ranks);
}

Result<MapperTable> MapperTable::map(Pages pages, std::uint32_t ranks) {
  if (pages.bytes() < bytes_for(ranks))
    return Status(Code::kInvalidArgument, fmt::format("a mapper table of {} bytes, {} are needed",
                                                      pages.bytes(), bytes_for(ranks)));
  auto range = Reservation::make(pages.bytes(), nullptr);
  if (!range.is_ok()) return range.status();
  MEMSPAN_PASS(range->map(0, pages, 0, pages.bytes()));
  return MapperTable(std::move(pages), std::move(range).value());
}

void MapperTable::set_mapped(std::uint32_t rank, bool is_mapped) {
  flag(rank).store(is_mapped ? 1 : 0, std::memory_order_release);  // pairs with is_mapped()
  notify();
}

bool MapperTable::is_mapped(std::uint32_t rank) const {
  return flag(rank).load(std::memory_order_acquire) != 0;
}

}  // namespace memspan
