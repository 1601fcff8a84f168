#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/files/cpu_copies.hpp"
#include "scenarios/pitfalls/files/restored.hpp"
#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/setting_path.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::RankTest;
using diagnose::Source;

namespace {

// The call, what is taken of it (torch.load(path)["model"]), what names that, and the option that
// the path comes from.
std::string words_around(const Program& program, const CallRef& load) {
  const auto& tree = load.module->tree();
  Ref taken = load.ref();
  while (tree[tree[taken.node].parent].kind == diagnose::Kind::subscript &&
         tree.child(tree[taken.node].parent, diagnose::Field::value) == taken.node)
    taken = taken.with(tree[taken.node].parent);
  std::string text =
      facts::lowered(taken.text()) + " " + facts::lowered(program.assigned_name(taken));
  for (const auto& source : program.sources(load.argument(0, "f")))
    if (source.how != Source::How::parameter) text += " " + facts::lowered(source.ref.text());
  constexpr std::string_view kOption = "weights_only";  // says nothing about the file
  for (std::size_t at = text.find(kOption); at != std::string::npos; at = text.find(kOption, at))
    text.erase(at, kOption.size());
  return text;
}

bool is_checkpoint(const Program& program, const CallRef& load, std::string_view words) {
  // Bytes that came from another rank, not a file of a past run.
  for (const auto& source : program.sources(load.argument(0, "f")))
    if (facts::contains(source.ref.text(), "BytesIO")) return false;
  if (holds_any(words, {"ckpt", "checkpoint", "model", "state", "weight", "resume", "pretrain",
                        "snapshot", "best", "optim"}))
    return true;
  const auto& tree = load.module->tree();
  return facts::contains(tree.text(statement_of(load.ref()).node), "load_state_dict") ||
         is_whole_module(program, load) || is_restored(program, load);
}

// The state of a scheduler or of a GradScaler is numbers: there is nothing to put on a GPU.
bool holds_no_tensors(const Program& program, const CallRef& load) {
  for (const CallRef& restore : program.calls_named("load_state_dict")) {
    const Ref object = restore.receiver();
    const CallRef given = program.made_by(restore.positional(0));
    if (!object || !given || given.ref() != load.ref()) continue;
    return says_any(diagnose::last_word(object), {"scheduler", "sched", "scaler"}) &&
           !says_any(diagnose::last_word(object), {"upscaler", "model", "net"});
  }
  // Restored out of sight, or by parts: what it is called. An upscaler is a model.
  const auto words = words_of_name(program.assigned_name(load.ref()));
  return !words.empty() && std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "scheduler" || word == "sched" || word == "scaler" || word == "rng";
  }) && std::none_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "model" || word == "net" || word == "unet";
  });
}

// Keys that a training run writes beside the weights: the file is its own, and was on its GPU.
bool restores_a_run(const Program& program, const CallRef& load) {
  const std::string_view name = program.assigned_name(load.ref());
  const Ref statement = statement_of(load.ref());
  if (holds_any(facts::lowered(statement.text()), {"optimizer", "optim."})) return true;
  if (name.empty()) return false;
  const FunctionRef function = program.enclosing_function(load.ref());
  const auto& tree = load.module->tree();
  const std::string_view text =
      function ? tree.text(function.function->body) : std::string_view(tree.source());
  for (const std::string_view key : {"optim", "epoch", "step", "iter", "scaler"})
    for (const std::string_view quote : {"['", "[\"", ".get('", ".get(\""})
      if (facts::contains(text, std::string(name) + std::string(quote) + std::string(key)))
        return true;
  return false;
}

// torch.load("model.ckpt")["state_dict"]: what Lightning's own checkpoints look like, which hold
// the tensors as the ranks had them.
bool holds_a_lightning_state(const CallRef& load) {
  const std::string_view text = statement_of(load.ref()).text();
  return facts::contains(text, "ckpt") &&
         (facts::contains(text, "[\"state_dict\"]") || facts::contains(text, "['state_dict']"));
}

