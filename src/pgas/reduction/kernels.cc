// SPDX-License-Identifier: Apache-2.0
#include "pgas/reduction/kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "pgas/reduction/narrow_floats.h"

namespace memspan::pgas {
namespace {

// The operations of reductions on two values of one type.

// Arithmetic of small integers is done in the type itself, wrapping; signed overflow also wraps.
template <typename T>
struct Sum {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
template <typename T>
struct Product {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // Through 64 bits without a sign: no promotion to int, no undefined overflow.
      return static_cast<T>(static_cast<unsigned long long>(a) *
                            static_cast<unsigned long long>(b));
    } else {
      return a * b;
    }
  }
};
// Not operator*, which looks for infinities.
template <typename T>
struct Product<std::complex<T>> {
  static std::complex<T> apply(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
template <typename T>
struct Min {
  static T apply(T a, T b) { return b < a ? b : a; }
};
template <typename T>
struct Max {
  static T apply(T a, T b) { return a < b ? b : a; }
};
template <typename T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <typename T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <typename T>
struct Xor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};

// A type that is computed in itself.
template <typename T>
struct Plain {
  using Wide = T;
  T value;
  static T widen(Plain plain) { return plain.value; }
  static Plain narrow(T value) { return {value}; }
};

template <typename T>
struct Keep {
  static T finish(T sum, int) { return sum; }
};
template <typename T>
struct Divide {
  static T finish(T sum, int members) {
    if constexpr (std::is_arithmetic_v<T>)
      return sum / static_cast<T>(members);
    else
      return sum / static_cast<typename T::value_type>(members);
  }
};

// An element depends on the sources' elements at its own index, also where a source is the result.
#ifdef __clang__
#define MEMSPAN_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MEMSPAN_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

constexpr std::size_t kBlockBytes = 4096;  // three of them stay in the first-level cache

// In blocks. Each pass over a block reads one more source, and the last one writes the result.
template <typename Stored, typename Apply, typename Finish>
[[gnu::always_inline]] inline void combine_all(void* result, const void* const sources[],
                                               int members, std::size_t count) {
  using Wide = typename Stored::Wide;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Wide);
  Wide sums[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    const auto source = [&](int member) {
      return static_cast<const Stored*>(sources[member]) + begin;
    };
    const Stored* const first = source(0);
    const Stored* const last = source(members - 1);
    auto* const to = static_cast<Stored*>(result) + begin;
    const auto store = [&](std::size_t i, Wide sum) {
      to[i] = Stored::narrow(Finish::finish(sum, members));
    };
    if (members == 1) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i) store(i, Stored::widen(first[i]));
      continue;
    }
    if (members == 2) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i)
        store(i, Apply::apply(Stored::widen(first[i]), Stored::widen(last[i])));
      continue;
    }
    const Stored* const second = source(1);
    for (std::size_t i = 0; i < now; ++i)
      sums[i] = Apply::apply(Stored::widen(first[i]), Stored::widen(second[i]));
    for (int member = 2; member < members - 1; ++member) {
      const Stored* const next = source(member);
      for (std::size_t i = 0; i < now; ++i) sums[i] = Apply::apply(sums[i], Stored::widen(next[i]));
    }
    MEMSPAN_VECTOR_LOOP
    for (std::size_t i = 0; i < now; ++i) store(i, Apply::apply(sums[i], Stored::widen(last[i])));
  }
}

// into[i] = into[i] op from[i].
template <typename T, typename Apply>
void accumulate(void* into, const void* from, std::size_t count) {
  auto* const sums = static_cast<T*>(into);
  const auto* const terms = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) sums[i] = Apply::apply(sums[i], terms[i]);
}

#ifdef __x86_64__
#define MEMSPAN_TARGET(...) __attribute__((target(__VA_ARGS__)))

#else
#define MEMSPAN_TARGET(...)
#endif

