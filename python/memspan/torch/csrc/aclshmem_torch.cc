// SPDX-License-Identifier: Apache-2.0
// torch.classes.SymmetricMemory: Manager, which starts the job and makes symmetric tensors, and
// Ops, which moves elements and signals between them. Of the CPU; for eager code and TorchScript.
//
// Offsets and sizes are in elements, signals are int32. Everything is complete when its call
// returns, in the order of the program. A mistake is an exception before anything moves.
#include <torch/custom_class.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "arguments.h"
#include "calls.h"

namespace memspan::tensors {
namespace {

// Numbers of the interface.
enum : std::int64_t { kSet = 0, kAdd = 1 };
enum : std::int64_t { kEqual = 0, kGreater = 1, kLess = 2 };

// Both ends of a put or get.
struct Move {
  Elements target;
  Elements source;
  int pe;

  Move(const at::Tensor& target, const c10::IValue& target_offset, const at::Tensor& src,
       const c10::IValue& src_offset, const c10::IValue& size, std::int64_t target_pe) {
    require_job();
    pe = checked_pe(target_pe);
    TORCH_CHECK_VALUE(target.scalar_type() == src.scalar_type(), "target is of ",
                      target.scalar_type(), ", and src of ", src.scalar_type());
    const std::int64_t count = number_of(size, "size");
    this->target = elements_of(target, "target", number_of(target_offset, "target_offset"), count);
    source = elements_of(src, "src", number_of(src_offset, "src_offset"), count);
    const bool overlap = this->target.begin < source.begin + source.bytes &&
                         source.begin < this->target.begin + this->target.bytes;
    TORCH_CHECK_VALUE(pe != shmem_my_pe() || !overlap || this->target.begin == source.begin,
                      "the elements of target and src overlap");
  }
};

// A change of a word at a peer.
struct Change {
  std::int32_t* word;
  std::int32_t value;
  std::int64_t op;
  int pe;

  Change(const at::Tensor& signal, const c10::IValue& offset, const c10::IValue& value,
         std::int64_t op, std::int64_t pe)
      : op(op) {
    require_job();
    this->pe = checked_pe(pe);
    TORCH_CHECK_VALUE(op == kSet || op == kAdd, "signal_op is ", op,
                      ", allowed are 0 (set) and 1 (add)");
    word = word_of(signal, offset);
    this->value = word_value(value, "signal_value");
  }

