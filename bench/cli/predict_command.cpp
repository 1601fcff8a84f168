// bench predict: what a machine that is not here would do.
#include "bench/cli/commands.hpp"
#include "bench/cli/help.hpp"
#include "bench/cli/predict_flags.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/predict/prediction_html.hpp"
#include "bench/predict/prediction_json.hpp"
#include "bench/predict/prediction_text.hpp"
#include "report/run_files.hpp"

#include <algorithm>
#include <cstdio>

namespace bench::cli {
namespace {

// A worker is needed only for steps that were not recorded before.
std::vector<std::string> worker_of(const Typed& typed) {
  const WorkerProgram worker = find_worker(typed.value("--worker").value_or(""));
  std::vector<std::string> program{worker.path.string()};
  program.insert(program.end(), worker.arguments.begin(), worker.arguments.end());
  return program;
}

std::string rendered(const Typed& typed, const std::vector<Prediction>& predictions,
                     const std::vector<simulator::Machine>& machines,
                     const PredictRequest& request) {
  const std::string out = typed.value("--out").value_or("");
  std::string format = out.ends_with(".json") ? "json" : out.ends_with(".html") ? "html" : "text";
  if (typed.has("--format")) format = choice(typed, "--format", {"text", "json", "html"});
  if (format == "json") return predictions_json(predictions, machines, request);
  if (format == "html") return predictions_html(predictions, machines, request);
  return predictions_text(predictions, machines, request);
}

}  // namespace

std::string predict_help() {
  const Subcommand& row = *find_subcommand("predict");
  return subcommand_text(row) + flags_text(predict_flags());
}

int predict_command(const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::fputs(predict_help().c_str(), stdout);
    return kExitClean;
  }
  const Typed typed = parse_flags(arguments, predict_flags(), "bench predict");
  if (!typed.words.empty()) {
    throw UsageError("bench predict: unexpected '" + typed.words[0] + "'; expected flags");
  }
  const PredictRequest request = parse_predict_request(typed);
  const auto machines = load_machines(request);
  const auto all = questions(request, machines);
  // A sweep says what it could not answer beside what it could; nothing at all is an error.
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& q) { return !q.cannot; });
  if (!any) {
    throw UsageError("bench predict: nothing can be predicted: " +
                     (all.empty() ? std::string("nothing was asked") : *all.front().cannot));
  }
  RecordingStore store(typed.value("--recordings").value_or(default_recordings().string()),
                       worker_of(typed),
                       request.exact_recordings ? RecordingStore::Batches::recorded
                                                : RecordingStore::Batches::edited);
  Predictor predictor(request, machines, store);
  auto predictions = predictor.answer(all);
  if (typed.value("--max-batch").value_or("false") == "true") {
    for (Prediction& prediction : predictions) {
      if (!prediction.has_figures()) continue;
      prediction.max_batch_per_gpu = predictor.max_batch_per_gpu(prediction.question);
    }
  }
  const std::string text = rendered(typed, predictions, machines, request);
  const auto out = typed.value("--out");
  if (out) {
    report::write_file_atomically(*out, text);
  } else {
    std::fputs(text.c_str(), stdout);
  }
  return kExitClean;
}

}  // namespace bench::cli
