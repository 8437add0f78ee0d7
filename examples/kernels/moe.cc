// SPDX-License-Identifier: Apache-2.0
// A mixture of experts, one on each PE. Dispatch: every token goes to the PE of its expert, into
// places that an atomic counter there gives. The expert works on what came. Combine: it sends each
// result back to where the token came from.
#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kTokens = 200;  // of a PE
constexpr std::size_t kWidth = 64;

struct Origin {
  std::int32_t pe;
  std::int32_t token;
};

template <typename T>
struct Expert {
  T* tokens;  // what came, in the order of coming
  Origin* origins;
  std::uint64_t* count;
};

MEMSPAN_HOST_DEVICE int expert_of(int pe, std::size_t token, int pes) {
  return static_cast<int>((token * 13 + static_cast<std::size_t>(pe) * 7) %
                          static_cast<std::size_t>(pes));
}

template <typename T>
MEMSPAN_HOST_DEVICE T apply_expert(T value, int expert) {
  return value * static_cast<T>(expert + 2) + T{1};
}

template <typename T>
MEMSPAN_GLOBAL void dispatch(Expert<T> to, const T* tokens) {
  const Part mine(kTokens, k::block(), k::blocks());
  for (std::size_t i = mine.first + k::thread(); i < mine.last; i += k::threads()) {
    const int expert = expert_of(k::my_pe(), i, k::n_pes());
    const auto place = k::atomic_fetch_inc(to.count, expert);
    k::put_nbi(to.tokens + place * kWidth, tokens + i * kWidth, kWidth, expert);
    const Origin origin{k::my_pe(), static_cast<std::int32_t>(i)};
    k::put(to.origins + place, &origin, 1, expert);
  }
  k::barrier_all();
}

template <typename T>
MEMSPAN_GLOBAL void combine(T* results, Expert<T> from) {
  const Part mine(static_cast<std::size_t>(*from.count), k::block(), k::blocks());
  for (std::size_t i = mine.first + k::thread(); i < mine.last; i += k::threads()) {
    T* const token = from.tokens + i * kWidth;
    for (std::size_t j = 0; j < kWidth; ++j) token[j] = apply_expert(token[j], k::my_pe());
    k::put(results + static_cast<std::size_t>(from.origins[i].token) * kWidth, token, kWidth,
           from.origins[i].pe);
  }
  k::barrier_all();
}

template <typename T>
long count_errors() {
  const int me = shmem_my_pe();
  const std::size_t most = kTokens * static_cast<std::size_t>(shmem_n_pes());
  const Symmetric<T> tokens(kTokens * kWidth);
  const Symmetric<T> results(kTokens * kWidth);
  const Symmetric<T> came(most * kWidth);
  const Symmetric<Origin> origins(most);
  const Symmetric<std::uint64_t> count(1);
  for (std::size_t i = 0; i < kTokens * kWidth; ++i) tokens[i] = element<T>(me, i);
  const Expert<T> expert{came.get(), origins.get(), count.get()};
  Stream stream;
  stream.launch(4, dispatch<T>, expert, tokens.get());
  stream.launch(4, combine<T>, results.get(), expert);
  stream.synchronize();
  long wrong = 0;
  for (std::size_t i = 0; i < kTokens; ++i)
    for (std::size_t j = 0; j < kWidth; ++j)
      if (results[i * kWidth + j] !=
          apply_expert(element<T>(me, i * kWidth + j), expert_of(me, i, shmem_n_pes())))
        ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](auto zero) { return count_errors<decltype(zero)>(); });
}
