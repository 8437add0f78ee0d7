// SPDX-License-Identifier: Apache-2.0
// Products of bf16 matrices with sums in float, by oneDNN's matmul primitive: it uses the matrix
// unit of the processor (AMX) or its bf16 vector instructions.
//
// oneDNN reads B in an order of its own, so B is packed once for all tiles of a column. Kernels
// are compiled and scratch memory is reserved when the object is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace matmul {

enum class Bf16Unit { kNone, kVector, kMatrix };

// The fastest unit that oneDNN uses on this processor. kNone if the program lacks oneDNN.
Bf16Unit bf16_unit();

struct ProductShape {
  std::uint64_t rows = 0, columns = 0, depth = 0;
  bool operator==(const ProductShape&) const = default;
};

// a is row-major without gaps, and so is c.
struct Bf16Operands {
  ProductShape shape;
  const std::uint16_t* a = nullptr;
  const void* packed_b = nullptr;
  float* c = nullptr;
  bool adds = false;  // to what c holds
};

// One thread at a time, any thread.
class Bf16Product {
 public:
  // Null if oneDNN has no fast kernel for one of the shapes. Only these shapes can be multiplied.
  static std::unique_ptr<Bf16Product> create(std::span<const ProductShape> shapes);
  ~Bf16Product();

  std::size_t packed_bytes() const;  // of the largest B
  // b is depth x columns, row-major without gaps.
  void pack(const ProductShape& shape, const std::uint16_t* b, void* packed);
  void multiply(const Bf16Operands& operands);

 private:
  class Kernels;
  explicit Bf16Product(std::unique_ptr<Kernels> kernels);
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace matmul
