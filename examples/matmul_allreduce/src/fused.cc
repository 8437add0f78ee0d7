// SPDX-License-Identifier: Apache-2.0
#include "fused.h"

#include <memspan/launch.h>

#include "blas.h"

namespace matmul {

FusedAllreduce::FusedAllreduce(const FusedJob& job, const Gemm::Input& input, Gemm& gemm,
                               std::uint64_t blocks)
    : job_(job), pass_(job_, gemm, 0, 1) {
  for (std::uint64_t number = 0; number < blocks; ++number)
    blocks_.push_back(std::make_unique<Block>(job_, input, number, blocks));
  if (blocks > 0) memspan_stream_create(&stream_);
}

FusedAllreduce::~FusedAllreduce() {
  if (stream_ != nullptr) memspan_stream_destroy(stream_);
}

bool FusedAllreduce::is_valid() const {
  for (const auto& block : blocks_)
    if (!block->gemm.is_valid() || !block->pass.is_valid()) return false;
  return pass_.is_valid() && (blocks_.empty() || stream_ != nullptr);
}

bool FusedAllreduce::run() {
  if (blocks_.empty()) {
    pass_.run();
    return true;
  }
  const auto kernel = [](FusedAllreduce* fused) {
    use_one_blas_thread();  // a setting of each thread
    fused->blocks_[memspan::kernel::block()]->pass.run();
  };
  return memspan::launch(stream_, static_cast<unsigned>(blocks_.size()), kernel, this) == 0 &&
         memspan_stream_synchronize(stream_, UINT32_MAX) == 0;
}

}  // namespace matmul