// The text from the load on, up to where the function loads another file.
std::string_view text_below(const Program& program, const CallRef& load) {
  const auto& tree = load.module->tree();
  const FunctionRef function = program.enclosing_function(load.ref());
  const auto begin = tree[load.call->node].begin;
  auto end = function ? tree[function.function->body].end
                      : static_cast<std::uint32_t>(tree.source().size());
  for (const CallRef& other : program.calls(Api::torch_load))
    if (other.module == load.module && other.call->node > load.call->node &&
        program.enclosing_function(other.ref()) == function &&
        other.argument(0, "f").text() != load.argument(0, "f").text())
      end = std::min(end, tree[other.call->node].begin);
  return std::string_view(tree.source()).substr(begin, end - begin);
}

// The keys of the file may begin with "module.", seven letters that are cut off: the state of a
// wrapper, which was on its GPU.
bool is_of_a_wrapper(const Program& program, const CallRef& load) {
  return holds_any(text_below(program, load),
                   {".replace('module.", ".replace(\"module.", ".removeprefix('module.",
                    ".removeprefix(\"module.", "[7:]", "[len('module.", "[len(\"module.",
                    ".startswith('module.", ".startswith(\"module.", ".split('module.",
                    ".split(\"module.", "== 'module.", "== \"module."});
}

bool says_pretrained(std::string_view text) {
  return says_any(text, {"pretrain", "pre_train", "backbone"});
}

// cfg.model.pretrained, which every config file of the project gives the name of published weights.
bool is_configured_as_published(const Program& program, Ref setting) {
  const facts::SettingPath path = facts::setting_path(program, setting);
  const auto shipped = path ? program.shipped(path.key()) : std::vector<diagnose::ShippedValue>{};
  return !shipped.empty() && std::all_of(shipped.begin(), shipped.end(), [](const auto& each) {
    return each.value.is_string() && says_pretrained(each.value.string);
  });
}

// The names of networks: weights that someone published, or the checkpoints of a run, which have
// them as well. What an option calls pretrained comes from anywhere.
bool is_named_published(const Program& program, Ref path, const std::string& text) {
  if (holds_any(text, {"imagenet", "resnet", "vgg", "clip", "bert", "hub"}))
    return !holds_any(text, {"ckpt", "checkpoint", "resume", "best", "last", "epoch"});
  const auto& sources = program.sources(path);
  return std::any_of(sources.begin(), sources.end(),
                     [](const Source& source) {
                       return source.ref.kind() == diagnose::Kind::string &&
                              says_pretrained(source.ref.text());
                     }) ||
         (sources.size() == 1 && is_configured_as_published(program, sources.front().ref));
}

bool is_of_past(std::string_view words) {
  return holds_any(words, {"resume", "best", "last", "latest"});
}

bool is_named_checkpoint(std::string_view words) {
  return is_of_past(words) || holds_any(words, {"ckpt", "checkpoint", "snapshot"});
}

// A run has written the file, and it is more than its best thresholds or last indices.
bool says_more_than_checkpoint(std::string_view words) {
  return is_of_past(words) &&
         holds_any(words, {"ckpt", "checkpoint", "snapshot", "model", "weight", "state", "resume"});
}

// if pretrained: model.load_state_dict(torch.load("model_data/patches.pth")), and not a path that
// an option gives: if args.pretrained: torch.load(args.pretrained).
bool is_asked_for_pretrained(const Program& program, const CallRef& load) {
  const std::string_view path = load.argument(0, "f").text();
  return program.under(load.ref(), [&](Ref condition, bool holds) {
    return holds && facts::contains(facts::lowered(condition.text()), "pretrain") &&
           !facts::contains(condition.text(), path);
  });
}

