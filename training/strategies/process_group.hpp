// The process group of a `distributed` job: rendezvous over a TCP store, then NCCL for CUDA
// tensors, Gloo for CPU tensors, and the virtual GPUs' own backend for theirs.
#pragma once

#include "bench/launch/worker_protocol.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>

namespace bench::training {

// Longest wait for the other ranks to arrive and for one collective to end.
inline constexpr std::chrono::seconds kRendezvousTimeout{60};

// Connects to the store of the job; rank 0 serves it unless a launcher's agent does (torchrun).
// Throws MachineError when the address is in use or the other ranks do not come.
c10::intrusive_ptr<c10d::Store> connect_store(const RankContext& ranks,
                                              std::chrono::milliseconds timeout);

// A group over `store` for tensors on `device`. `prefix` keeps groups of one job apart.
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(
    const c10::intrusive_ptr<c10d::Store>& store, const RankContext& ranks, c10::Device device,
    const std::string& prefix);

}  // namespace bench::training
