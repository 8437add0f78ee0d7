// SPDX-License-Identifier: Apache-2.0
// A process in several jobs: instance 0 is of all PEs; neighbours meet in instance 1, each pair in
// its own, by a unique id that instance 0 carries; then all meet in instance 2, in the other order.
// oshrun -n 4 multi_instance
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "shmem.h"

#include "check.h"
#include "multi_instance_kernel.h"

namespace {

constexpr uint32_t BLOCKS = 3;
constexpr uint64_t HEAP = 1UL << 20;

// In instance 0: the unique id of an instance, from the PE that is its first.
struct Box {
  aclshmemx_uniqueid_t id;
  int32_t arrived;
};

int value_of(uint64_t instance, int pe) {
  return static_cast<int>(instance) * 1000 + pe;
}

// Starts the instance, exchanges numbers in a kernel, and ends it; how many numbers were wrong.
int run(uint64_t instance, int pe, int pes, aclshmemx_uniqueid_t id, aclrtStream stream) {
  aclshmemx_init_attr_t attributes{};
  CHECK(aclshmemx_set_attr_uniqueid_args(pe, pes, HEAP, &id, &attributes));
  attributes.instance_id = instance;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  auto* inbox = static_cast<int32_t*>(aclshmem_calloc(BLOCKS * pes, sizeof(int32_t)));
  launch_exchange(BLOCKS, stream, inbox, value_of(instance, pe), instance);
  CHECK(aclrtSynchronizeStream(stream));
  int wrong = aclshmem_n_pes() != pes;
  for (uint32_t block = 0; block < BLOCKS; ++block)
    for (int from = 0; from < pes; ++from)
      wrong += inbox[block * pes + from] != value_of(instance, from);
  aclshmem_free(inbox);
  CHECK(aclshmemx_finalize(instance));  // instance 0 is current again
  return wrong;
}

}  // namespace

int main() {
  const char* const size = std::getenv("WORLD_SIZE");
  const char* const rank = std::getenv("RANK");
  if (size == nullptr || rank == nullptr) {
    std::fprintf(stderr, "multi_instance: start it by oshrun\n");
    return 2;
  }
  aclshmemx_init_attr_t attributes{};
  attributes.n_pes = std::atoi(size);
  attributes.my_pe = std::atoi(rank);
  attributes.local_mem_size = HEAP;
  CHECK(aclInit(nullptr));
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  const int pe = aclshmem_my_pe();
  const int pes = aclshmem_n_pes();
  auto* boxes = static_cast<Box*>(aclshmem_calloc(2, sizeof(Box)));

  const int first = pe / 2 * 2;
  const int pair = first + 1 < pes ? 2 : 1;
  if (pe == first) {
    CHECK(aclshmemx_get_uniqueid(&boxes[0].id));
    if (pair == 2)
      aclshmemx_putmem_signal(&boxes[0].id, &boxes[0].id, sizeof(aclshmemx_uniqueid_t),
                              &boxes[0].arrived, 1, ACLSHMEM_SIGNAL_SET, pe + 1);
  } else {
    aclshmem_signal_wait_until(&boxes[0].arrived, ACLSHMEM_CMP_EQ, 1);
  }
  int wrong = run(1, pe - first, pair, boxes[0].id, stream);

  if (pe == pes - 1) {  // PE 0 of instance 2
    CHECK(aclshmemx_get_uniqueid(&boxes[1].id));
    for (int to = 0; to < pes; ++to)
      aclshmemx_putmem_signal(&boxes[1].id, &boxes[1].id, sizeof(aclshmemx_uniqueid_t),
                              &boxes[1].arrived, 1, ACLSHMEM_SIGNAL_SET, to);
  }
  aclshmem_signal_wait_until(&boxes[1].arrived, ACLSHMEM_CMP_EQ, 1);
  wrong += run(2, pes - 1 - pe, pes, boxes[1].id, stream);

  wrong += aclshmem_my_pe() != pe || aclshmem_n_pes() != pes;
  std::printf("PE %d: instances of %d and %d PEs: %s\n", pe, pair, pes,
              wrong == 0 ? "PASS" : "ERROR");
  aclshmem_free(boxes);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclshmem_finalize());
  CHECK(aclFinalize());
  return wrong != 0;
}
