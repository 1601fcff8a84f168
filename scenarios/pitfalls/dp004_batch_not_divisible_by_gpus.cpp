#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/gpu_tests.hpp"
#include "scenarios/pitfalls/ranks/id_counts.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// DataParallel's shards: torch.chunk gives pieces of ceil(batch / gpus).
std::vector<std::int64_t> shards_of(std::int64_t batch, std::int64_t gpus) {
  const std::int64_t piece = (batch + gpus - 1) / gpus;
  std::vector<std::int64_t> out;
  for (std::int64_t rest = batch; rest > 0; rest -= piece) out.push_back(std::min(piece, rest));
  return out;
}

constexpr std::int64_t kMostGpus = 64;

}  // namespace

namespace {

// Every launch line there is starts one process a GPU: the branch with DataParallel is not taken.
bool only_started_as_several(const Program& program) {
  const auto& launches = program.launches();
  return !launches.empty() && std::none_of(launches.begin(), launches.end(), [](const auto& line) {
    return line.launcher == diagnose::Launcher::python ||
           line.launcher == diagnose::Launcher::srun || line.launcher == diagnose::Launcher::other;
  });
}

// model.eval() and no step of training anywhere: whatever a loader is called, it feeds an
// evaluation.
bool trains_nothing(const Program& program) {
  for (const char* word : {"backward", "step", "fit", "train", "Trainer"})
    if (!program.calls_named(word).empty()) return false;
  return program.training_loops().empty() && !program.calls_named("eval").empty();
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "0,1" in the branch that does without this wrapper.
bool is_count_of_other_branch(const Program& program, const Wrap& wrap) {
  const auto settings = facts::settings_of(program, "CUDA_VISIBLE_DEVICES");
  return !settings.empty() && never_both(program, settings.front(), wrap.call.ref());
}

// train(loader) in the function that makes it.
bool handed_on(const Program& program, const CallRef& loader, std::string_view name) {
  const auto function = program.enclosing_function(loader.ref());
  const auto calls = facts::calls_in({function.module, function.function->body});
  return !name.empty() && std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    if (call.call->name == "len" || call.call->name == "enumerate" || call.call->name == "tqdm")
      return false;
    const Ref arguments = call.ref().child(diagnose::Field::arguments);
    const auto& tree = call.module->tree();
    if (!arguments) return false;
    for (auto at = tree[arguments.node].first_child; at != diagnose::kNoNode;
         at = tree[at].next_sibling)
      if (facts::contains(tree.text(at), name)) return true;
    return false;
  });
}

// return loader, size, and not what is computed from it.
bool gives_out(Ref value, const CallRef& loader, std::string_view name) {
  const auto& tree = value.module->tree();
  for (diagnose::NodeId at = value.node; at < tree[value.node].last; ++at) {
    if (at == loader.call->node) return true;
    if (tree[at].kind == Kind::call)
      at = tree[at].last - 1;  // len(loader)
    else if (tree[at].kind == Kind::identifier && tree.text(at) == name)
      return true;
  }
  return false;
}

// The first name of batch[0].mean(), empty where there is none.
Ref root_of(Ref expression) {
  while (expression.kind() == Kind::attribute || expression.kind() == Kind::subscript ||
         expression.kind() == Kind::call)
    expression = expression.with(expression.module->tree()[expression.node].first_child);
  return expression.kind() == Kind::identifier ? expression : Ref{};
}

// What is called belongs to a library, to Python, or to what the function has made itself: no model
// that it was given, or that stands elsewhere.
bool is_plain_call(const Program& program, const CallRef& call) {
  const Ref root = root_of({call.module, call.call->function});
  if (!root) return false;
  if (!call.module->qualified(root.node).empty()) return true;
  for (const std::string_view name :
       {"enumerate", "float", "int", "len", "max", "min", "print", "range", "str", "sum", "zip"})
    if (call.call->function == root.node && root.text() == name) return true;
  const auto function = program.enclosing_function(root);
  const auto& defs = call.module->defs_of(root.text(), false);
  return call.call->function != root.node && !facts::is_parameter(program, root) &&
         std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
           return call.module->defs()[index].scope == function.function->node;
         });
}

