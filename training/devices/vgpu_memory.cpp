#include "training/devices/vgpu_memory.hpp"

#include "training/devices/recorder_log.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_device.hpp"

#include <c10/core/CPUAllocator.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

namespace bench::training {
namespace {

struct DeviceAccount {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;
};

// All blocks and accounts of the process. Never destroyed: tensors held by static objects may be
// released after main().
struct Registry {
  std::mutex mutex;
  std::array<DeviceAccount, kMaxDevices> accounts;
  Block* head = nullptr;
  std::uint64_t count = 0;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// Address space without access rights for the tensors of shape execution. Handed out in turn and
// never given back: nothing is ever stored there, so ranges may be handed out again after a lap.
class AddressSpace {
 public:
  void* take(std::size_t bytes) {
    std::scoped_lock lock(mutex_);
    if (!base_) reserve();
    bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    TORCH_CHECK(bytes <= kReservedBytes, "vgpu: one tensor of ", bytes,
                " bytes is larger than the address space of shape execution (", kReservedBytes,
                ")");
    if (used_ + bytes > kReservedBytes) used_ = 0;
    void* address = base_ + used_;
    used_ += bytes;
    return address;
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kReservedBytes = std::size_t{1} << 43;  // 8 TiB of 128 TiB

  void reserve() {
    void* address = mmap(nullptr, kReservedBytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(address != MAP_FAILED, "vgpu: cannot reserve ", kReservedBytes,
                " bytes of address space for shape execution; is RLIMIT_AS (ulimit -v) set?");
    base_ = static_cast<char*>(address);
  }

  std::mutex mutex_;
  char* base_ = nullptr;
  std::size_t used_ = 0;
};
AddressSpace& address_space() {
  static auto* instance = new AddressSpace;
  return *instance;
}

std::string size_text(std::uint64_t bytes) {
  // The units and two decimals of c10::CachingAllocator's format_size.
  char text[48];
  if (bytes <= 1024) {
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  } else if (bytes <= 1048576) {
    std::snprintf(text, sizeof text, "%.2f KiB", static_cast<double>(bytes) / 1024.0);
  } else if (bytes <= 1073741824ULL) {
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / 1048576.0);
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / 1073741824.0);
  }
  return text;
}

// "activations 13.20 GiB, parameters 97.49 MiB": what holds the device's memory, largest first. The
// caller holds the registry's lock.
std::string holders_text(const Block* head, int device) {
  std::array<std::uint64_t, simulator::kMemoryCategoryCount> bytes{};
  for (const Block* block = head; block; block = block->next) {
    if (block->device == device) bytes[static_cast<int>(block->category)] += block->charged_bytes;
  }
  std::array<int, simulator::kMemoryCategoryCount> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes[a] > bytes[b]; });
  std::string text;
  for (const int category : order) {
    if (bytes[category] == 0) break;
    text += text.empty() ? "" : ", ";
    text += simulator::memory_category_name(static_cast<simulator::MemoryCategory>(category));
    text += ' ' + size_text(bytes[category]);
  }
  return text.empty() ? "nothing" : text;
}

[[noreturn]] void throw_out_of_memory(const Block& asking, std::uint64_t current,
                                      const Block* head) {
  const std::uint64_t capacity = vgpu_options().memory_bytes;
  const std::uint64_t request = asking.charged_bytes;
  const int device = asking.device;
  std::string message =
      "vgpu out of memory. Tried to allocate " + size_text(request) + ". GPU " +
      std::to_string(device) + " has a total capacity of " + size_text(capacity) + " of which " +
      size_text(capacity - current) + " is free. " + "Of the allocated memory " +
      size_text(current) + " is allocated by PyTorch. The request is for " +
      simulator::memory_category_name(asking.category) + "; in use are " +
      holders_text(head, device) + ". (vgpu:" + std::to_string(device) + ": request " +
      std::to_string(request) + " bytes, total " + std::to_string(capacity) + " bytes, free " +
      std::to_string(capacity - current) + " bytes)";
  throw VgpuOutOfMemoryError({__func__, __FILE__, __LINE__}, std::move(message));
}

// Charges the block to its device or throws; then the block is live.
void enter(Block* block, std::size_t bytes) {
  block->charged_bytes = (bytes + kAllocationUnit - 1) / kAllocationUnit * kAllocationUnit;
  block->category = current_category();
  const std::uint64_t capacity = vgpu_options().memory_bytes;
  Registry& all = registry();
  {
    std::scoped_lock lock(all.mutex);
    DeviceAccount& account = all.accounts[block->device];
    if (capacity != 0 && account.current + block->charged_bytes > capacity) {
      throw_out_of_memory(*block, account.current, all.head);
    }
    account.current += block->charged_bytes;
    account.peak = std::max(account.peak, account.current);
    block->next = all.head;
    if (all.head) all.head->previous = block;
    all.head = block;
    ++all.count;
  }
  log_allocation(*block);
}

void release_block(void* context) {
  auto* block = static_cast<Block*>(context);
  log_free(*block);
  Registry& all = registry();
  {
    std::scoped_lock lock(all.mutex);
    all.accounts[block->device].current -= block->charged_bytes;
    if (block->next) block->next->previous = block->previous;
    (block->previous ? block->previous->next : all.head) = block->next;
    --all.count;
  }
  delete block;
}

c10::Storage cpu_storage(std::size_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                      c10::GetCPUAllocator()->allocate(bytes), c10::GetCPUAllocator(),
                      /*resizable=*/true);
}

