// SPDX-License-Identifier: Apache-2.0
#include "world/device_heap.h"

#include <fmt/format.h>

#include "core/environment.h"
#include "memory/address_plan.h"
#include "store/fields.h"
#include "transport/device_link.h"

namespace memspan::inline world {

DeviceRoutes::DeviceRoutes(const RouteTable& plain)
    : peers_(plain.peers), heap_region_{{kHeapRegion, 1}, plain.heap.bytes, MemoryKind::kHost, {}} {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    const Route& route = plain.heap.routes[peer];
    peers_[peer] = std::make_unique<DeviceLink>(route.is_direct() ? nullptr : route.link);
  }
  heap_ = convert(plain.heap, heap_region_);
  table_ = plain;
  table_.heap.routes = heap_.data();
  table_.device = &device_;
}

DeviceRoutes::~DeviceRoutes() = default;

// Routes to the same memory as those of `region`, by links of this table.
std::vector<Route> DeviceRoutes::convert(const SymmetricRegion& region,
                                         const RemoteRegion& near_region) {
  std::vector<Route> routes(peers_.size());
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    const Route& plain = region.routes[peer];
    const bool is_direct = plain.is_direct();
    routes[peer].slot = plain.slot;
    if (!is_direct && plain.link == nullptr) continue;
    routes[peer].link = peers_[peer].get();
    routes[peer].region = is_direct ? &near_region : plain.region;
    if (!is_direct) continue;
    auto* const mine = reinterpret_cast<std::byte*>(region.base);  // NOLINT: an address
    peers_[peer]->add(near_region, plain.address(mine));
  }
  return routes;
}

void DeviceRoutes::add_data(const SymmetricRegion& data) {
  if (data.bytes == 0) return;
  data_region_ = {{kStaticRegion, 1}, data.bytes, MemoryKind::kHost, {}};
  data_ = convert(data, data_region_);
  table_.data = data;
  table_.data.routes = data_.data();
}

void DeviceRoutes::show_heap(const DeviceHeap& heap, std::vector<RemoteRegion> regions) {
  device_regions_ = std::move(regions);
  device_routes_.resize(device_regions_.size());
  for (std::size_t peer = 0; peer < device_regions_.size(); ++peer) {
    const RemoteRegion& region = device_regions_[peer];
    device_routes_[peer] = {.slot = heap_[peer].slot, .link = heap_[peer].link, .region = &region};
    if (auto* const mapped = heap.address_at(heap.base(), static_cast<int>(peer)))
      peers_[peer]->add(region, mapped);
  }
  device_region_ = {reinterpret_cast<std::uintptr_t>(heap.base()), heap.bytes(),
                    device_routes_.data()};
  device_.store(&device_region_, std::memory_order_release);
}

namespace {

constexpr const char* kSizeVariable = "MEMSPAN_DEVICE_HEAP_SIZE";
constexpr const char* kKind = "PE";
constexpr const char* kPublishedName = "device-heap";
// Places are tried one after the other: another instance's heap may be at the first ones.
constexpr std::uint64_t kMostPlaces = 64;

// A process's description of its part.
struct PartIntroduction {
  std::string device;
  std::uint64_t bytes = 0;
  std::string broker;

  static void fields(auto& codec, auto& self) { codec(self.device, self.bytes, self.broker); }
};

// The brokers of all. They see the same texts, so all fail together.
Result<std::vector<std::string>> read_introductions(const std::vector<std::string>& texts) {
  std::vector<std::string> brokers;
  PartIntroduction first;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    FieldReader in(texts[peer]);
    PartIntroduction its;
    in(its);
    if (!in.is_finished())
      return Status(Code::kInternal,
                    "giving memory of a device: what a PE says of its device is malformed");
    if (peer == 0) first = its;
    if (its.device != first.device)
      return Status(Code::kInvalidArgument,
                    fmt::format("PE {} has memory of device {}, PE 0 of {}; MEMSPAN_DEVICE has to "
                                "be the same on all",
                                peer, its.device, first.device));
    if (its.bytes != first.bytes)
      return Status(Code::kInvalidArgument,
                    fmt::format("PE {} asks for a symmetric heap of {} bytes in memory of a "
                                "device, PE 0 for {}; {} has to be the same on all",
                                peer, its.bytes, first.bytes, kSizeVariable));
    brokers.push_back(std::move(its.broker));
  }
  return brokers;
}

}  // namespace

Result<std::size_t> device_heap_bytes(std::size_t fallback) {
  std::size_t bytes = fallback;
  if (const auto text = environment(kSizeVariable)) {
    MEMSPAN_TRY_ASSIGN(bytes, parse_size(kSizeVariable, *text),
                       "the size of the symmetric heap in memory of a device");
  }
  if (bytes > address_windows().device_heap_bytes())
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is {}, allowed are up to {}", kSizeVariable, format_size(bytes),
                              format_size(address_windows().device_heap_bytes())));
  return align_up(bytes, kDeviceGranularity);
}

