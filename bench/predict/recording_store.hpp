// Recordings of training steps, kept from one question to the next: a prediction needs one step of
// the model as an operation graph, and any number of machines can be asked about it afterwards.
//
// Peers of a distributed job do the same work, so one recording of two ranks serves every world
// size; memory limits and machines are no part of a recording. Where many batches are asked for,
// three recordings serve all of them.
#pragma once

#include "bench/launch/job_runner.hpp"
#include "simulator/batch_edit.hpp"
#include "simulator/operation_graph.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// The case whose step stands for `work` whatever the machine: two ranks, no memory limit, shapes
// only.
Case recorded_case(const Case& work);

class RecordingStore {
 public:
  using Graph = std::shared_ptr<const simulator::OperationGraph>;

  enum class Batches { edited, recorded };  // whether a batch may come from others

  // `worker` is the program and its arguments; a rebuilt worker records anew. Nothing is started
  // before something is missing.
  RecordingStore(std::filesystem::path directory, std::vector<std::string> worker,
                 Batches batches = Batches::edited);

  // Makes sure that every case can be asked for; what is missing is recorded by one worker, many
  // batches of one step as a series. Throws MachineError when a step cannot be recorded, with the
  // worker's reason.
  void prepare(const std::vector<Case>& cases);
  // Before many batches are asked for one by one.
  void prepare_series(const Case& work);
  // The recorded step that stands for `work`.
  Graph graph(const Case& work);

  int recorded() const { return recorded_; }  // steps that this object had to record
  // The file of a recorded_case().
  std::filesystem::path path_of(const Case& recorded) const;

 private:
  // Three recordings at other batches; without a series where they do not explain each other.
  struct Series {
    std::vector<Graph> graphs;
    std::optional<simulator::BatchSeries> series;
  };

  bool is_at_hand(const Case& recorded);
  std::vector<Case> missing_of(const std::vector<Case>& cases);
  void record_series(const std::vector<Case>& missing);
  void record(const std::vector<Case>& missing);
  Graph read(const Case& recorded);
  // Nullptr while one of its recordings is missing.
  const Series* series_of(const Case& recorded);
  Graph from_series(const Case& recorded);

  std::filesystem::path directory_;
  std::vector<std::string> worker_;
  std::string worker_identity_;
  Batches batches_;
  std::map<std::filesystem::path, Graph> loaded_;
  std::map<std::string, Series> series_;
  int recorded_ = 0;
};

// Where recordings are kept unless the user says otherwise: $BENCH_RECORDINGS, else below
// $XDG_CACHE_HOME or ~/.cache, else below results/.
std::filesystem::path default_recordings();

}  // namespace bench