  void make() const {
    if (op == kSet)
      shmem_int32_atomic_set(word, value, pe);
    else
      shmem_int32_atomic_add(word, value, pe);
    shmem_quiet();
  }
};

int comparison(std::int64_t number) {
  switch (number) {
    case kEqual:
      return SHMEM_CMP_EQ;
    case kGreater:
      return SHMEM_CMP_GT;
    case kLess:
      return SHMEM_CMP_LT;
    default:
      TORCH_CHECK_VALUE(false, "compare_op is ", number,
                        ", allowed are 0 (equal), 1 (greater) and 2 (less)");
  }
}

// ---- the job and its memory

constexpr const char* kEnded = "belongs to a job that has ended";

bool has_started_job = false;

void check_code(int code) {
  TORCH_CHECK_VALUE(code != SHMEM_INVALID_PARAM && code != SHMEM_INVALID_VALUE,
                    memspan_last_error());
  TORCH_CHECK(code == SHMEM_SUCCESS, memspan_last_error());
}

// Joins; one that the process is in already is taken when it is the same.
std::int64_t start(std::int64_t pe, std::int64_t count, std::int64_t bytes,
                   const std::string& where) {
  TORCH_CHECK_VALUE(count >= 1 && std::in_range<int>(count), "n_ranks is ", count,
                    ", allowed is 1 and more");
  TORCH_CHECK_VALUE(pe >= 0 && pe < count, "my_pe is ", pe, ", allowed are 0 to ", count - 1);
  TORCH_CHECK_VALUE(bytes >= 1, "local_mem_size is ", bytes, ", allowed is 1 byte and more");
  if (shmem_init_status() == SHMEM_STATUS_IS_INITIALIZED) {
    TORCH_CHECK_VALUE(shmem_my_pe() == pe && shmem_n_pes() == count, "this process is PE ",
                      shmem_my_pe(), " of ", shmem_n_pes(), " already, and cannot be PE ", pe,
                      " of ", count);
    return 0;
  }
  // Another one ended the job before, and its memory is gone.
  Allocations::all().detach_all(Contents::kZeros, kEnded);
  call([&] {
    shmem_init_attr_t* attributes = nullptr;
    check_code(shmem_set_attr(static_cast<int>(pe), static_cast<int>(count),
                              static_cast<std::uint64_t>(bytes), where.c_str(), &attributes));
    check_code(shmem_init_attr(attributes));
  });
  has_started_job = true;
  return 0;
}

// Leaves the job that start() joined. Tensors keep what they have, in memory of their own.
std::int64_t finish() {
  if (!has_started_job || shmem_init_status() != SHMEM_STATUS_IS_INITIALIZED) return 0;
  has_started_job = false;
  Allocations::all().detach_all(Contents::kAsBefore, kEnded);
  call([] { check_code(aclshmem_finalize()); });
  return 0;
}

std::size_t bytes_of(at::IntArrayRef shape, at::ScalarType dtype) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
  for (const std::int64_t extent : shape) {
    TORCH_CHECK_VALUE(extent >= 0, "shape is ", shape, ", extents are 0 and more");
    TORCH_CHECK_VALUE(!__builtin_mul_overflow(bytes, extent, &bytes), "shape ", shape,
                      " is more than memory can be");
  }
  return static_cast<std::size_t>(bytes);
}

// Zeros. Collective; an alignment of 0 is the heap's own.
at::Tensor allocate(at::IntArrayRef shape, at::ScalarType dtype, std::int64_t alignment) {
  require_job();
  TORCH_CHECK_VALUE(alignment >= 0 && (alignment == 0 ||
                                       std::has_single_bit(static_cast<std::uint64_t>(alignment))),
                    "alignment is ", alignment, ", allowed are powers of two");
  const std::size_t bytes = bytes_of(shape, dtype);
  const std::size_t size = bytes == 0 ? 1 : bytes;
  void* const base = call([&]() -> void* {
    if (alignment == 0) return aclshmemx_calloc(1, size, HOST_SIDE);
    void* const memory = aclshmemx_align(static_cast<std::size_t>(alignment), size, HOST_SIDE);
    if (memory == nullptr) return nullptr;
    std::memset(memory, 0, size);
    shmem_sync_all();  // a peer's put must not come before the zeros
    return memory;
  });
  TORCH_CHECK(base != nullptr, "a tensor of ", bytes, " bytes: ", memspan_last_error());
  return Allocations::all().own(base, shape, dtype);
}

// Collective.
void release(const at::Tensor& tensor) {
  require_job();
  check_plain(tensor, "the tensor");
  const Allocation* const allocation = allocation_of(tensor);
  TORCH_CHECK_VALUE(allocation != nullptr, "the tensor was not made by malloc()");
  void* const base = allocation->base;
  TORCH_CHECK_VALUE(tensor.storage_offset() == 0 && tensor.nbytes() == tensor.storage().nbytes(),
                    "the tensor is a part of what malloc() made, of which only the whole can be "
                    "freed");
  Allocations::detach(tensor.storage().unsafeGetStorageImpl(), Contents::kZeros, "was freed");
  call([&] { shmem_free(base); });
}

// ---- the classes

struct Manager : torch::CustomClassHolder {
  std::int64_t attr_init(std::int64_t my_pe, std::int64_t n_ranks, std::int64_t local_mem_size,
                         const std::string& ip_port) {
    return start(my_pe, n_ranks, local_mem_size, ip_port);
  }
  std::int64_t finalize() { return finish(); }
  void free(const at::Tensor& tensor) { release(tensor); }
  std::string get_name() { return "SymmetricMemory.Manager"; }
};

struct Ops : torch::CustomClassHolder {
  void put_mem(const at::Tensor& target, const c10::IValue& target_offset, const at::Tensor& src,
               const c10::IValue& src_offset, const c10::IValue& size, std::int64_t target_pe) {
    const Move move(target, target_offset, src, src_offset, size, target_pe);
    check_symmetric(target, "target");
    call([&] { put(move); });
  }

  void get_mem(const at::Tensor& target, const c10::IValue& target_offset, const at::Tensor& src,
               const c10::IValue& src_offset, const c10::IValue& size, std::int64_t target_pe) {
    const Move move(target, target_offset, src, src_offset, size, target_pe);
    check_symmetric(src, "src");
    call([&] { shmem_getmem(move.target.begin, move.source.begin, move.source.bytes, move.pe); });
  }

  void put_mem_signal(const at::Tensor& target, const c10::IValue& target_offset,
                      const at::Tensor& src, const c10::IValue& src_offset, const c10::IValue& size,
                      const at::Tensor& signal, const c10::IValue& signal_offset,
                      const c10::IValue& signal_value, std::int64_t signal_op,
                      std::int64_t target_pe) {
    const Move move(target, target_offset, src, src_offset, size, target_pe);
    check_symmetric(target, "target");
    const Change change(signal, signal_offset, signal_value, signal_op, target_pe);
    call([&] {
      put(move);
      change.make();
    });
  }

  void signal_op(const at::Tensor& signal, const c10::IValue& signal_offset,
                 const c10::IValue& signal_value, std::int64_t signal_op, std::int64_t target_pe) {
    const Change change(signal, signal_offset, signal_value, signal_op, target_pe);
    call([&] { change.make(); });
  }

  // What `depend_target` is does not matter: later operations come later.
  void signal_wait_until(const std::optional<at::Tensor>& depend_target, const at::Tensor& signal,
                         const c10::IValue& signal_offset, const c10::IValue& compare_value,
                         std::int64_t compare_op) {
    static_cast<void>(depend_target);
    require_job();
    const int compare = comparison(compare_op);
    std::int32_t* const word = word_of(signal, signal_offset);
    const std::int32_t value = word_value(compare_value, "compare_value");
    call([&] { shmem_int32_wait_until(word, compare, value); });
  }

