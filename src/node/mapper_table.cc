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

}  // namespace memspan
