// SPDX-License-Identifier: Apache-2.0
#include "bf16_product.h"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pages.h"

#if defined(MATMUL_HAVE_ONEDNN)
#include <dnnl.hpp>
#endif

namespace matmul {

#if defined(MATMUL_HAVE_ONEDNN)

namespace {

using dnnl::memory;

memory::desc row_major(memory::data_type type, std::uint64_t rows, std::uint64_t columns,
                       memory::format_tag order = memory::format_tag::ab) {
  return memory::desc(
      memory::dims{static_cast<memory::dim>(rows), static_cast<memory::dim>(columns)}, type, order);
}

// The caller brings scratch memory: oneDNN's own belongs to the thread that makes the primitive.
dnnl::primitive_attr with_user_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::post_ops sum_with_destination() {
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  return sum;
}

struct MatmulOrders {
  memory::desc a, b, c;
};

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const MatmulOrders& orders,
                                      const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(engine, orders.a, orders.b, orders.c, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(orders.a, orders.b, orders.c), attributes,
                                      engine);
#endif
}

}  // namespace

class Bf16Product::Kernels {
 public:
  // Throws dnnl::error or std::runtime_error if oneDNN has no fast kernel.
  explicit Kernels(std::span<const ProductShape> shapes) {
    for (const ProductShape& shape : shapes) compile(shape);
    reserve_scratch();
  }

  std::size_t packed_bytes() const {
    std::size_t most = 0;
    for (const Packing& packing : packings_) most = std::max(most, packing.order.get_size());
    return most;
  }

  void pack(const ProductShape& shape, const std::uint16_t* b, void* packed) {
    Packing& packing = *find_packing(shape);
    packing.call.set(DNNL_ARG_FROM, b);
    packing.call.set(DNNL_ARG_TO, packed);
    run(packing.call);
  }

  void multiply(const Bf16Operands& operands) {
    const auto kernel = std::find_if(kernels_.begin(), kernels_.end(), [&](const Kernel& each) {
      return each.shape == operands.shape && each.adds == operands.adds;
    });
    // A result that nothing writes would look like a wrong product.
    if (kernel == kernels_.end()) throw std::logic_error("no kernel was compiled for this shape");
    kernel->call.set(DNNL_ARG_SRC, operands.a);
    kernel->call.set(DNNL_ARG_WEIGHTS, operands.packed_b);
    kernel->call.set(DNNL_ARG_DST, operands.c);
    run(kernel->call);
  }