// Weights that someone published are on the CPU as a rule; what a run of the program wrote is on
// its GPU, and what an option names may be. Of the former the finding is a note.
bool is_of_a_run(const Program& program, const CallRef& load, std::string_view words) {
  if (restores_a_run(program, load) || is_of_a_wrapper(program, load)) return true;
  if (is_whole_module(program, load) && pickles_modules(program)) return true;
  if (is_saved_there(program, load.argument(0, "f"))) return true;
  const Ref file = load.argument(0, "f");
  if (is_named_published(program, file, facts::lowered(file.text())) ||
      (is_asked_for_pretrained(program, load) && !is_named_checkpoint(words)))
    return false;
  // Part of a model that loads itself where it is made.
  const auto cls = program.enclosing_class(load.ref());
  return !cls || !program.derives_from(cls, Api::module_class);
}

// What was loaded is restored, or is the model; the file of a past run goes to its GPU as a whole,
// whatever is taken from it. Cached samples have no device.
bool becomes_a_model(const Program& program, const CallRef& load, std::string_view words) {
  return is_restored(program, load) || is_whole_module(program, load) ||
         says_more_than_checkpoint(words) || is_filled_in(program, load);
}

// DDP(model, device_ids=[args.gpu]): only GPUs have ids.
bool names_devices(const Program& program) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return wrap.kind == diagnose::Wrapper::ddp &&
           program.written(wrap.call.keyword("device_ids")).kind() == diagnose::Kind::list;
  });
}

// DDP moves gradients between GPUs wherever nothing speaks of the backend for CPUs.
bool works_on_gpus(const Program& program) {
  return program.mentions("cuda") || program.uses(Api::set_device) || facts::uses_nccl(program) ||
         names_devices(program) || (program.has_ddp() && !program.mentions("gloo"));
}

// Accelerate starts the processes, whatever engine stands behind it: each of them loads.
bool is_trained_by_accelerate(const Program& program) {
  const auto prepares = program.calls_named("prepare");
  return program.uses(Api::accelerator) && !wraps_by_itself(program) &&
         std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
           return is_of_accelerator(program, prepare) &&
                  (prepared_by(prepare, 1) || prepare.call->name == "prepare_optimizer");
         });
}

// `if args.gpu is None`: the branch of a script that is not bound to a GPU.
bool without_gpu(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    return holds && facts::contains(text, " is None") && facts::contains(text, "gpu");
  });
}

// else of `if device is not None`, in a function that every call gives a device.
bool is_given_device_by_all(const Program& program, const CallRef& load) {
  const auto function = program.enclosing_function(load.ref());
  if (!function || program.call_sites(function).empty()) return false;
  const auto asks = [&](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    const std::string_view name = text.substr(0, text.find(' '));
    const bool is_none = text.substr(name.size()) == " is None";
    if (!(is_none ? guard.holds : !guard.holds && text.substr(name.size()) == " is not None") ||
        !says_any(name, {"device", "location", "gpu"}))
      return false;
    const Ref asked =
        guard.condition.with(guard.condition.module->tree().child_at(guard.condition.node, 0));
    if (!facts::is_kept_parameter(function, asked)) return false;
    const auto& sites = program.call_sites(function);
    return std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
      const Ref given = facts::given_for(function, name, site);
      return given && program.evaluate(given).type != diagnose::Value::Type::none &&
             !facts::is_parameter(program, given);
    });
  };
  const auto guards = program.guards(load.ref());
  return std::any_of(guards.begin(), guards.end(), asks);
}

// except: state = torch.load(path), where the try has loaded the same file to a device of its own:
// the ranks come by only when that has failed.
bool is_after_a_mapped_attempt(const Program& program, const CallRef& load) {
  const auto& tree = load.module->tree();
  const diagnose::NodeId handler = tree.ancestor(load.call->node, diagnose::Kind::except_clause);
  if (handler == diagnose::kNoNode) return false;
  const diagnose::NodeId attempt = tree[handler].parent;
  const auto loads = program.calls(Api::torch_load);
  // Given away, as by fill_in(model, torch.load(path)): the state did not fit, and was there.
  const std::string_view name = program.assigned_name(load.ref());
  const auto calls = facts::calls_in(load.ref().with(handler));
  const bool is_given_away = std::any_of(calls.begin(), calls.end(), [&](const CallRef& taker) {
    const auto given = facts::arguments_of(taker);
    return taker.call->name != "load_state_dict" &&
           std::any_of(given.begin(), given.end(), [&](Ref value) {
             return value == load.ref() || (!name.empty() && value.text() == name);
           });
  });
  if (is_given_away) return false;
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& other) {
    return other.module == load.module && other.call->node < handler &&
           tree.contains(attempt, other.call->node) && other.argument(1, "map_location") &&
           other.argument(0, "f").text() == load.argument(0, "f").text();
  });
}

