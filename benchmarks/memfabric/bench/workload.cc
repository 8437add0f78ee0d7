// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "example.h"

namespace bench {
namespace {

constexpr std::size_t kMany = 100'000;

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[example::random_number(seed * kMany + i) % i]);
  return order;
}

// Where each piece begins when they are laid down in that order.
std::pair<std::vector<std::size_t>, std::size_t> lay_down(const std::vector<std::size_t>& bytes,
                                                          const std::vector<std::size_t>& order) {
  std::vector<std::size_t> offsets(bytes.size());
  std::size_t end = 0;
  for (const std::size_t i : order) {
    offsets[i] = end;
    end += bytes[i] + (bytes[i] > 4096 ? 4096 : 64);
  }
  return {offsets, end};
}

}  // namespace

Workload contiguous(const std::string& name, std::size_t count, std::size_t bytes) {
  Workload work = {name, bytes, {}, count * bytes};
  for (std::size_t i = 0; i < count; ++i) work.pieces.push_back({i * bytes, i * bytes, bytes});
  return work;
}

Workload scattered(const std::string& name, std::size_t size,
                   const std::vector<std::size_t>& bytes) {
  const auto [local, local_end] = lay_down(bytes, shuffled(bytes.size(), 1));
  const auto [remote, remote_end] = lay_down(bytes, shuffled(bytes.size(), 2));
  Workload work = {name, size, {}, std::max(local_end, remote_end)};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    work.pieces.push_back({local[i], remote[i], bytes[i]});
  return work;
}

Workload cache_block() {
  std::vector<std::size_t> bytes;
  for (int layer = 0; layer < 61; ++layer) bytes.insert(bytes.end(), {128 << 10, 16 << 10});
  return scattered("block", std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), bytes);
}

std::vector<Workload> all_workloads(std::size_t memory) {
  std::vector<Workload> all = {cache_block()};
  for (const std::size_t bytes : {4U << 10, 16U << 10, 64U << 10})
    all.push_back(contiguous("single", 1, bytes));
  for (std::size_t bytes = 32 << 10; bytes <= 16U << 20; bytes *= 2) {
    all.push_back(contiguous("batch", 32, bytes));
    all.push_back(scattered("scattered", bytes, std::vector<std::size_t>(32, bytes)));
  }
  for (const std::size_t bytes : {256U, 4096U})
    all.push_back(scattered("many", bytes, std::vector<std::size_t>(kMany, bytes)));
  all.erase(std::remove_if(all.begin(), all.end(),
                           [memory](const Workload& work) { return work.span > memory; }),
            all.end());
  return all;
}

}  // namespace bench
