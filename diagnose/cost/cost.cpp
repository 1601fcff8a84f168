#include "diagnose/cost/cost.hpp"

#include "bench/core/model_catalog.hpp"
#include "scenarios/pitfalls/laboratory/laboratory_costs.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace bench::diagnose {
namespace {

constexpr std::string_view kCost = "cost";
constexpr std::string_view kNotPredicted = "cost_not_predicted";  // why, with --cost

// Rules whose cost follows from the model, the batch and the GPUs.
constexpr auto kPriced =
    std::to_array<std::string_view>({"DP001", "DP004", "DDP002", "DDP010", "DDP029", "LIT004"});

bool is_priced(const Finding& finding) {
  return finding.trial != kNoTrial &&
         std::find(kPriced.begin(), kPriced.end(), finding.rule) != kPriced.end();
}

std::string* evidence(Finding& finding, std::string_view key) {
  for (auto& [name, value] : finding.evidence)
    if (name == key) return &value;
  return nullptr;
}

void set_evidence(Finding& finding, std::string_view key, std::string value) {
  if (std::string* known = evidence(finding, key)) {
    *known = std::move(value);
  } else {
    finding.evidence.emplace_back(key, std::move(value));
  }
}

std::string decimal(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

void note_workload(Finding& finding, const Workload& work) {
  const bool says_split = evidence(finding, "shards") != nullptr;  // with its batch and GPUs
  if (!work.model.empty()) set_evidence(finding, "model", work.model);
  if (!work.own_class.empty()) set_evidence(finding, "model_class", work.own_class);
  if (work.batch > 0 && !says_split)
    set_evidence(finding, "batch_size", std::to_string(work.batch));
  if (work.gpus > 0 && !says_split) set_evidence(finding, "gpus", std::to_string(work.gpus));
  if (work.accumulation > 0 && finding.rule == "DDP010")
    set_evidence(finding, "accumulation", std::to_string(work.accumulation));
  if (work.bucket_cap_mb && finding.rule == "DDP029")
    set_evidence(finding, "bucket_cap_mb", decimal(*work.bucket_cap_mb));
}

// The workload that attach_costs() noted in a finding.
Workload noted_workload(Finding& finding) {
  Workload work;
  const auto number = [&](std::string_view key) {
    const std::string* text = evidence(finding, key);
    return text == nullptr ? 0.0 : std::strtod(text->c_str(), nullptr);
  };
  if (const std::string* model = evidence(finding, "model")) work.model = *model;
  if (const std::string* own = evidence(finding, "model_class")) work.own_class = *own;
  work.batch = static_cast<std::int64_t>(number("batch_size"));
  work.gpus = static_cast<std::int64_t>(number("gpus"));
  work.accumulation = static_cast<std::int64_t>(number("accumulation"));
  if (number("bucket_cap_mb") > 0) work.bucket_cap_mb = number("bucket_cap_mb");
  return work;
}

// The forward pass ends with the largest shard: seats that others leave empty are idle time. The
// rule itself knows batch and GPUs, of the wrapper that it speaks of.
std::string idle_share(Finding& finding) {
  const Workload work = noted_workload(finding);
  if (evidence(finding, "shards") == nullptr || work.gpus < 2 || work.batch < 1) return {};
  const std::int64_t largest = (work.batch + work.gpus - 1) / work.gpus;
  const double seats = static_cast<double>(largest * work.gpus);
  const double idle = 100 * (1 - static_cast<double>(work.batch) / seats);
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "computed: %.1f %% of the GPUs' time in a pass is idle",
                idle);
  return text.data();
}

std::string needless_reductions(const Workload& work) {
  const ModelEntry* model = find_model(work.model);
  if (model == nullptr || work.accumulation < 2) return {};
  constexpr double kBytesOfFloat = 4;
  const double mib = static_cast<double>(model->parameter_count) * kBytesOfFloat / (1 << 20);
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "computed: %lld of the %lld reductions of a step are wasted, %.0f MiB of gradients "
                "each (%s)",
                static_cast<long long>(work.accumulation - 1),
                static_cast<long long>(work.accumulation), mib, work.model.c_str());
  return text.data();
}

std::string computed_cost(Finding& finding, const Workload& work) {
  if (finding.rule == "DP004") return idle_share(finding);
  if (finding.rule == "DDP010") return needless_reductions(work);
  return {};
}

bool can_be_predicted(const Finding& finding, const Workload& work) {
  if (work.model.empty() || work.batch < 1 || work.gpus < 2 || finding.rule == "DP004")
    return false;
  if (finding.rule == "DDP010") return work.accumulation > 1;
  if (finding.rule == "DDP029") return work.bucket_cap_mb.value_or(0) > 0;
  if (finding.rule == "LIT004") return finding.message.starts_with("strategy=\"dp\"");
  return is_priced(finding);
}

// What a prediction lacks; empty when nothing does, or when there is none for this finding.
std::string missing_for(const Finding& finding, const Workload& work) {
  if (finding.rule == "DP004") return {};  // computed, or not decided
  if (finding.rule == "LIT004" && !finding.message.starts_with("strategy=\"dp\"")) return {};
  if (!work.own_class.empty())
    return "the model is " + work.own_class +
           ", a class of the script: models of `bench list models` are predicted here, others by "
           "`bench predict --model FILE.pt`";
  if (work.model.empty())
    return "the model is not known: the script builds none, or several, of `bench list models`";
  if (work.batch < 1) return "the batch size of the training loader is not known";
  if (work.gpus < 1) return "the number of GPUs is not known: --gpus N, or --launch COMMAND";
  if (work.gpus < 2) return "there is one GPU";
  if (finding.rule == "DDP010" && work.accumulation < 2)
    return "the number of micro-batches of a step is not known";
  return {};
}

std::string key_of(const CostQuestion& question) {
  const Workload& work = question.workload;
  return question.rule + " " + work.model + " " + std::to_string(work.batch) + " " +
         std::to_string(work.gpus) + " " + std::to_string(work.accumulation) + " " +
         decimal(work.bucket_cap_mb.value_or(0));
}

}  // namespace

void attach_costs(const Program& program, std::vector<Finding>& findings) {
  std::optional<Workload> work;
  for (Finding& finding : findings) {
    std::string cost;
    if (is_priced(finding)) {
      if (!work) work = workload_of(program);
      note_workload(finding, *work);
      cost = computed_cost(finding, *work);
    }
    if (cost.empty()) cost = pitfalls::laboratory_cost(finding.name, finding.trial);
    if (!cost.empty()) set_evidence(finding, kCost, std::move(cost));
  }
}

void predict_costs(std::vector<Finding>& findings, const CostPredictor& predict) {
  std::vector<CostQuestion> questions;
  std::map<std::string, std::size_t> asked;
  std::vector<std::pair<Finding*, std::size_t>> waiting;
  for (Finding& finding : findings) {
    if (!is_priced(finding)) continue;
    CostQuestion question{finding.rule, noted_workload(finding)};
    if (!can_be_predicted(finding, question.workload)) {
      if (std::string missing = missing_for(finding, question.workload); !missing.empty())
        set_evidence(finding, kNotPredicted, std::move(missing));
      continue;
    }
    const auto [at, fresh] = asked.try_emplace(key_of(question), questions.size());
    if (fresh) questions.push_back(std::move(question));
    waiting.emplace_back(&finding, at->second);
  }
  if (questions.empty()) return;
  const std::vector<std::string> answers = predict(questions);
  for (const auto& [finding, index] : waiting)
    if (index < answers.size() && !answers[index].empty())
      set_evidence(*finding, kCost, answers[index]);
}

}  // namespace bench::diagnose