// for x, y in loader: total += x.mean(), in the function that makes the loader and keeps it: the
// statistics of a data set.
bool feeds_no_model(const Program& program, const CallRef& given) {
  const CallRef loader = diagnose::made_at(program, given);
  const auto function = program.enclosing_function(loader.ref());
  if (!function || function.function->owner_class != diagnose::kNoNode) return false;
  const std::string_view name = program.assigned_name(loader.ref());
  for (const diagnose::NodeId value : function.function->returns)
    if (gives_out(loader.ref().with(value), loader, name)) return false;
  bool consumed = false;
  for (const diagnose::NodeId node : loader.module->loops()) {
    const Ref loop = loader.ref().with(node);
    if (loop.kind() != Kind::for_statement || program.enclosing_function(loop) != function)
      continue;
    const auto loaders = loaders_of(program, loop.child(diagnose::Field::right));
    if (std::none_of(loaders.begin(), loaders.end(),
                     [&](const CallRef& each) { return each.call == given.call; }))
      continue;
    consumed = true;
    const auto calls = facts::calls_in(loop.child(diagnose::Field::body));
    if (!std::all_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return is_plain_call(program, call); }))
      return false;
  }
  return consumed && !handed_on(program, loader, name);
}

// A loader whose batches a model is trained on under DataParallel.
bool feeds_training(const Program& program, const CallRef& loader) {
  // A sampler for ranks: this loader is of the runs with DistributedDataParallel.
  return !is_evaluation_loader(program, loader) && !sampler_of(program, loader) &&
         facts::is_reachable(program, loader.ref()) && !feeds_no_model(program, loader);
}

// CUDA_VISIBLE_DEVICES=0,1 python train.py --batch-size 16: where the number of GPUs is known from,
// the option's default is not taken.
bool is_given_in_line(const Program& program, Ref batch, std::int64_t gpus) {
  const std::string_view option = diagnose::last_word(batch);
  const auto gives = [&](const diagnose::LaunchWord& word) {
    std::string name = word.text.substr(0, word.text.find('='));
    std::replace(name.begin(), name.end(), '-', '_');
    return name.starts_with("__") && name.substr(2) == option;
  };
  const auto divides = [&](const std::vector<diagnose::LaunchWord>& words, std::size_t at) {
    const std::string& word = words[at].text;
    const std::size_t equals = word.find('=');
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : at + 1 < words.size()     ? words[at + 1].text
                                                          : std::string();
    const bool is_number = !value.empty() && value.size() < 9 &&
                           std::all_of(value.begin(), value.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; });
    return !is_number || std::stoll(value) % gpus == 0;
  };
  const auto& launches = program.launches();
  return !option.empty() && std::any_of(launches.begin(), launches.end(), [&](const auto& line) {
    const auto& words = line.script_arguments;
    const auto given = std::find_if(words.begin(), words.end(), gives);
    return line.visible_devices() == gpus && given != words.end() &&
           divides(words, static_cast<std::size_t>(given - words.begin()));
  });
}

// --batch-size 16 in every line that starts the script, whatever the option's default is.
bool is_divided_as_launched(const Program& program, Ref batch, std::int64_t gpus) {
  if (is_given_in_line(program, batch, gpus)) return true;
  const auto values = facts::values_as_launched(program, batch);
  return !values.empty() && std::all_of(values.begin(), values.end(), [&](const Value& value) {
    return value.is_integer() && value.integer % gpus == 0;
  });
}

// However many GPUs there are, one sample is for one of them.
void check_batches_of_one(const Program& program, Report& report) {
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const Ref argument = loader.argument(1, "batch_size");
    const Value batch = program.evaluate(argument);
    if (!batch.is_integer() || batch.integer != 1 || batch.is_default ||
        !feeds_training(program, loader))
      continue;
    report
        .at(argument, Confidence::certain,
            "a batch of 1 under DataParallel goes to one GPU: all others stay idle")
        .help = "Use a multiple of the number of GPUs as batch size.";
  }
}

}  // namespace

