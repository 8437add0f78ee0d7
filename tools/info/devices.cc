// SPDX-License-Identifier: Apache-2.0
// What device memory is of.
#include <fmt/format.h>

#include "core/environment.h"
#include "device/choice.h"
#include "device/cuda/driver.h"
#include "info/gather.h"

namespace memspan::info {
namespace {

bool has_gpu(const SystemFiles& files) {
  return files.has("/dev/nvidiactl") || files.has("/dev/dxg");
}

Finding cuda_finding(const SystemFiles& files, AskDevices ask) {
  Finding finding{.group = "device", .key = "cuda"};
  if (ask == AskDevices::kIfQuick && has_gpu(files)) {
    finding.text = "a GPU exists; memspan-info --devices asks it, which takes a moment";
    return finding;
  }
  const Result<std::string> cuda = cuda::describe_devices();
  finding.value = cuda.is_ok();
  finding.text = cuda.is_ok() ? *cuda + " (MEMSPAN_DEVICE=cuda)" : cuda.status().message();
  return finding;
}

Finding chosen_finding() {
  Finding finding{.group = "device", .key = "in_use"};
  const Result<Device*> chosen = chosen_device();
  if (chosen.is_ok()) {
    finding.text = std::string((*chosen)->name());
    finding.value = (*chosen)->name();
    return finding;
  }
  finding.text = "none: " + chosen.status().message();
  return judged(std::move(finding), Judgement::kProblem, "an existing device",
                "unset MEMSPAN_DEVICE, or install the driver that the message names");
}

}  // namespace

Findings gather_devices(const SystemFiles& files, AskDevices ask) {
  // With MEMSPAN_DEVICE=cuda the driver is started anyway.
  const AskDevices really = wants_other_device() ? AskDevices::kAlways : ask;
  return {chosen_finding(), cuda_finding(files, really)};
}

}  // namespace memspan::info