// engine.load_state_dict(torch.load(path)) after engine = TRTModule(): what TensorRT has built for
// one GPU, and no state of a run.
bool is_of_tensorrt(const Program& program, const CallRef& load) {
  const CallRef use = program.as_call(
      statement_of(load.ref())
          .with(load.module->tree().ancestor(load.call->node, diagnose::Kind::call)));
  if (!use || use.call->name != "load_state_dict" || !use.receiver()) return false;
  const CallRef made = program.made_by(use.receiver());
  return made && made.call->name.find("TRT") != std::string_view::npos;
}

// What was on a GPU goes to that of the rank; counters and states of generators stay on the CPU.
constexpr const char* kToOwnGpu =
    "map_location=lambda storage, place: storage.cuda() if place.startswith(\"cuda\") else storage";

// map_location=None is as good as none.
bool has_map_location(const Program& program, const CallRef& load) {
  const Ref given = load.argument(1, "map_location");
  return given && program.written(given).kind() != diagnose::Kind::none_literal;
}

// map_location="cuda:0" in every rank, each of which has a GPU of its own for its model.
bool maps_to_one_gpu(const Program& program, const CallRef& load) {
  // f"cuda:{gpu}" where there are ranks, "cuda:0" where there are none.
  const auto& sources = program.sources(load.argument(1, "map_location"));
  if (sources.size() != 1 || facts::contains(sources.front().ref.text(), " if ")) return false;
  return !facts::only_in_a_side_mode(program, load.ref()) &&
         facts::cuda_index(program, load.argument(1, "map_location")).value_or(-1) >= 0 &&
         !program.mentions("CUDA_VISIBLE_DEVICES");
}

// else of `if isinstance(self.model, PreTrainedModel)`, as in the Trainer of Hugging Face, where
// every model of the program is such a one.
bool is_for_other_models(const Program& program, const CallRef& load) {
  return !program.calls_named("from_pretrained").empty() &&
         program.under(load.ref(), [](Ref condition, bool holds) {
           return !holds && facts::contains(condition.text(), "isinstance(") &&
                  facts::contains(condition.text(), "PreTrainedModel");
         });
}

// if path is None: path = download(); torch.load(path): by then there is one.
bool is_given_between(Ref first, Ref last, std::string_view name) {
  const auto& defs = first.module->defs();
  return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
    return def.target > first.node && def.target < last.node &&
           first.module->text(def.target) == name &&
           !facts::exclusive(first.with(def.target), last);
  });
}

// elif test: torch.load(pretrained), below `if pretrained is not None`: there is no file to load.
bool has_no_path(const Program& program, const CallRef& load) {
  const Ref path = load.argument(0, "f");
  if (!path || path.kind() == diagnose::Kind::string) return false;
  const std::string name(path.text());
  const auto guards = program.guards(load.ref());
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    const bool is_empty = guard.holds ? text == name + " is None" || text == "not " + name
                                      : text == name + " is not None" || text == name;
    return is_empty && guard.condition.module == load.module &&
           !is_given_between(guard.condition, load.ref(), name);
  });
}

}  // namespace