  std::string get_name() { return "SymmetricMemory.Ops"; }

 private:
  static void put(const Move& move) {
    shmem_putmem(move.target.begin, move.source.begin, move.source.bytes, move.pe);
    shmem_quiet();
  }
};

// torch.classes.ShmemOps.Manager, of older programs.
struct OlderManager : torch::CustomClassHolder {
  std::int64_t attr_init(std::int64_t my_pe, std::int64_t n_ranks, std::int64_t local_mem_size,
                         const std::string& ip_port) {
    return start(my_pe, n_ranks, local_mem_size, ip_port);
  }
  std::int64_t finalize() { return finish(); }
  at::Tensor malloc_tensor(std::int64_t bytes) { return allocate({bytes}, at::kByte, 0); }
  at::Tensor malloc_like(const at::Tensor& tensor) {
    return allocate(tensor.sizes(), tensor.scalar_type(), 0);
  }
  void free_tensor(const at::Tensor& tensor) { release(tensor); }
  std::string get_name() { return "ShmemOps.Manager"; }
};

// A method of Manager that makes a tensor. `int[1]` takes an int as well as a list, which no C++
// type says.
void define_malloc(torch::class_<Manager>& manager, const char* name, bool has_alignment) {
  std::vector<c10::Argument> arguments = {
      c10::Argument("self",
                    torch::getCustomClass("__torch__.torch.classes.SymmetricMemory.Manager")),
      c10::Argument("shape", c10::ListType::ofInts(), 1),
      c10::Argument("dtype", c10::IntType::get())};
  if (has_alignment) arguments.emplace_back("alignment", c10::IntType::get());
  manager._def_unboxed(
      name,
      [has_alignment](torch::jit::Stack& stack) {
        const std::int64_t alignment = has_alignment ? torch::jit::pop(stack).toInt() : 0;
        TORCH_CHECK_VALUE(!has_alignment || alignment > 0, "alignment is ", alignment,
                          ", allowed are powers of two");
        const std::int64_t dtype = torch::jit::pop(stack).toInt();
        TORCH_CHECK_VALUE(
            dtype >= 0 && dtype < static_cast<std::int64_t>(at::ScalarType::Undefined), "dtype is ",
            dtype, ", which is no type of elements");
        const std::vector<std::int64_t> shape = torch::jit::pop(stack).toIntVector();
        torch::jit::drop(stack, 1);
        torch::jit::push(stack, allocate(shape, static_cast<at::ScalarType>(dtype), alignment));
      },
      c10::FunctionSchema(name, "", std::move(arguments),
                          {c10::Argument("", c10::TensorType::get())}));
}

int define_classes() {
  using torch::arg;
  auto manager = torch::class_<Manager>("SymmetricMemory", "Manager");
  manager.def(torch::init<>())
      .def("attr_init", &Manager::attr_init, "",
           {arg("my_pe"), arg("n_ranks"), arg("local_mem_size"), arg("ip_port")})
      .def("finalize", &Manager::finalize)
      .def("free", &Manager::free, "", {arg("tensor")})
      .def("get_name", &Manager::get_name);
  define_malloc(manager, "malloc", false);
  define_malloc(manager, "aligned_malloc", true);
  torch::class_<Ops>("SymmetricMemory", "Ops")
      .def(torch::init<>())
      .def("put_mem", &Ops::put_mem, "",
           {arg("target"), arg("target_offset"), arg("src"), arg("src_offset"), arg("size"),
            arg("target_pe")})
      .def("get_mem", &Ops::get_mem, "",
           {arg("target"), arg("target_offset"), arg("src"), arg("src_offset"), arg("size"),
            arg("target_pe")})
      .def("put_mem_signal", &Ops::put_mem_signal, "",
           {arg("target"), arg("target_offset"), arg("src"), arg("src_offset"), arg("size"),
            arg("signal"), arg("signal_offset"), arg("signal_value"), arg("signal_op"),
            arg("target_pe")})
      .def("signal_op", &Ops::signal_op, "",
           {arg("signal"), arg("signal_offset"), arg("signal_value"), arg("signal_op"),
            arg("target_pe")})
      .def("signal_wait_until", &Ops::signal_wait_until, "",
           {arg("depend_target"), arg("signal"), arg("signal_offset"), arg("compare_value"),
            arg("compare_op")})
      .def("get_name", &Ops::get_name);
  torch::class_<OlderManager>("ShmemOps", "Manager")
      .def(torch::init<>())
      .def("attr_init", &OlderManager::attr_init, "",
           {arg("my_pe"), arg("n_ranks"), arg("local_mem_size"), arg("ip_port")})
      .def("finalize", &OlderManager::finalize)
      .def("malloc_tensor", &OlderManager::malloc_tensor, "", {arg("bytes")})
      .def("malloc_like", &OlderManager::malloc_like, "", {arg("tensor")})
      .def("free_tensor", &OlderManager::free_tensor, "", {arg("tensor")})
      .def("get_name", &OlderManager::get_name);
  return 0;
}

const int are_defined = define_classes();

}  // namespace
}  // namespace memspan::tensors
