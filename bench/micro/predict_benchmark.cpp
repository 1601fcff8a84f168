// What a whole answer of `bench predict` costs when the step is recorded: machine description, two
// graphs from disk, the single-device step, the job at its scale, memory through the allocator's
// model, and the text.
#include "bench/core/strategy.hpp"
#include "bench/micro/layered_graph.hpp"
#include "bench/predict/prediction_text.hpp"
#include "simulator/graph_io.hpp"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kResNet50Operations = 900;

PredictRequest request_of(int gpus) {
  PredictRequest request;
  request.machines = {"128xdgx-a100"};
  request.settings.scenario = "predict";
  request.settings.models = {"resnet50"};
  request.settings.strategies = {Strategy::distributed};
  request.settings.batches_per_gpu = {32};
  request.settings.gpu_count_rule = GpuCountRule::listed;
  request.settings.gpu_counts = {gpus};
  return request;
}

// A directory with the recordings that a question needs, as a worker would have left them.
class Recordings {
 public:
  explicit Recordings(const Question& question) {
    fs::create_directories(path_);
    const RecordingStore store(path_, {});
    write(store, question.work, simulator::layered_graph(kResNet50Operations, 2));
    write(store, question.single(), simulator::layered_graph(kResNet50Operations, 1));
  }
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;
  ~Recordings() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  static void write(const RecordingStore& store, const Case& work,
                    const simulator::OperationGraph& graph) {
    std::ofstream(store.path_of(recorded_case(work)), std::ios::binary)
        << simulator::encode_graph(graph);
  }
  fs::path path_ = fs::temp_directory_path() / ("predict-benchmark-" + std::to_string(::getpid()));
};

void PredictFromRecording(benchmark::State& state) {
  const PredictRequest request = request_of(static_cast<int>(state.range(0)));
  const Recordings recordings(questions(request, load_machines(request)).front());
  for (auto _ : state) {
    const auto machines = load_machines(request);
    RecordingStore store(recordings.path(), {});
    Predictor predictor(request, machines, store);
    const auto answer = predictor.answer(questions(request, machines));
    benchmark::DoNotOptimize(predictions_text(answer, machines, request).size());
  }
}
BENCHMARK(PredictFromRecording)->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench

BENCHMARK_MAIN();
