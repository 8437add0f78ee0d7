// SPDX-License-Identifier: Apache-2.0
// PMIx by its client library, which is loaded and not linked: the headers give the types.
#include <dlfcn.h>
#include <fmt/format.h>
#include <pmix.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/interrupt.h"
#include "node/segment.h"
#include "world/foreign_launcher.h"

namespace memspan::inline world {
namespace {

constexpr auto kLongestGet = std::chrono::seconds(60);  // what is asked for was put before a fence
constexpr const char* kLibrary = "libpmix.so.2";

// The PMIx functions in use.
struct Pmix {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence_nb) fence;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Error_string) error_string;

  static Result<Pmix> load() {
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) return Status(Code::kNotSupported, dlerror());
    Pmix pmix{};
    const auto find = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    if (find(pmix.init, "PMIx_Init") && find(pmix.finalize, "PMIx_Finalize") &&
        find(pmix.put, "PMIx_Put") && find(pmix.commit, "PMIx_Commit") &&
        find(pmix.fence, "PMIx_Fence_nb") && find(pmix.get, "PMIx_Get") &&
        find(pmix.error_string, "PMIx_Error_string"))
      return pmix;
    return Status(Code::kNotSupported, fmt::format("{} is not PMIx: {}", kLibrary, dlerror()));
  }

  Status failure(const char* call, pmix_status_t code) const {
    if (code == PMIX_SUCCESS) return Status::ok();
    return {Code::kUnavailable, fmt::format("{}: {} ({})", call, error_string(code), code)};
  }
};

// The result of a fence in progress. Owners: its waiting caller, and PMIx until it has called back.
using PendingFence = AwaitedValue<pmix_status_t>;

void complete_fence(pmix_status_t code, void* argument) {
  const std::unique_ptr<std::shared_ptr<PendingFence>> own(
      static_cast<std::shared_ptr<PendingFence>*>(argument));
  (*own)->set(code);
}

pmix_info_t make_info(const char* key) {
  pmix_info_t info;
  std::memset(&info, 0, sizeof info);
  std::strncpy(info.key, key, PMIX_MAX_KEYLEN);
  return info;
}

class PmixChannel final : public LauncherChannel {
 public:
  PmixChannel(const Pmix& pmix, const pmix_proc_t& self) : pmix_(pmix), self_(self) {}
  ~PmixChannel() override { pmix_.finalize(nullptr, 0); }

  Status find_size() {
    MEMSPAN_TRY_ASSIGN(const Value size, value_of(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, nullptr, 0),
                       "asking for the number of processes");
    if (size->type != PMIX_UINT32 || size->data.uint32 <= self_.rank ||
        size->data.uint32 > static_cast<std::uint32_t>(kMostPeers))
      return {Code::kUnavailable,
              fmt::format("PMIx says that this is process {} of {}; allowed are up to {} processes",
                          self_.rank, size->data.uint32, kMostPeers)};
    size_ = static_cast<int>(size->data.uint32);
    return Status::ok();
  }

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override { return size_; }

  Status put(const std::string& key, const std::string& value, const Deadline&) override {
    std::string text = value;
    pmix_value_t given;
    std::memset(&given, 0, sizeof given);
    given.type = PMIX_STRING;
    given.data.string = text.data();
    return pmix_.failure("PMIx_Put", pmix_.put(PMIX_GLOBAL, full(key).c_str(), &given));
  }

  Status fence(const Deadline& deadline) override {
    MEMSPAN_PASS(pmix_.failure("PMIx_Commit", pmix_.commit()));
    pmix_info_t collect = make_info(PMIX_COLLECT_DATA);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    const auto pending = std::make_shared<PendingFence>();
    auto held = std::make_unique<std::shared_ptr<PendingFence>>(pending);
    const pmix_status_t begun = pmix_.fence(&all, 1, &collect, 1, &complete_fence, held.get());
    if (begun == PMIX_OPERATION_SUCCEEDED) return Status::ok();
    MEMSPAN_PASS(pmix_.failure("PMIx_Fence_nb", begun));
    held.release();  // NOLINT(bugprone-unused-return-value): the call-back has it now
    const auto code = pending->wait(deadline);
    if (!code)
      return end_of_wait("not all processes of the job have come to PMIx's fence in time")
          .annotate("waiting for the others");
    return pmix_.failure("PMIx_Fence_nb", *code);
  }

  Result<std::string> get(int rank, const std::string& key, const Deadline& deadline) override {
    pmix_info_t limit = make_info(PMIX_TIMEOUT);
    limit.value.type = PMIX_INT;
    limit.value.data.integer =
        static_cast<int>(std::ceil(to_seconds(deadline.within(kLongestGet).remaining())));
    MEMSPAN_TRY_ASSIGN(const Value value,
                       value_of(static_cast<pmix_rank_t>(rank), full(key).c_str(), &limit, 1),
                       "asking the launcher");
    if (value->type != PMIX_STRING || value->data.string == nullptr)
      return Status(Code::kUnavailable, fmt::format("PMIx has another \"{}\" than was put", key));
    return std::string(value->data.string);
  }

 private:
  // PMIx makes its values by malloc(); those that are asked for here have a string at most.
  struct Free {
    void operator()(pmix_value_t* value) const {
      if (value->type == PMIX_STRING) std::free(value->data.string);
      std::free(value);
    }
  };
  using Value = std::unique_ptr<pmix_value_t, Free>;

  static std::string full(const std::string& key) { return "memspan." + key; }

  pmix_proc_t process(pmix_rank_t rank) const {
    pmix_proc_t other = self_;
    other.rank = rank;
    return other;
  }

  Result<Value> value_of(pmix_rank_t rank, const char* key, const pmix_info_t* options,
                         std::size_t count) const {
    const pmix_proc_t other = process(rank);
    pmix_value_t* found = nullptr;
    const pmix_status_t code = pmix_.get(&other, key, options, count, &found);
    if (code != PMIX_SUCCESS)
      return pmix_.failure(fmt::format("PMIx_Get of {}", key).c_str(), code);
    return Value(found);
  }

  const Pmix pmix_;
  const pmix_proc_t self_;
  int size_ = 0;
};

}  // namespace

Result<std::unique_ptr<LauncherChannel>> open_pmix_channel() {
  MEMSPAN_TRY_ASSIGN(const Pmix pmix, Pmix::load(), "loading PMIx");
  pmix_proc_t self;
  std::memset(&self, 0, sizeof self);
  MEMSPAN_PASS(pmix.failure("PMIx_Init", pmix.init(&self, nullptr, 0)));
  auto channel = std::make_unique<PmixChannel>(pmix, self);
  MEMSPAN_PASS(channel->find_size());
  return std::unique_ptr<LauncherChannel>(std::move(channel));
}

}  // namespace memspan::inline world
