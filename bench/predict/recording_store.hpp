// Recordings of training steps, kept from one question to the next: a prediction needs one step of
// the model as an operation graph, and any number of machines can be asked about it afterwards.
//
// Peers of a distributed job do the same work, so one recording of two ranks serves every world
// size; memory limits and machines are no part of a recording.
#pragma once

#include "bench/launch/job_runner.hpp"
#include "simulator/operation_graph.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench {

// The case whose step stands for `work` whatever the machine: two ranks, no memory limit, shapes
// only.
Case recorded_case(const Case& work);

class RecordingStore {
 public:
  using Graph = std::shared_ptr<const simulator::OperationGraph>;

  // `worker` is the program and its arguments; a rebuilt worker records anew. Nothing is started
  // before something is missing.
  RecordingStore(std::filesystem::path directory, std::vector<std::string> worker);

  // Makes sure that every case can be asked for; what is missing is recorded by one worker.
  // Throws MachineError when a step cannot be recorded, with the worker's reason.
  void prepare(const std::vector<Case>& cases);
  // The recorded step that stands for `work`.
  Graph graph(const Case& work);

  int recorded() const { return recorded_; }  // steps that this object had to record
  // The file of a recorded_case().
  std::filesystem::path path_of(const Case& recorded) const;

 private:
  void record(const std::vector<Case>& missing);

  std::filesystem::path directory_;
  std::vector<std::string> worker_;
  std::string worker_identity_;
  std::map<std::filesystem::path, Graph> loaded_;
  int recorded_ = 0;
};

// Where recordings are kept unless the user says otherwise: $BENCH_RECORDINGS, else below
// $XDG_CACHE_HOME or ~/.cache, else below results/.
std::filesystem::path default_recordings();

}  // namespace bench
