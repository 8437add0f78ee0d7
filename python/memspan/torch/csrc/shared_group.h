// SPDX-License-Identifier: Apache-2.0
// The memspan group of a process group whose backend is memspan. The backend's collectives and the
// process group's symmetric memory use the same group: one join, one shared segment, one watch.
#pragma once

#include <c10/util/FunctionRef.h>
#include <memspan/group.h>

#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace memspan::tensors {

// Destroys the group with its last owner. Owners: the backend until its shutdown, and symmetric
// memory for as long as somebody has a mapping.
class GroupHandle {
 public:
  explicit GroupHandle(memspan_group_t group) : group_(group) {}
  ~GroupHandle() { memspan_group_destroy(group_); }
  GroupHandle(const GroupHandle&) = delete;
  GroupHandle& operator=(const GroupHandle&) = delete;

  memspan_group_t get() const { return group_; }

 private:
  const memspan_group_t group_;
};

// What symmetric memory and torch.ops.memspan ask of the backend. Symmetric memory is an extension
// of its own: dynamic_cast finds this class across them, since libstdc++ compares types by name.
class SharingBackend : public c10d::Backend {
 public:
  using Backend::Backend;

  // Throws DistBackendError after the shutdown.
  virtual std::shared_ptr<const GroupHandle> share_group() = 0;
  // Runs `collective` on this thread and gives true, if none of the backend's is queued or running.
  // All members run it by this or by run_in_order(), never by a call of torch.distributed.
  virtual bool run_at_once(c10::function_ref<void(memspan_group_t)> collective) = 0;
  // Runs `task`, a collective of the group, in the order of the backend's collectives. Blocks until
  // it is over. After a Python signal handler raised, the task may run later: it owns what it uses.
  virtual void run_in_order(std::function<void()> task) = 0;
};

}  // namespace memspan::tensors