// combine_all() for each instruction set.
template <typename Stored, typename Apply, typename Finish>
struct Kernel {
  static void baseline(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx2")
  static void avx2(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
  static void avx512(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
};

template <typename Stored, typename Apply, typename Finish>
constexpr ReductionKernel::Combine combine_of(Instructions instructions) {
  // Integers are fast enough as they are.
  if constexpr (std::is_same_v<Stored, Plain<float>> || std::is_same_v<Stored, Plain<double>>) {
    if (instructions == Instructions::kAvx2) return Kernel<Stored, Apply, Finish>::avx2;
    if (instructions >= Instructions::kAvx512) return Kernel<Stored, Apply, Finish>::avx512;
  }
  return Kernel<Stored, Apply, Finish>::baseline;
}

using Row = std::array<ReductionKernel, kOperators>;

#ifdef __x86_64__
template <typename Kernels>
constexpr ReductionKernel::Combine wide_combine_of(Operator op) {
  switch (op) {
    case Operator::kSum:
      return Kernels::sum;
    case Operator::kProduct:
      return Kernels::product;
    case Operator::kMin:
      return Kernels::min;
    case Operator::kMax:
      return Kernels::max;
    case Operator::kAverage:
      return Kernels::average;
    default:
      return nullptr;
  }
}
template <typename Stored>
constexpr ReductionKernel::Combine wide_combine_of(Operator op, Instructions instructions) {
  if (instructions == Instructions::kAvx2) return wide_combine_of<WideKernels<Stored, Avx2>>(op);
  if constexpr (std::is_same_v<Stored, Bfloat16>)
    if (instructions == Instructions::kAvx512Bf16)
      return wide_combine_of<WideKernels<Stored, Avx512<Instructions::kAvx512Bf16>>>(op);
  return wide_combine_of<WideKernels<Stored, Avx512<Instructions::kAvx512>>>(op);
}
#endif

template <typename Stored, template <typename> class Apply>
constexpr void set(Row& row, Operator op, Instructions instructions) {
  using T = typename Stored::Wide;
  ReductionKernel& kernel = row[static_cast<std::size_t>(op)];
  kernel.combine = combine_of<Stored, Apply<T>, Keep<T>>(instructions);
  if constexpr (std::is_same_v<Stored, Plain<T>>) kernel.accumulate = accumulate<T, Apply<T>>;
}

template <typename Stored>
constexpr Row row_of(ElementType type, Instructions instructions) {
  using T = typename Stored::Wide;
  Row row{};
  for (std::size_t op = 0; op < row.size(); ++op)
    row[op] = {type, static_cast<Operator>(op), sizeof(Stored), nullptr, nullptr};
  set<Stored, Sum>(row, Operator::kSum, instructions);
  set<Stored, Product>(row, Operator::kProduct, instructions);
  if constexpr (std::is_arithmetic_v<T>) {
    set<Stored, Min>(row, Operator::kMin, instructions);
    set<Stored, Max>(row, Operator::kMax, instructions);
  }
  if constexpr (std::is_integral_v<T>) {
    set<Stored, And>(row, Operator::kAnd, instructions);
    set<Stored, Or>(row, Operator::kOr, instructions);
    set<Stored, Xor>(row, Operator::kXor, instructions);
  } else {
    row[static_cast<std::size_t>(Operator::kAverage)].combine =
        combine_of<Stored, Sum<T>, Divide<T>>(instructions);
  }
#ifdef __x86_64__
  if constexpr (!std::is_same_v<Stored, Plain<T>>)
    if (instructions != Instructions::kBaseline)
      for (ReductionKernel& kernel : row)
        kernel.combine = wide_combine_of<Stored>(kernel.op, instructions);
#endif
  return row;
}

struct Type {
  const char* name;
  std::array<Row, kInstructionSets> operators;
};
template <typename Stored>
constexpr std::array<Row, kInstructionSets> rows_of(ElementType type) {
  return {row_of<Stored>(type, Instructions::kBaseline), row_of<Stored>(type, Instructions::kAvx2),
          row_of<Stored>(type, Instructions::kAvx512),
          row_of<Stored>(type, Instructions::kAvx512Bf16)};
}
constexpr std::array<Type, kElementTypes> kTable{{
    {"int8", rows_of<Plain<std::int8_t>>(ElementType::kInt8)},
    {"uint8", rows_of<Plain<std::uint8_t>>(ElementType::kUint8)},
    {"int16", rows_of<Plain<std::int16_t>>(ElementType::kInt16)},
    {"uint16", rows_of<Plain<std::uint16_t>>(ElementType::kUint16)},
    {"int32", rows_of<Plain<std::int32_t>>(ElementType::kInt32)},
    {"uint32", rows_of<Plain<std::uint32_t>>(ElementType::kUint32)},
    {"int64", rows_of<Plain<std::int64_t>>(ElementType::kInt64)},
    {"uint64", rows_of<Plain<std::uint64_t>>(ElementType::kUint64)},
    {"float16", rows_of<Half>(ElementType::kFloat16)},
    {"bfloat16", rows_of<Bfloat16>(ElementType::kBfloat16)},
    {"float32", rows_of<Plain<float>>(ElementType::kFloat32)},
    {"float64", rows_of<Plain<double>>(ElementType::kFloat64)},
    {"complex64", rows_of<Plain<std::complex<float>>>(ElementType::kComplex64)},
    {"complex128", rows_of<Plain<std::complex<double>>>(ElementType::kComplex128)},
    {"float8_e4m3fn", rows_of<Float8E4m3fn>(ElementType::kFloat8E4m3fn)},
    {"float8_e5m2", rows_of<Float8E5m2>(ElementType::kFloat8E5m2)},
    {"long double", rows_of<Plain<long double>>(ElementType::kLongDouble)},
}};
constexpr std::array<const char*, kOperators> kNames{"sum", "product", "min", "max",
                                                     "and", "or",      "xor", "average"};
// The types that memspan_type_t names.
constexpr int kNumberedTypes = 16;

#ifdef __x86_64__
// clang 14's __builtin_cpu_supports() does not know it.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// Zen 4 does an instruction of 512 bits in two halves, and converts float16 more slowly so.
bool halves_are_slow_in_512_bits() {
#ifdef __x86_64__
  static const bool kIsZen4 = __builtin_cpu_is("amdfam19h");
  return kIsZen4;
#else
  return false;
#endif
}
Instructions quickest_instructions(ElementType type) {
  const Instructions best = best_instructions();
  const bool use_avx2 =
      type == ElementType::kFloat16 && best > Instructions::kAvx2 && halves_are_slow_in_512_bits();
  return use_avx2 ? Instructions::kAvx2 : best;
}

}  // namespace

Instructions best_instructions() {
#ifdef __x86_64__
  static const Instructions kBest = [] {
    if (!__builtin_cpu_supports("avx2") || !has_f16c()) return Instructions::kBaseline;
    const bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (!has_512) return Instructions::kAvx2;
    return __builtin_cpu_supports("avx512bf16") ? Instructions::kAvx512Bf16 : Instructions::kAvx512;
  }();
  return kBest;
#else
  return Instructions::kBaseline;
#endif
}

Result<ReductionKernel> reduction_kernel(int type, int op) {
  // For a type that does not exist, the answer of any set will do.
  return reduction_kernel(type, op, quickest_instructions(static_cast<ElementType>(type)));
}

Result<ReductionKernel> reduction_kernel(int type, int op, Instructions instructions) {
  if (type < 0 || type >= kNumberedTypes)
    return Status(Code::kInvalidArgument,
                  fmt::format("the type is {}, allowed are 0 to {}", type, kNumberedTypes - 1));
  if (op < 0 || op >= kOperators)
    return Status(Code::kInvalidArgument,
                  fmt::format("the operation is {}, allowed are 0 to {}", op, kOperators - 1));
  const ReductionKernel& kernel =
      reduction_kernel(static_cast<ElementType>(type), static_cast<Operator>(op), instructions);
  if (kernel.combine == nullptr)
    return Status(Code::kInvalidArgument,
                  fmt::format("there is no {} of {}", kNames[op], kTable[type].name));
  return kernel;
}

const ReductionKernel& reduction_kernel(ElementType type, Operator op) {
  return reduction_kernel(type, op, quickest_instructions(type));
}

const ReductionKernel& reduction_kernel(ElementType type, Operator op, Instructions instructions) {
  return kTable[static_cast<std::size_t>(type)]
      .operators[static_cast<std::size_t>(instructions)][static_cast<std::size_t>(op)];
}

}  // namespace memspan::pgas
