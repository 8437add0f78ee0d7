// SPDX-License-Identifier: Apache-2.0
#include "node/mapper_table.h"

#include <fmt/format.h>

namespace memspan {
Result<MapperTable> MapperTable::create(std::uint32_t ranks) {
  MEMSPAN_PASS_ASSIGN(Pages pages, Pages::create(bytes_for(ranks), "memspan-mappers"));
  return map(std::move(pages), ranks);
}

Result<MapperTable> MapperTable::open(Fd descriptor, std::uint32_t ranks) {
  MEMSPAN_PASS_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)));
  return map(std::move(pages), ranks);
}

Result<MapperTable> MapperTable::map(Pages pages, std::uint32_t ranks) {
  if (pages.bytes() < bytes_for(ranks))
    return Status(Code::kInvalidArgument, fmt::format("a mapper table of {} bytes, {} are needed",
                                                      pages.bytes(), bytes_for(ranks)));
  MEMSPAN_PASS_ASSIGN(Reservation range, Reservation::make(pages.bytes(), nullptr));
  MEMSPAN_PASS(range.map(0, pages, 0, pages.bytes()));
  return MapperTable(std::move(pages), std::move(range));
}

void MapperTable::set_mapped(std::uint32_t rank, std::uint64_t join) {
  words(rank).mapped_by.store(join, std::memory_order_release);  // pairs with mapped_by()
  notify();
}

void MapperTable::clear_mapped(std::uint32_t rank, std::uint64_t join) {
  words(rank).mapped_by.compare_exchange_strong(join, 0, std::memory_order_release,
                                                std::memory_order_relaxed);
  notify();
}

std::uint64_t MapperTable::mapped_by(std::uint32_t rank) const {
  return words(rank).mapped_by.load(std::memory_order_acquire);
}

void MapperTable::admit(std::uint32_t rank, std::uint64_t join) {
  words(rank).admitted.store(join, std::memory_order_release);  // pairs with admitted()
  notify();
}

std::uint64_t MapperTable::admitted(std::uint32_t rank) const {
  return words(rank).admitted.load(std::memory_order_acquire);
}

}  // namespace memspan
