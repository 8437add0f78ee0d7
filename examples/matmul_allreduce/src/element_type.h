// SPDX-License-Identifier: Apache-2.0
// The four types a job can run in. 16-bit types are only storage: products and sums are made in
// float and rounded once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace matmul {

enum class ElementType { kFp16, kBf16, kFloat, kInt32 };

inline constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::kFp16 || type == ElementType::kBf16 ? 2 : 4;
}

// Partial products of one rank are kept in float, or int32 for int32: always four bytes.
inline constexpr std::size_t kPartialBytes = 4;

inline constexpr std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kFp16:
      return "fp16";
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kFloat:
      return "float";
    case ElementType::kInt32:
      return "int32";
  }
  return "";
}

inline constexpr std::optional<ElementType> element_type_named(std::string_view name) {
  for (ElementType type :
       {ElementType::kFp16, ElementType::kBf16, ElementType::kFloat, ElementType::kInt32})
    if (element_name(type) == name) return type;
  return std::nullopt;
}

}  // namespace matmul
