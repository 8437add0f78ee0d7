// SPDX-License-Identifier: Apache-2.0
#include "pgas/reduction/kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "pgas/reduction/narrow_floats.h"

namespace memspan::inline pgas {
namespace {

// Whether reductions of values of one type have the operation.
template <typename T>
constexpr bool is_defined(Operator op) {
  if (op == Operator::kSum || op == Operator::kProduct) return true;
  if (op == Operator::kMin || op == Operator::kMax) return std::is_arithmetic_v<T>;
  return std::is_integral_v<T> != (op == Operator::kAverage);
}

// The operation on two values. Arithmetic of small integers is done in the type itself, wrapping;
// signed overflow also wraps.
template <Operator op, typename T>
[[gnu::always_inline]] inline T apply(T a, T b) {
  if constexpr (op == Operator::kMin) {
    return b < a ? b : a;
  } else if constexpr (op == Operator::kMax) {
    return a < b ? b : a;
  } else if constexpr (op == Operator::kAnd) {
    return static_cast<T>(a & b);
  } else if constexpr (op == Operator::kOr) {
    return static_cast<T>(a | b);
  } else if constexpr (op == Operator::kXor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (std::is_integral_v<T>) {
    // Products through 64 bits without a sign: no promotion to int, no undefined overflow.
    using U =
        std::conditional_t<op == Operator::kProduct, unsigned long long, std::make_unsigned_t<T>>;
    return static_cast<T>(op == Operator::kProduct ? static_cast<U>(a) * static_cast<U>(b)
                                                   : static_cast<U>(a) + static_cast<U>(b));
  } else if constexpr (op != Operator::kProduct) {
    return a + b;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return a * b;
  } else {
    // Not operator*, which looks for infinities.
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
}

// The result that a sum becomes.
template <Operator op, typename T>
[[gnu::always_inline]] inline T finish(T sum, int members) {
  if constexpr (op != Operator::kAverage)
    return sum;
  else if constexpr (std::is_arithmetic_v<T>)
    return sum / static_cast<T>(members);
  else
    return sum / static_cast<typename T::value_type>(members);
}

// A type that is computed in itself.
template <typename T>
struct Plain {
  using Wide = T;
  T value;
  static T widen(Plain plain) { return plain.value; }
  static Plain narrow(T value) { return {value}; }
};

// An element depends on the sources' elements at its own index, also where a source is the result.
#ifdef __clang__
#define MEMSPAN_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MEMSPAN_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

constexpr std::size_t kBlockBytes = 4096;  // three of them stay in the first-level cache

// In blocks. Each pass over a block reads one more source, and the last one writes the result.
template <typename Stored, Operator op>
[[gnu::always_inline]] inline void combine_all(void* result, const void* const sources[],
                                               int members, std::size_t count) {
  using Wide = typename Stored::Wide;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Wide);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    const auto source = [&](int member) {
      return static_cast<const Stored*>(sources[member]) + begin;
    };
    const Stored* const first = source(0);
    const Stored* const last = source(members - 1);
    auto* const to = static_cast<Stored*>(result) + begin;
    const auto store = [&](std::size_t i, Wide sum) {
      to[i] = Stored::narrow(finish<op>(sum, members));
    };
    if (members == 1) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i) store(i, Stored::widen(first[i]));
      continue;
    }
    if (members == 2) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i)
        store(i, apply<op>(Stored::widen(first[i]), Stored::widen(last[i])));
      continue;
    }
    Wide sums[kBlock];  // complex numbers become zeros, which takes longer than two members above
    const Stored* const second = source(1);
    for (std::size_t i = 0; i < now; ++i)
      sums[i] = apply<op>(Stored::widen(first[i]), Stored::widen(second[i]));
    for (int member = 2; member < members - 1; ++member) {
      const Stored* const next = source(member);
      for (std::size_t i = 0; i < now; ++i) sums[i] = apply<op>(sums[i], Stored::widen(next[i]));
    }
    MEMSPAN_VECTOR_LOOP
    for (std::size_t i = 0; i < now; ++i) store(i, apply<op>(sums[i], Stored::widen(last[i])));
  }
}

