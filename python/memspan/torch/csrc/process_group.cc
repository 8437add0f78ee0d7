// SPDX-License-Identifier: Apache-2.0
// torch.distributed's backend "memspan" over memspan/group.h, for tensors of the CPU: what each of
// its calls asks of the tensors and moves between the members. Their works and their order are
// those of group_backend.h.
#include <c10/util/SmallVector.h>
#include <memspan/group.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective_operators.h"
#include "dense_tensors.h"
#include "group_backend.h"
#include "group_reductions.h"
#include "group_works.h"
#include "live_groups.h"
#include "monitored_barrier.h"

namespace {

using namespace memspan::tensors;

class MemspanBackend final : public GroupBackend {
 public:
  using GroupBackend::GroupBackend;

  const std::string getBackendName() const override { return "memspan"; }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return collective(OpType::BARRIER, options.asyncOp, {}, {},
                      [group = group()] { check(memspan_group_barrier(group)); });
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waits_for_all) override {
    const Milliseconds limit =
        options.timeout == c10d::kUnsetTimeout ? this->limit() : options.timeout;
    MonitoredBarrier(group(), monitored_barriers_++, limit).run(waits_for_all);
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const auto values = ToWrite::filled(only(tensors));
    return collective(OpType::BROADCAST, options.asyncOp, tensors, tensors,
                      [group = group(), values, root = root_of(options.rootRank)] {
                        check(memspan_group_broadcast(group, values.data(), values.bytes(), root));
                        values.finish();
                      });
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (tensors.size() == 1 && tensors[0].is_sparse()) return allreduce_sparse(tensors, options);
    only(tensors);  // or throws
    return allreduce_all(OpType::ALLREDUCE, tensors, options);
  }
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    TORCH_CHECK_VALUE(tensors.size() == 1, "expected 1 tensor, got ", tensors.size());
    const SparseSum sum(tensors[0], options.reduceOp, size_);
    return collective(OpType::_ALLREDUCE_SPARSE, options.asyncOp, tensors, tensors,
                      [group = group(), sum] { sum.run(group); });
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return allreduce_all(OpType::ALLREDUCE_COALESCED, tensors, options);
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const Reduction reduction(only(tensors), options.reduceOp);
    return collective(
        OpType::REDUCE, options.asyncOp, tensors, tensors,
        [group = group(), reduction, root = root_of(options.rootRank), rank = rank_] {
          const ReductionKind kind = reduction.kind;
          check(memspan_group_reduce(group, rank == root ? reduction.result.data() : nullptr,
                                     reduction.values.data_ptr(), reduction.count(), kind.type,
                                     kind.op, root));
          if (rank == root) reduction.result.finish();
        });
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    const Tensor values = to_read(only(inputs));
    const Tensors& list = list_of(outputs);
    check_alike(list[static_cast<size_t>(rank_)], values);
    std::vector<ToWrite> results;
    for (const Tensor& output : list) {
      check_type(output, values);
      results.emplace_back(output);
    }
    return collective(OpType::ALLGATHER, options.asyncOp, inputs, list,
                      [group = group(), values, results = std::move(results)] {
                        gather_all(group, values, results);
                      });
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    // outputs[rank][i] is of inputs[i].
    TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_), "expected ", size_,
                      " lists of outputs, got ", outputs.size());
    std::vector<Tensors> lists(inputs.size());
    Tensors all;
    for (auto& of_rank : outputs) {
      TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), "expected ", inputs.size(),
                        " outputs of a rank, got ", of_rank.size());
      for (size_t i = 0; i < inputs.size(); ++i) lists[i].push_back(of_rank[i]);
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    }
    std::vector<std::pair<Tensor, std::vector<ToWrite>>> gathers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor values = to_read(inputs[i]);
      auto results = results_of(lists[i], values);
      gathers.emplace_back(std::move(values), std::move(results));
    }
    return collective(OpType::ALLGATHER_COALESCED, options.asyncOp, inputs, all,
                      [group = group(), gathers = std::move(gathers)] {
                        for (const auto& [values, results] : gathers)
                          gather_all(group, values, results);
                      });
  }
  WorkPtr _allgather_base(Tensor& output, Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    Tensors outputs{output};
    Tensors inputs{input};
    return gather_into(OpType::_ALLGATHER_BASE, outputs, inputs, options);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return gather_into(OpType::COALESCED, outputs, inputs, options);
  }

  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    const Tensor values = to_read(only(inputs));
    const int root = root_of(options.rootRank);
    std::vector<ToWrite> results;
    if (rank_ == root) results = results_of(list_of(outputs), values);
    return collective(OpType::GATHER, options.asyncOp, inputs,
                      rank_ == root ? outputs[0] : Tensors{},
                      [group = group(), values, results, root] {
                        std::vector<void*> places;
                        places.reserve(results.size());
                        for (const auto& result : results) places.push_back(result.data());
                        check(memspan_group_gather(group, places.empty() ? nullptr : places.data(),
                                                   values.data_ptr(), values.nbytes(), root));
                        for (const auto& result : results) result.finish();
                      });
  }

  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    const ToWrite result(only(outputs));
    const int root = root_of(options.rootRank);
    Tensors values;
    if (rank_ == root) values = values_of(list_of(inputs), result);
    return collective(OpType::SCATTER, options.asyncOp, rank_ == root ? inputs[0] : Tensors{},
                      outputs, [group = group(), values, result, root] {
                        std::vector<const void*> places;
                        for (const auto& value : values) places.push_back(value.data_ptr());
                        check(memspan_group_scatter(group, result.data(),
                                                    places.empty() ? nullptr : places.data(),
                                                    result.bytes(), root));
                        result.finish();
                      });
  }

  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    const Tensor& output = only(outputs);
    const Tensors& list = list_of(inputs);
    check_alike(list[static_cast<size_t>(rank_)], output);
    for (const Tensor& input : list) check_type(input, output);
    const ScatteredReduction reduction(output, list, options.reduceOp);
    return collective(OpType::REDUCE_SCATTER, options.asyncOp, list, outputs,
                      [group = group(), reduction, rank = rank_] { reduction.run(group, rank); });
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    Tensors outputs{output};
    Tensors inputs{input};
    return reduce_scatter_from(OpType::_REDUCE_SCATTER_BASE, outputs, inputs, options);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return reduce_scatter_from(OpType::REDUCE_SCATTER_TENSOR_COALESCED, outputs, inputs, options);
  }

  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    check_count(outputs.size(), "outputs");
    check_count(inputs.size(), "inputs");
    Tensors values;
    std::vector<ToWrite> results;
    for (const Tensor& input : inputs) values.push_back(to_read(input));
    for (const Tensor& output : outputs) results.emplace_back(output);
    return collective(OpType::ALLTOALL, options.asyncOp, inputs, outputs,
                      [group = group(), values, results] {
                        Parts parts;
                        for (size_t i = 0; i < values.size(); ++i)
                          parts.add(results[i].data(), results[i].bytes(), values[i].data_ptr(),
                                    values[i].nbytes());
                        parts.move(group);
                        for (const auto& result : results) result.finish();
                      });
  }
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    const Tensor values = to_read(input);
    const ToWrite result(output);
    TORCH_CHECK_TYPE(values.scalar_type() == result.flat().scalar_type(), "the output is of ",
                     result.flat().scalar_type(), ", the input of ", values.scalar_type());
    const auto to = bytes_of_splits(result.flat(), output_splits, "output");
    const auto from = bytes_of_splits(values, input_splits, "input");
    return collective(OpType::ALLTOALL_BASE, options.asyncOp, {input}, {output},
                      [group = group(), values, result, to, from] {
                        Parts parts;
                        auto* writes = static_cast<char*>(result.data());
                        auto* reads = static_cast<char*>(values.data_ptr());
                        for (size_t i = 0; i < to.size(); ++i) {
                          parts.add(writes, to[i], reads, from[i]);
                          writes += to[i];
                          reads += from[i];
                        }
                        parts.move(group);
                        result.finish();
                      });
  }

  WorkPtr send(Tensors& tensors, int member, int tag) override {
    Tensor values = to_read(only(tensors));
    memspan_group_request_t request = nullptr;
    check(memspan_group_send(group(), member, tag, values.data_ptr(), values.nbytes(), &request));
    return message(OpType::SEND, request, values, nullptr);
  }
  WorkPtr recv(Tensors& tensors, int member, int tag) override {
    return receive(OpType::RECV, tensors, member, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return receive(OpType::RECVANYSOURCE, tensors, MEMSPAN_GROUP_ANYBODY, tag);
  }

 private:
  // Pairs for every member.
  struct Parts {
    std::vector<void*> results;
    std::vector<size_t> result_bytes;
    std::vector<const void*> values;
    std::vector<size_t> value_bytes;
    void add(void* result, size_t bytes, const void* value, size_t bytes_there) {
      results.push_back(result);
      result_bytes.push_back(bytes);
      values.push_back(value);
      value_bytes.push_back(bytes_there);
    }
    void move(memspan_group_t group) {
      check(memspan_group_all_to_all(group, results.data(), result_bytes.data(), values.data(),
                                     value_bytes.data()));
    }
  };

  WorkPtr receive(OpType type, Tensors& tensors, int member, int tag) {
    auto result = std::make_unique<ToWrite>(only(tensors));
    memspan_group_request_t request = nullptr;
    check(memspan_group_receive(group(), member, tag, result->data(), result->bytes(), &request));
    return message(type, request, tensors[0], std::move(result));
  }

  int root_of(int64_t root) const {
    TORCH_CHECK_VALUE(root >= 0 && root < size_, "the root is ", root, ", allowed are 0 to ",
                      size_ - 1);
    return static_cast<int>(root);
  }
  void check_count(size_t count, const char* what) const {
    TORCH_CHECK_VALUE(count == static_cast<size_t>(size_), "expected ", size_, " ", what, ", got ",
                      count);
  }
  const Tensors& list_of(const std::vector<Tensors>& lists) const {
    TORCH_CHECK_VALUE(lists.size() == 1, "expected 1 list of tensors, got ", lists.size());
    check_count(lists[0].size(), "tensors");
    return lists[0];
  }
  static void check_type(const Tensor& one, const Tensor& other) {
    TORCH_CHECK_TYPE(one.scalar_type() == other.scalar_type(), "tensors of ", one.scalar_type(),
                     " and ", other.scalar_type(), " in one call");
  }
  static void check_alike(const Tensor& one, const Tensor& other) {
    check_type(one, other);
    TORCH_CHECK_VALUE(one.numel() == other.numel(), "tensors of ", one.numel(), " and ",
                      other.numel(), " elements in one call");
  }
  static std::vector<ToWrite> results_of(const Tensors& outputs, const Tensor& values) {
    std::vector<ToWrite> results;
    for (const Tensor& output : outputs) {
      check_alike(output, values);
      results.emplace_back(output);
    }
    return results;
  }
  static Tensors values_of(const Tensors& inputs, const ToWrite& result) {
    Tensors values;
    for (const Tensor& input : inputs) {
      check_alike(input, result.flat());
      values.push_back(to_read(input));
    }
    return values;
  }
  std::vector<size_t> bytes_of_splits(const Tensor& tensor, const std::vector<int64_t>& splits,
                                      const char* what) const {
    const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    const size_t row = rows == 0 ? 0 : tensor.nbytes() / static_cast<size_t>(rows);
    if (splits.empty()) {
      TORCH_CHECK_VALUE(rows % size_ == 0, "the ", what, " has ", rows,
                        " rows, which are no multiple of ", size_);
      return std::vector<size_t>(static_cast<size_t>(size_),
                                 static_cast<size_t>(rows / size_) * row);
    }
    check_count(splits.size(), "splits");
    int64_t sum = 0;
    std::vector<size_t> bytes;
    for (const int64_t split : splits) {
      TORCH_CHECK_VALUE(split >= 0, "a split of the ", what, " is ", split);
      sum += split;
      bytes.push_back(static_cast<size_t>(split) * row);
    }
    TORCH_CHECK_VALUE(sum == rows, "the splits of the ", what, " are ", sum, " rows, and it has ",
                      rows);
    return bytes;
  }

  // Sizes that differ do so on all members alike.
  static void gather_all(memspan_group_t group, const Tensor& values,
                         const std::vector<ToWrite>& results) {
    std::vector<void*> places;
    std::vector<size_t> bytes;
    for (const auto& result : results) {
      places.push_back(result.data());
      bytes.push_back(result.bytes());
    }
    if (std::equal(bytes.begin() + 1, bytes.end(), bytes.begin()))
      check(memspan_group_all_gather(group, places.data(), values.data_ptr(), values.nbytes()));
    else
      gather_uneven(group, places, bytes, values.data_ptr(), values.nbytes());
    for (const auto& result : results) result.finish();
  }

  WorkPtr allreduce_all(OpType type, const Tensors& tensors,
                        const c10d::AllreduceOptions& options) {
    c10::SmallVector<Reduction, 1> all;  // a small one allocates nothing
    for (const Tensor& tensor : tensors) all.emplace_back(tensor, options.reduceOp);
    return collective(
        type, options.asyncOp, tensors, tensors, [group = group(), all = std::move(all)] {
          for (const Reduction& each : all) {
            check(memspan_group_all_reduce(group, each.result.data(), each.values.data_ptr(),
                                           each.count(), each.kind.type, each.kind.op));
            each.result.finish();
          }
        });
  }

  WorkPtr gather_into(OpType type, Tensors& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), outputs.size(), " outputs and ",
                      inputs.size(), " inputs");
    std::vector<std::pair<Tensor, ToWrite>> all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor values = to_read(inputs[i]);
      ToWrite result(outputs[i]);
      TORCH_CHECK_TYPE(values.scalar_type() == result.flat().scalar_type(), "the output is of ",
                       result.flat().scalar_type(), ", the input of ", values.scalar_type());
      TORCH_CHECK_VALUE(result.numel() == values.numel() * size_, "the output has ", result.numel(),
                        " elements, ", size_, " times ", values.numel(), " are needed");
      all.emplace_back(std::move(values), std::move(result));
    }
    return collective(type, options.asyncOp, inputs, outputs,
                      [group = group(), all = std::move(all), size = size_] {
                        for (const auto& [values, result] : all) {
                          std::vector<void*> places;
                          places.reserve(static_cast<size_t>(size));
                          for (int member = 0; member < size; ++member)
                            places.push_back(static_cast<char*>(result.data()) +
                                             static_cast<size_t>(member) * values.nbytes());
                          check(memspan_group_all_gather(group, places.data(), values.data_ptr(),
                                                         values.nbytes()));
                          result.finish();
                        }
                      });
  }

  WorkPtr reduce_scatter_from(OpType type, Tensors& outputs, Tensors& inputs,
                              const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), outputs.size(), " outputs and ",
                      inputs.size(), " inputs");
    std::vector<ScatteredReduction> all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_type(outputs[i], inputs[i]);
      TORCH_CHECK_VALUE(inputs[i].numel() == outputs[i].numel() * size_, "the input has ",
                        inputs[i].numel(), " elements, ", size_, " times ", outputs[i].numel(),
                        " are needed");
      all.emplace_back(outputs[i], inputs[i], size_, options.reduceOp);
    }
    return collective(type, options.asyncOp, inputs, outputs,
                      [group = group(), all = std::move(all), rank = rank_] {
                        for (const ScatteredReduction& each : all) each.run(group, rank);
                      });
  }

  std::atomic<int64_t> monitored_barriers_ = 0;
};

}  // namespace

TORCH_LIBRARY(memspan, library) {
  define_collective_operators(library);
}
TORCH_LIBRARY_IMPL(memspan, CPU, library) {
  implement_collective_operators(library);
}
TORCH_LIBRARY_IMPL(memspan, Meta, library) {
  describe_collective_operators(library);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  pybind11::module::import("torch._C._distributed_c10d");
  // A method of PyTorch's own backends that c10d::Backend does not bind.
  pybind11::class_<MemspanBackend, c10::intrusive_ptr<MemspanBackend>, c10d::Backend>(
      module, "MemspanBackend")
      .def("_set_default_timeout", &MemspanBackend::setTimeout, pybind11::arg("timeout"),
           pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, Milliseconds limit) {
        pybind11::gil_scoped_release release;
        return c10::intrusive_ptr<c10d::Backend>(
            c10::make_intrusive<MemspanBackend>(store, rank, size, limit));
      },
      pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"),
      pybind11::arg("timeout"),
      "A member of the group whose members exchange addresses by `store`. Collective.");
  module.def("leave_all", &LiveGroup::leave_all, pybind11::arg("patience"),
             pybind11::call_guard<pybind11::gil_scoped_release>(),
             "Each group leaves when it has nothing left to do, after `patience` at the latest.");
}