 private:
  // A primitive and its arguments, whose addresses each call sets.
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
    memory::desc scratch;
    // oneDNN takes no pointers to constants. It writes only to the padding of a packed B: zeros,
    // which the padding holds.
    void set(int argument, const void* data) {
      arguments.at(argument).set_data_handle(const_cast<void*>(data));
    }
  };
  struct Packing {
    std::uint64_t columns = 0, depth = 0;
    memory::desc order;  // of the packed B
    Call call;
  };
  struct Kernel {
    ProductShape shape;
    bool adds = false;
    Call call;
  };

  memory without_data(const memory::desc& order) const {
    return memory(order, engine_, DNNL_MEMORY_NONE);
  }

  Packing* find_packing(const ProductShape& shape) {
    for (Packing& packing : packings_)
      if (packing.columns == shape.columns && packing.depth == shape.depth) return &packing;
    return nullptr;
  }

  // The first kernel for a B chooses its order; the others must read that order.
  void compile(const ProductShape& shape) {
    using Type = memory::data_type;
    const memory::desc plain = row_major(Type::bf16, shape.depth, shape.columns);
    MatmulOrders orders{row_major(Type::bf16, shape.rows, shape.depth),
                        row_major(Type::bf16, shape.depth, shape.columns, memory::format_tag::any),
                        row_major(Type::f32, shape.rows, shape.columns)};
    for (bool adds : {false, true}) {
      if (const Packing* packing = find_packing(shape)) orders.b = packing->order;
      dnnl::primitive_attr attributes = with_user_scratch();
      if (adds) attributes.set_post_ops(sum_with_destination());
      const auto described = describe(engine_, orders, attributes);
      if (std::string_view(described.impl_info_str()).substr(0, 3) == "ref")
        throw std::runtime_error("oneDNN has only its reference kernel for this shape");
      const memory::desc packed = described.weights_desc();
      if (find_packing(shape) == nullptr) add_packing(shape, plain, packed);
      Call call{dnnl::matmul(described),
                {{DNNL_ARG_SRC, without_data(orders.a)},
                 {DNNL_ARG_WEIGHTS, without_data(packed)},
                 {DNNL_ARG_DST, without_data(orders.c)}},
                described.scratchpad_desc()};
      kernels_.push_back({shape, adds, std::move(call)});
    }
  }

  void add_packing(const ProductShape& shape, const memory::desc& plain,
                   const memory::desc& packed) {
    const dnnl::reorder::primitive_desc described(engine_, plain, engine_, packed,
                                                  with_user_scratch());
    Call call{dnnl::reorder(described),
              {{DNNL_ARG_FROM, without_data(plain)}, {DNNL_ARG_TO, without_data(packed)}},
              described.scratchpad_desc()};
    packings_.push_back({shape.columns, shape.depth, packed, std::move(call)});
  }

  // One scratch memory serves all calls, which run one after another.
  void reserve_scratch() {
    std::vector<Call*> calls;
    for (Packing& packing : packings_) calls.push_back(&packing.call);
    for (Kernel& kernel : kernels_) calls.push_back(&kernel.call);
    std::size_t most = 0;
    for (const Call* call : calls) most = std::max(most, call->scratch.get_size());
    scratch_ = Pages(most);
    if (!scratch_.is_valid()) throw std::bad_alloc();
    for (Call* call : calls)
      if (call->scratch.get_size() > 0)
        call->arguments.emplace(DNNL_ARG_SCRATCHPAD,
                                memory(call->scratch, engine_, scratch_.data()));
  }

  void run(Call& call) {
    call.primitive.execute(stream_, call.arguments);
    stream_.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Packing> packings_;
  std::vector<Kernel> kernels_;
  Pages scratch_;
};

Bf16Unit bf16_unit() {
  // The sets of instructions are bit masks: a set contains those that it extends.
  const auto has = [isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa())](dnnl::cpu_isa set) {
    return (isa & static_cast<unsigned>(set)) == static_cast<unsigned>(set);
  };
  if (has(dnnl::cpu_isa::avx512_core_amx)) return Bf16Unit::kMatrix;
  return has(dnnl::cpu_isa::avx512_core_bf16) ? Bf16Unit::kVector : Bf16Unit::kNone;
}

std::unique_ptr<Bf16Product> Bf16Product::create(std::span<const ProductShape> shapes) {
  try {
    return std::unique_ptr<Bf16Product>(new Bf16Product(std::make_unique<Kernels>(shapes)));
  } catch (const std::exception&) {
    return nullptr;
  }
}

#else

class Bf16Product::Kernels {
 public:
  std::size_t packed_bytes() const { return 0; }
  void pack(const ProductShape&, const std::uint16_t*, void*) {}
  void multiply(const Bf16Operands&) {}
};

Bf16Unit bf16_unit() {
  return Bf16Unit::kNone;
}

std::unique_ptr<Bf16Product> Bf16Product::create(std::span<const ProductShape>) {
  return nullptr;
}

#endif

Bf16Product::Bf16Product(std::unique_ptr<Kernels> kernels) : kernels_(std::move(kernels)) {}

Bf16Product::~Bf16Product() = default;

std::size_t Bf16Product::packed_bytes() const {
  return kernels_->packed_bytes();
}

void Bf16Product::pack(const ProductShape& shape, const std::uint16_t* b, void* packed) {
  kernels_->pack(shape, b, packed);
}

void Bf16Product::multiply(const Bf16Operands& operands) {
  kernels_->multiply(operands);
}

}  // namespace matmul