Result<std::unique_ptr<DeviceHeap>> DeviceHeap::make(const Place& place, Device& device,
                                                     std::size_t bytes, const Exchange& exchange,
                                                     Deadline deadline) {
  std::unique_ptr<DeviceHeap> made(new DeviceHeap(place, device, bytes));
  // Lives until all have taken what they need.
  std::unique_ptr<DescriptorBroker> broker;
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> texts,
                     agree(exchange, made->give(broker), kKind), "giving memory of a device");
  MEMSPAN_PASS_ASSIGN(const std::vector<std::string> brokers, read_introductions(texts));
  MEMSPAN_PASS(made->find_place(exchange));
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> regions,
                     agree(exchange, made->map_and_expose(*broker, brokers, deadline), kKind),
                     "mapping the memory of the others' devices");
  auto read = made->read_regions(regions);
  MEMSPAN_TRY(agree(exchange, read.status(), kKind), "connecting to the others' devices");
  place.routes.show_heap(*made, std::move(read).value());
  return made;
}

Result<std::string> DeviceHeap::give(std::unique_ptr<DescriptorBroker>& broker) {
  MEMSPAN_PASS_ASSIGN(broker, DescriptorBroker::open());
  MEMSPAN_TRY_ASSIGN(memory_, device_.allocate(bytes_, "memspan-device-heap"),
                     "the symmetric heap");
  std::vector<Fd> descriptors(1);
  MEMSPAN_TRY_ASSIGN(descriptors[0], memory_->duplicate(), "the symmetric heap");
  MEMSPAN_PASS(broker->publish(kPublishedName, std::move(descriptors)));
  return encode_record(PartIntroduction{std::string(device_.name()), bytes_, broker->address()});
}

// All PEs use the same place, even on other nodes, which do not need that.
Status DeviceHeap::find_place(const Exchange& exchange) {
  Status taken;
  for (std::uint64_t number = 0; number < kMostPlaces; ++number) {
    taken = agree(exchange, reserve(number), kKind);
    if (taken.is_ok()) return taken;
    range_.reset();
    if (taken.code() != Code::kUnavailable) break;
  }
  return taken.annotate("reserving addresses for memory of a device");
}

Status DeviceHeap::reserve(std::uint64_t number) {
  // Uses the largest node, so that all compute the same.
  std::size_t most = 1;
  for (int node = 0; node < place_.nodes.count(); ++node)
    most = std::max(most, static_cast<std::size_t>(place_.nodes.peers_in(node)));
  if (bytes_ > address_windows().device_heap_bytes() / most)
    return {Code::kOutOfMemory,
            fmt::format("{} parts of {} do not fit the address window of {}", most,
                        format_size(bytes_), format_size(address_windows().device_heap_bytes()))};
  const std::uint64_t step = align_up(bytes_ * most, kDeviceAddressStep);
  if (number >= address_windows().device_heap_bytes() / step)
    return {Code::kUnavailable, "there is no other place for it"};
  const std::uint64_t at = address_windows().device_heap + number * step;
  MEMSPAN_TRY_ASSIGN(
      range_,
      device_.reserve_at(bytes_ * near_peers().size(), reinterpret_cast<void*>(at)),  // NOLINT
      "the symmetric heap");
  return Status::ok();
}

Result<std::string> DeviceHeap::map_and_expose(DescriptorBroker& broker,
                                               const std::vector<std::string>& brokers,
                                               const Deadline& deadline) {
  for (const int peer : near_peers()) {
    if (!is_mapped(peer)) continue;
    std::unique_ptr<DeviceMemory> its;
    if (peer != place_.rank) {
      MEMSPAN_TRY_ASSIGN(FetchedDescriptors fetched,
                         broker.fetch_and_wait(brokers[peer], kPublishedName, deadline),
                         fmt::format("taking over the memory of PE {}'s device", peer));
      if (fetched.descriptors.size() != 1)
        return Status(Code::kInternal, fmt::format("PE {} did not hand over its memory", peer));
      MEMSPAN_TRY_ASSIGN(its, device_.adopt(std::move(fetched.descriptors[0])),
                         fmt::format("taking over the memory of PE {}'s device", peer));
    }
    const std::size_t at = place_.nodes.index_of(peer) * bytes_;
    MEMSPAN_TRY(range_->map(at, its == nullptr ? *memory_ : *its, bytes_),
                fmt::format("the memory of PE {}'s device", peer));
  }
  // For PEs that do not map it; empty if there are no such PEs.
  if (place_.linked == nullptr) return std::string();
  MEMSPAN_TRY_ASSIGN(exposed_, place_.linked->expose_device(base(), bytes_, kDeviceHeapRegion),
                     "exposing memory of a device");
  return exposed_->describe().encode();
}

Result<std::vector<RemoteRegion>> DeviceHeap::read_regions(
    const std::vector<std::string>& texts) const {
  std::vector<RemoteRegion> regions(texts.size(),
                                    {{kDeviceHeapRegion, 1}, bytes_, MemoryKind::kDevice, {}});
  for (std::size_t peer = 0; peer < texts.size(); ++peer)
    if (!is_mapped(static_cast<int>(peer))) {
      MEMSPAN_TRY_ASSIGN(regions[peer], RemoteRegion::decode(texts[peer]),
                         fmt::format("PE {}'s device", peer));
    }
  return regions;
}

}  // namespace memspan::inline world