void check_batch_not_divisible_by_gpus(const Program& program, Report& report) {
  if (only_started_as_several(program) || trains_nothing(program)) return;
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel || cuts_batches_itself(program, wrap) ||
        is_made_for_one_gpu(program, wrap))
      continue;
    const auto ids = facts::device_ids(program, wrap.call);
    // Of ids that are computed the number may be known before their values are.
    auto gpus = count_of_ids(program, wrap.call.argument(1, "device_ids"));
    if (!gpus && !ids.empty()) gpus = static_cast<std::int64_t>(ids.size());
    if (!gpus && !wrap.call.argument(1, "device_ids") && !is_count_of_other_branch(program, wrap))
      gpus = facts::visible_gpus(program);
    if (!gpus && !wrap.call.argument(1, "device_ids") &&
        facts::is_made_for_several_gpus(program, wrap))
      check_batches_of_one(program, report);
    if (!gpus || *gpus < 2 || *gpus > kMostGpus) continue;
    for (const CallRef& loader : program.calls(Api::data_loader)) {
      if (!feeds_training(program, loader)) continue;
      const Ref argument = loader.argument(1, "batch_size");
      const Value batch = program.evaluate(argument);
      if (!batch.is_integer() || batch.integer <= 0 || batch.integer % *gpus == 0) continue;
      if (batch.is_default && is_divided_as_launched(program, argument, *gpus)) continue;
      const auto shards = shards_of(batch.integer, *gpus);
      std::string list;
      for (const std::int64_t shard : shards)
        list += (list.empty() ? "" : ", ") + std::to_string(shard);
      const auto idle = *gpus - static_cast<std::int64_t>(shards.size());
      std::string message = "a batch of " + std::to_string(batch.integer) + " on " +
                            std::to_string(*gpus) + " GPUs is cut into shards of " + list;
      if (idle > 0)
        message +=
            ": " + std::to_string(idle) + (idle == 1 ? " GPU stays" : " GPUs stay") + " idle";
      Finding& finding =
          report.at(argument, batch.is_default ? Confidence::likely : Confidence::certain,
                    std::move(message));
      finding.help = "Use a multiple of " + std::to_string(*gpus) +
                     " as batch size, and drop_last=True for training.";
      finding.evidence.emplace_back("shards", list);
      finding.evidence.emplace_back("batch_size", std::to_string(batch.integer));
      finding.evidence.emplace_back("gpus", std::to_string(*gpus));
    }
  }
}

namespace {

// GPU-passes without a sample, and seats that larger shards leave empty on the other GPUs: the
// forward pass ends with its largest shard.
double unused_share(const Json& shards, std::size_t gpus) {
  std::int64_t largest = 0;
  std::int64_t samples = 0;
  for (const Json& shard : shards) {
    largest = std::max(largest, shard.get<std::int64_t>());
    samples += shard.get<std::int64_t>();
  }
  const double seats = static_cast<double>(largest) * static_cast<double>(gpus);
  return seats > 0 ? 1 - static_cast<double>(samples) / seats : 0;
}

}  // namespace

void judge_batch_not_divisible_by_gpus(const RunEvidence& run, RunReport& report) {
  const Json* shards = run.first("shards");
  if (shards == nullptr || run.gpus() < 2 || unused_share(*shards, run.gpus()) == 0) return;
  const std::size_t idle = run.gpus() - shards->size();
  std::string message = "batches of " + figure(run.number("batch")) + " ran on " +
                        std::to_string(shards->size()) + " of " + std::to_string(run.gpus()) +
                        " GPUs, in shards of " + listed(*shards);
  if (idle > 0) message += ": " + std::to_string(idle) + (idle == 1 ? " GPU" : " GPUs") + " idle";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help = "Use a multiple of " + std::to_string(run.gpus()) +
                 " as batch size, and drop_last=True for training.";
  finding.evidence.emplace_back("shards", listed(*shards));
}

Price price_batch_not_divisible_by_gpus(const RunEvidence& broken, const RunEvidence& cured) {
  const Json* wrong = broken.first("shards");
  const Json* right = cured.first("shards");
  Price price;
  if (wrong == nullptr || right == nullptr) return price;
  const double unused = unused_share(*wrong, broken.gpus());
  price.reproduced = unused > 0;
  price.gone = unused_share(*right, cured.gpus()) == 0;
  price.cost = 100 * unused;
  price.unit = "% of the GPUs' time idle";
  price.seen = "silent: shards of " + listed(*wrong) + " on " + std::to_string(broken.gpus()) +
               " GPUs, " + std::to_string(wrong->size()) + " of them used";
  return price;
}

}  // namespace bench::pitfalls
