// Device guard and hooks of the vgpu backend: which device and stream a thread is on.
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_device.hpp"
#include "training/devices/vgpu_memory.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>

#include <map>
#include <mutex>

namespace bench::training {
namespace {

thread_local c10::DeviceIndex current_device = 0;
// The stream a thread has made current on a device, as an offset from the device's default stream.
thread_local std::int64_t current_stream_offset[kMaxDevices] = {};

// Stream ids differ between devices, so that the engine can tell device 0's stream from device 1's.
constexpr std::int64_t kStreamsPerDevice = 64;

c10::Stream stream_of(c10::Device device, std::int64_t offset) {
  return c10::Stream(c10::Stream::UNSAFE, device, device.index() * kStreamsPerDevice + offset);
}

// Streams have an identity but nothing runs asynchronously: events are always ready.
class VgpuGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {c10::kPrivateUse1, current_device}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < deviceCount(),
                "vgpu:", static_cast<int>(device.index()), " does not exist; there are ",
                static_cast<int>(deviceCount()), " virtual GPUs");
    current_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return stream_of(device, current_stream_offset[device.index()]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream_of(device, 1);
  }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream_of(device, 1); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream old = getStream(stream.device());
    current_stream_offset[stream.device_index()] = stream.id() % kStreamsPerDevice;
    return old;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(vgpu_options().device_count);
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

// Page-locked host memory exists by name only: it is ordinary memory that remembers being asked
// for. The Reducer insists on it for its copy of the used-parameter map.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    std::scoped_lock lock(mutex_);
    if (data) sizes_[data] = bytes;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
  bool owns(const void* pointer) {
    std::scoped_lock lock(mutex_);
    auto after = sizes_.upper_bound(pointer);
    if (after == sizes_.begin()) return false;
    --after;
    return pointer == after->first ||
           pointer < static_cast<const char*>(after->first) + after->second;
  }

 private:
  static void release(void* data);

  std::mutex mutex_;
  std::map<const void*, std::size_t> sizes_;
};

PinnedAllocator& pinned_allocator() {
  static auto* instance = new PinnedAllocator;
  return *instance;
}

void PinnedAllocator::release(void* data) {
  PinnedAllocator& self = pinned_allocator();
  {
    std::scoped_lock lock(self.mutex_);
    self.sizes_.erase(data);
  }
  c10::free_cpu(data);
}

class VgpuHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(vgpu_options().device_count);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    guard_.setDevice({c10::kPrivateUse1, device});
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return guard_.exchangeDevice({c10::kPrivateUse1, device}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  // Random numbers are the CPU's, so a seed gives the same values on vgpu and on cpu.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* pointer) const override { return pinned_allocator().owns(pointer); }
  at::Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK(false, "vgpu: a pointer does not tell its virtual GPU; use the tensor's device");
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }

 private:
  VgpuGuard guard_;
};

}  // namespace

int current_vgpu_index() { return current_device; }

void register_device_guard() {
  c10::register_privateuse1_backend("vgpu");
  static VgpuGuard guard;
  static VgpuHooks hooks;
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, &guard);
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::SetAllocator(c10::kPrivateUse1, vgpu_allocator());
}

}  // namespace bench::training