#ifdef __x86_64__
#define MEMSPAN_TARGET(...) __attribute__((target(__VA_ARGS__)))
#else
#define MEMSPAN_TARGET(...)
#endif

// combine_all() for each instruction set.
template <typename Stored, Operator op>
struct Kernel {
  static void baseline(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, op>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx2")
  static void avx2(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, op>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
  static void avx512(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, op>(result, sources, members, count);
  }
};

template <typename Stored, Operator op>
constexpr Combine combine_of(Instructions instructions) {
  // Integers are fast enough as they are.
  if constexpr (std::is_same_v<Stored, Plain<float>> || std::is_same_v<Stored, Plain<double>>) {
    if (instructions == Instructions::kAvx2) return Kernel<Stored, op>::avx2;
    if (instructions >= Instructions::kAvx512) return Kernel<Stored, op>::avx512;
  }
#ifdef __x86_64__
  if constexpr (!std::is_same_v<Stored, Plain<typename Stored::Wide>>) {
    if (instructions == Instructions::kAvx2) return WideKernels<Stored, Avx2>::template combine<op>;
    if constexpr (std::is_same_v<Stored, Bfloat16>)
      if (instructions == Instructions::kAvx512Bf16)
        return WideKernels<Stored, Avx512<Instructions::kAvx512Bf16>>::template combine<op>;
    if (instructions != Instructions::kBaseline)
      return WideKernels<Stored, Avx512<Instructions::kAvx512>>::template combine<op>;
  }
#endif
  return Kernel<Stored, op>::baseline;
}

template <typename Stored, Operator op>
constexpr ReductionKernel kernel_of(ElementType type, Instructions instructions) {
  ReductionKernel kernel{type, op, sizeof(Stored), nullptr};
  if constexpr (is_defined<typename Stored::Wide>(op))
    kernel.combine = combine_of<Stored, op>(instructions);
  return kernel;
}

using Row = std::array<ReductionKernel, kOperators>;

struct Type {
  const char* name;
  std::array<Row, kInstructionSets> operators;
};
template <typename Stored>
constexpr std::array<Row, kInstructionSets> rows_of(ElementType type) {
  std::array<Row, kInstructionSets> rows{};
  for (std::size_t set = 0; set < rows.size(); ++set)
    rows[set] = [&]<std::size_t... ops>(std::index_sequence<ops...>) {
      return Row{
          kernel_of<Stored, static_cast<Operator>(ops)>(type, static_cast<Instructions>(set))...};
    }
  (std::make_index_sequence<kOperators>());
  return rows;
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
  unsigned words[4] = {};
  return __get_cpuid(1, &words[0], &words[1], &words[2], &words[3]) != 0 &&
         (words[2] & bit_F16C) != 0;
}
#endif

Instructions quickest_instructions([[maybe_unused]] ElementType type) {
  const Instructions best = best_instructions();
#ifdef __x86_64__
  // Zen 4 does an instruction of 512 bits in two halves, and converts float16 more slowly so.
  static const bool kIsZen4 = __builtin_cpu_is("amdfam19h");
  if (kIsZen4 && type == ElementType::kFloat16 && best > Instructions::kAvx2)
    return Instructions::kAvx2;
#endif
  return best;
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

Result<ReductionKernel> reduction_kernel(int type, int op,
                                         std::optional<Instructions> instructions) {
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

const ReductionKernel& reduction_kernel(ElementType type, Operator op,
                                        std::optional<Instructions> instructions) {
  const Instructions set = instructions ? *instructions : quickest_instructions(type);
  return kTable[static_cast<std::size_t>(type)]
      .operators[static_cast<std::size_t>(set)][static_cast<std::size_t>(op)];
}

}  // namespace memspan::inline pgas
