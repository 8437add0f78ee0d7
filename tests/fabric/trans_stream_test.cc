// SPDX-License-Identifier: Apache-2.0
// Transfers that a stream carries out.
#include <memspan/stream.h>

#include <cstring>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = 1 << 16;

template <typename Initiate>
void with_target(Initiate initiate) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    offer_pages(handle, kBytes, wire.left());
    hear<char>(wire.left());
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    memspan_stream_t stream = nullptr;
    ASSERT_EQ(memspan_stream_create(&stream), 0);
    initiate(handle, hear<unsigned char*>(wire.right()), stream);
    EXPECT_EQ(memspan_stream_destroy(stream), 0);
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
}

struct Gate {
  Wire wire;
  static std::int32_t pass(void* gate) {
    hear<char>(static_cast<Gate*>(gate)->wire.left());
    return 0;
  }
  void open() { say(wire.right(), 'o'); }
};

TEST(TransStreamTest, DoesInItsOrderWhatItWasGiven) {
  with_target([](smem_trans_t handle, unsigned char* remote, memspan_stream_t stream) {
    Gate gate;
    unsigned char source[3] = {1, 2, 3};
    unsigned char back[3] = {};
    ASSERT_EQ(memspan_stream_call(stream, Gate::pass, &gate), 0);
    // Each depends on the one before.
    EXPECT_EQ(smem_trans_write_submit(handle, &source[0], kTarget, remote, 1, stream), SMEM_OK);
    EXPECT_EQ(smem_trans_read_submit(handle, &back[0], kTarget, remote, 1, stream), SMEM_OK);
    {
      // The arrays are the caller's again at once.
      std::vector<const void*> from{&source[1], &source[2]};
      std::vector<void*> there{remote, remote + 1};
      std::vector<std::size_t> sizes{1, 1};
      EXPECT_EQ(smem_trans_batch_write_submit(handle, from.data(), kTarget, there.data(),
                                              sizes.data(), 2, stream),
                SMEM_OK);
      std::vector<void*> to{&back[1], &back[2]};
      std::vector<const void*> from_there{remote, remote + 1};
      EXPECT_EQ(smem_trans_batch_read_submit(handle, to.data(), kTarget, from_there.data(),
                                             sizes.data(), 2, stream),
                SMEM_OK);
      for (auto* pointers : {&there, &to}) pointers->assign(2, nullptr);
      sizes.assign(2, 0);
    }
    EXPECT_EQ(memspan_stream_query(stream), MEMSPAN_STREAM_BUSY);
    EXPECT_EQ(back[0], 0);
    source[0] = 9;
    gate.open();
    ASSERT_EQ(memspan_stream_synchronize(stream, 30'000), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(back[0], 9);
    EXPECT_EQ(back[1], 2);
    EXPECT_EQ(back[2], 3);
  });
}

TEST(TransStreamTest, ChecksAtOnceAndTellsLaterFailuresAtItsSynchronisation) {
  with_target([](smem_trans_t handle, unsigned char* remote, memspan_stream_t stream) {
    unsigned char byte = 1;
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, nullptr),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("invalid stream"));
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, handle),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 0, stream),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_read_submit(handle, &byte, "", remote, 1, stream), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_write_submit(stream, &byte, kTarget, remote, 1, stream),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_stream_synchronize(stream, 0), SMEM_OK);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote + kBytes, 1, stream), SMEM_OK);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, stream), SMEM_OK);
    EXPECT_EQ(memspan_stream_synchronize(stream, 30'000), SMEM_NOT_EXIST);
    EXPECT_TRUE(says("piece 0"));
    EXPECT_EQ(memspan_stream_synchronize(stream, 30'000), SMEM_OK);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, stream, COPY_EXTEND_FLAG),
              SMEM_OK);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, stream, 64),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_stream_synchronize(stream, 30'000), SMEM_OK);
  });
}

TEST(TransStreamTest, SaysWhenTheEndpointWasDestroyedMeanwhile) {
  with_target([](smem_trans_t handle, unsigned char* remote, memspan_stream_t stream) {
    Gate gate;
    unsigned char byte = 1;
    ASSERT_EQ(memspan_stream_call(stream, Gate::pass, &gate), 0);
    EXPECT_EQ(smem_trans_write_submit(handle, &byte, kTarget, remote, 1, stream), SMEM_OK);
    smem_trans_destroy(handle, 0);
    gate.open();
    EXPECT_EQ(memspan_stream_synchronize(stream, 30'000), SMEM_NOT_STARTED);
    EXPECT_TRUE(says("destroyed"));
  });
}

}  // namespace
}  // namespace trans