void check_load_without_map_location(const Program& program, Report& report) {
  const auto loads = program.calls(Api::torch_load);
  if (loads.empty()) return;
  // Accelerate takes the GPUs that there are, without a word in the script.
  const bool lightning = has_lightning_ranks(program);
  const bool prepared = accelerate_wraps(program) || is_trained_by_accelerate(program) ||
                        lightning || has_trainer_ranks(program);
  if (!prepared && !has_ranks_of_its_own(program)) return;
  if (!prepared && !works_on_gpus(program)) return;
  for (const CallRef& load : loads) {
    const bool is_mapped = has_map_location(program, load);
    if (load.has_splat() || (is_mapped && (prepared || !maps_to_one_gpu(program, load)))) continue;
    const std::string words = words_around(program, load);
    if (!is_checkpoint(program, load, words) || holds_no_tensors(program, load)) continue;
    if (program.guarded_by_rank(load.ref()) != RankTest::none ||
        facts::only_before_ranks(program, load.ref()) || without_gpu(program, load.ref()))
      continue;
    // f"state_{rank}.pt": each rank reads what it wrote itself, from its own GPU.
    if (program.comes_from_rank(load.argument(0, "f"))) continue;
    if (is_after_a_mapped_attempt(program, load) || is_of_tensorrt(program, load)) continue;
    if (facts::only_without_distribution(program, load.ref()) ||
        !facts::is_reachable(program, load.ref()))
      continue;
    if (has_no_path(program, load)) continue;
    // What a framework saves lies where its ranks had it.
    const bool of_framework = lightning || has_trainer_ranks(program);
    const bool surely = is_of_a_run(program, load, words) && !saves_from_cpu(program) &&
                        !is_for_other_models(program, load) &&
                        becomes_a_model(program, load, words) &&
                        (of_framework || !project_saves_from_cpu(program));
    if (prepared && !(surely && (restores_a_run(program, load) || is_named_checkpoint(words) ||
                                 (lightning && holds_a_lightning_state(load)))))
      continue;
    Finding& finding = report.at(
        load.ref(), Confidence::likely,
        is_mapped ? "map_location puts the tensors of every rank on one GPU"
                  : "torch.load restores tensors to the GPU they were saved from: all ranks fill "
                    "GPU 0");
    if (!surely && !is_mapped) tell_as_note(finding);
    if (facts::certainty_of_reach(program, load.ref()) == facts::Certainty::certain &&
        is_given_device_by_all(program, load))
      tell_as_note(finding, "every call in sight gives a device");
    finding.help = "Pass map_location=\"cpu\", or f\"cuda:{local_rank}\".";
    if (load.argument(1, "map_location")) continue;
    if (program.uses(Api::set_device) && is_used_as_loaded(program, load))
      add_argument(load, kToOwnGpu, "Load to the GPU of the rank", finding);
    else
      add_argument(load, "map_location=\"cpu\"", "Load to the CPU", finding);
  }
}

namespace {

// Checkpoint bytes that ranks hold on GPUs other than their own.
double foreign_bytes(const RunEvidence& run) {
  double bytes = 0;
  for (const Json& rank : run.ranks()) {
    const auto held = rank.find("checkpoint_bytes_by_gpu");
    if (held == rank.end()) continue;
    const auto own = rank.value("own_gpu", std::size_t{0});
    for (std::size_t gpu = 0; gpu < held->size(); ++gpu)
      if (gpu != own) bytes += (*held)[gpu].get<double>();
  }
  return bytes;
}

}  // namespace

void judge_load_without_map_location(const RunEvidence& run, RunReport& report) {
  const double bytes = foreign_bytes(run);
  if (bytes <= 0) return;
  Finding& finding =
      report.add(Confidence::certain, "loading a checkpoint put " + figure(bytes) +
                                          " bytes on GPUs that are not those of the rank");
  finding.help = "torch.load(..., map_location=f\"cuda:{local_rank}\"), or \"cpu\".";
  for (const Json& held : run.of_every_rank("checkpoint_bytes_by_gpu"))
    finding.evidence.emplace_back("bytes by GPU", listed(held));
}

Price price_load_without_map_location(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.cost = foreign_bytes(broken);
  price.reproduced = price.cost > 0;
  price.gone = cured.first("checkpoint_bytes_by_gpu") != nullptr && foreign_bytes(cured) == 0;
  price.unit = "bytes too many on GPU 0, " + std::to_string(broken.ranks().size()) + " ranks";
  price.seen = "silent, until GPU 0 is out of memory: it holds the checkpoint of every rank";
  return price;
}

}  // namespace bench::pitfalls