// The storage Meta kernels see. It carries the size only.
c10::Storage meta_storage(std::size_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                      c10::DataPtr(nullptr, c10::Device(c10::kMeta)), c10::GetAllocator(c10::kMeta),
                      /*resizable=*/true);
}

c10::DataPtr make_block(std::size_t bytes, int device) {
  auto block = std::make_unique<Block>();
  block->device = device;
  void* data = nullptr;
  if (shape_execution()) {
    block->has_values = bytes <= kSmallTensorBytes;
    block->meta_twin = meta_storage(bytes);
  }
  enter(block.get(), bytes);
  Block* owned = block.release();
  if (owned->has_values) {
    owned->cpu_twin = cpu_storage(bytes);
    data = owned->cpu_twin.mutable_data();
    if (shape_execution() && bytes > 0) std::memset(data, 0, bytes);
  } else {
    data = address_space().take(bytes);
  }
  return {data, owned, &release_block, vgpu_device(device)};
}

class VgpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    return make_block(bytes, current_vgpu_index());
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    if (!shape_execution()) default_copy_data(destination, source, bytes);
  }
};

}  // namespace

c10::Allocator* vgpu_allocator() {
  static auto* instance = new VgpuAllocator;
  return instance;
}

Block* block_of(const c10::StorageImpl& storage) {
  const c10::DataPtr& pointer = storage.data_ptr();
  if (pointer.get_deleter() != &release_block) return nullptr;
  return static_cast<Block*>(pointer.get_context());
}

Block* block_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return block_of(*tensor.storage().unsafeGetStorageImpl());
}

c10::Storage adopt_cpu_storage(c10::Storage cpu, int device) {
  const std::size_t bytes = cpu.nbytes();
  void* data = cpu.mutable_data();
  auto block = std::make_unique<Block>();
  block->device = device;
  block->cpu_twin = std::move(cpu);
  if (shape_execution()) block->meta_twin = meta_storage(bytes);
  enter(block.get(), bytes);
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                      c10::DataPtr(data, block.release(), &release_block, vgpu_device(device)),
                      vgpu_allocator(), /*resizable=*/true);
}

void follow_resized_twin(c10::StorageImpl& storage) {
  Block* block = block_of(storage);
  if (!block) return;
  const bool numeric_moved = block->cpu_twin && block->cpu_twin.data() != storage.data();
  const bool shape_grew = block->meta_twin && block->meta_twin.nbytes() != storage.nbytes();
  if (!numeric_moved && !shape_grew) return;
  const std::size_t bytes = numeric_moved ? block->cpu_twin.nbytes() : block->meta_twin.nbytes();
  if (numeric_moved) {
    // The twin's StorageImpl stays with the old block, so the new memory moves to a fresh one.
    c10::Storage memory(c10::Storage::use_byte_size_t(), bytes,
                        block->cpu_twin.set_data_ptr(c10::DataPtr(nullptr, c10::Device(c10::kCPU))),
                        c10::GetCPUAllocator(), true);
    c10::Storage adopted = adopt_cpu_storage(std::move(memory), block->device);
    storage.set_data_ptr(
        adopted.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, storage.device())));
  } else {
    storage.set_data_ptr(make_block(bytes, block->device));
  }
  storage.set_nbytes(bytes);
}

void resize_storage(c10::StorageImpl& storage, std::size_t bytes) {
  Block* old = block_of(storage);
  const int device = old ? old->device : storage.device().index();
  const std::size_t kept = std::min(bytes, storage.nbytes());
  const bool old_values = old && old->has_values;
  c10::DataPtr fresh = make_block(bytes, device);
  const auto* block = static_cast<Block*>(fresh.get_context());
  if (old_values && block->has_values && kept > 0) std::memcpy(fresh.get(), storage.data(), kept);
  storage.set_data_ptr(std::move(fresh));
  storage.set_nbytes(bytes);
}

std::uint64_t live_block_count() {
  std::scoped_lock lock(registry().mutex);
  return registry().count;
}

void for_each_block(const std::function<void(Block&)>& visit) {
  std::scoped_lock lock(registry().mutex);
  for (Block* block = registry().head; block; block = block->next) visit(*block);
}

std::uint64_t current_bytes(int device) {
  std::scoped_lock lock(registry().mutex);
  return registry().accounts.at(device).current;
}

std::uint64_t peak_bytes(int device) {
  std::scoped_lock lock(registry().mutex);
  return registry().accounts.at(device).peak;
}

void reset_peak(int device) {
  std::scoped_lock lock(registry().mutex);
  DeviceAccount& account = registry().accounts.at(device);
  account.peak = account.current;
}

}  // namespace bench::training
