#include "bench/cli/pitfall_cost.hpp"

#include "bench/cli/predict_flags.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/plan/devices.hpp"
#include "bench/plan/machine_flag.hpp"
#include "bench/predict/prediction.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <optional>

namespace bench::cli {
namespace {

using diagnose::CostQuestion;
using diagnose::Workload;

// The flags of `bench predict` that differ between the step with the pitfall and the one without.
struct Pair {
  Arguments with;
  Arguments without;
  const char* cured;  // names the second step
};

std::string decimal(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

Pair pair_of(const CostQuestion& question) {
  const Workload& work = question.workload;
  const std::string loader = std::to_string(work.batch);
  const std::string everywhere = std::to_string(work.batch * work.gpus);
  if (question.rule == "DP001" || question.rule == "LIT004")
    return {{"--strategy", "dp", "--batch", loader},
            {"--strategy", "ddp", "--batch", loader},
            "with DDP and the same batch in all"};
  const Arguments ddp{"--strategy", "ddp", "--batch", everywhere};
  Pair pair{ddp, ddp, ""};
  const auto differ = [&](const Arguments& with, const Arguments& without, const char* cured) {
    pair.with.insert(pair.with.end(), with.begin(), with.end());
    pair.without.insert(pair.without.end(), without.begin(), without.end());
    pair.cured = cured;
    return pair;
  };
  if (question.rule == "DDP002")
    return differ({"--find-unused-parameters"}, {}, "without the search");
  if (question.rule == "DDP029")
    return differ({"--bucket-cap-mb", decimal(*work.bucket_cap_mb)}, {},
                  "with the default buckets");
  // An optimizer step of k micro-batches sees k times the loaders' batches.
  const std::string k = std::to_string(work.accumulation);
  const std::string step = std::to_string(work.batch * work.gpus * work.accumulation);
  pair.with = {"--strategy", "ddp", "--batch", step, "--accumulation", k};
  pair.without = pair.with;
  return differ({"--no-sync=false"}, {"--no-sync=true"}, "with no_sync()");
}

class Pricer {
 public:
  explicit Pricer(std::string machine) : machine_(std::move(machine)) {}

  std::vector<std::string> answer(const std::vector<CostQuestion>& questions) {
    std::vector<std::string> answers;
    for (const CostQuestion& question : questions) {
      try {
        answers.push_back(answer(question));
      } catch (const MachineError& error) {
        std::fprintf(stderr, "bench diagnose --cost: no prediction: %s\n", error.what());
        answers.resize(questions.size());
        break;
      }
    }
    return answers;
  }

 private:
  std::string answer(const CostQuestion& question) {
    const Pair pair = pair_of(question);
    const auto with = predict(question.workload, pair.with);
    const auto without = with ? predict(question.workload, pair.without) : std::nullopt;
    if (!with || !without || !(without->step_ms > 0)) return {};
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(),
                  "predicted on %s: a step of %s takes %.4g ms, and %.4g ms %s (%+.1f %%); "
                  "simulated, each within %.0f %%",
                  with->work().machine.c_str(), question.workload.model.c_str(), with->step_ms,
                  without->step_ms, pair.cured, 100 * (with->step_ms / without->step_ms - 1),
                  100 * with->error.relative);
    return text.data();
  }

  std::optional<Prediction> predict(const Workload& work, const Arguments& differing) {
    const std::string machine =
        machine_.empty() ? default_machine(static_cast<int>(work.gpus)) : machine_;
    Arguments arguments{"--model", work.model,     "--machine",
                        machine,   "--gpu-counts", std::to_string(work.gpus),
                        "--host",  "python"};
    arguments.insert(arguments.end(), differing.begin(), differing.end());
    const PredictRequest request =
        parse_predict_request(parse_flags(arguments, predict_flags(), "bench diagnose --cost"));
    const auto machines = load_machines(request);
    const auto all = questions(request, machines);
    if (all.size() != 1 || all.front().cannot) {
      const std::string why = all.empty() ? "the machine has fewer GPUs" : *all.front().cannot;
      std::fprintf(stderr, "bench diagnose --cost: no prediction on %s: %s\n", machine.c_str(),
                   why.c_str());
      return std::nullopt;
    }
    if (!store_) {
      const WorkerProgram worker = find_worker("");
      std::vector<std::string> program{worker.path.string()};
      program.insert(program.end(), worker.arguments.begin(), worker.arguments.end());
      store_.emplace(default_recordings(), std::move(program));
    }
    Prediction prediction = Predictor(request, machines, *store_).answer(all).front();
    if (!prediction.has_figures()) return std::nullopt;
    return prediction;
  }

  std::string machine_;
  std::optional<RecordingStore> store_;
};

}  // namespace

diagnose::CostPredictor pitfall_cost_predictor(const std::string& machine) {
  if (!machine.empty()) machine_of_flag(machine);  // a wrong name is told unasked
  const auto pricer = std::make_shared<Pricer>(machine);
  return [pricer](const std::vector<CostQuestion>& questions) { return pricer->answer(questions); };
}

}  // namespace bench::cli
