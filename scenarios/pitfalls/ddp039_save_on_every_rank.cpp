#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/files/helper_saves.hpp"
#include "scenarios/pitfalls/files/model_saves.hpp"
#include "scenarios/pitfalls/files/own_disks.hpp"
#include "scenarios/pitfalls/files/used_below.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;
using diagnose::Source;

namespace {

bool is_file_of_its_own(const Program& program, const CallRef& save) {
  const Ref path = path_of(save);
  if (!path) return true;
  if (program.comes_from_rank(path) || is_drawn_by_each(program, path)) return true;
  const std::string text = facts::lowered(path.text());
  if (facts::contains(text, "rank") || facts::contains(text, "buffer") ||
      facts::contains(text, "bytesio"))
    return true;
  // A process that has a run at all has a directory for it.
  if (facts::contains(text_behind(program, path), "wandb.run.dir")) return true;
  for (const Source& source : program.sources(path)) {
    const CallRef call = program.as_call(source.ref);
    if (call && (call.call->name == "BytesIO" || call.call->name == "NamedTemporaryFile"))
      return true;
  }
  return false;
}

// The state of a model, an optimizer or a run. Lists of samples that a script caches are written
// once by whoever comes first, and mostly before there are ranks.
bool is_training_state(const Program& program, const CallRef& save) {
  const auto tells = [](std::string_view text) {
    const std::string plain = facts::lowered(text);
    return facts::contains(plain, "state") || facts::contains(plain, "model") ||
           facts::contains(plain, "optim") || facts::contains(plain, "checkpoint") ||
           facts::contains(plain, "ckpt");
  };
  if (save.call->api != Api::torch_save) return true;  // a model saves itself
  const Ref saved = save.argument(0, "obj");
  if (!saved || tells(saved.text())) return true;
  if (const Ref path = save.argument(1, "f"); path && tells(path.text())) return true;
  if (program.derives_from(program.class_of(saved), Api::module_class)) return true;
  for (const Ref item : facts::items_stored_in(saved))
    if (tells(item.text())) return true;
  const auto& sources = program.sources(saved);
  return std::any_of(sources.begin(), sources.end(),
                     [&](const Source& source) { return tells(source.ref.text()); });
}

// loss, val_loss, mean_acc: what a process computes from its part of the data. Of an evaluation
// only where its data is shared out as well, as Accelerate does.
bool names_own_figure(std::string_view name, bool shares_evaluation) {
  bool figure = false;
  for (const std::string& word : words_of_name(name)) {
    for (const char* each : {"val", "valid", "validation", "test", "eval", "best"})
      if (word == each && !shares_evaluation) return false;
    // The kind of a loss, which is the same everywhere.
    for (const char* each : {"type", "name", "fn", "func", "function", "mode", "kind"})
      if (word == each) return false;
    for (const char* each : {"loss", "losses", "acc", "accuracy", "score", "ppl", "perplexity",
                             "psnr", "iou", "auc", "wer", "cer", "bleu", "reward"})
      figure = figure || word == each;
  }
  return figure;
}

// loss in f"{args.loss}.pt" is an option, and acc = test(net) that of all the data.
bool is_shared_figure(const Program& program, Ref name, bool shares_evaluation) {
  const auto& tree = name.module->tree();
  if (tree[name.node].field == diagnose::Field::attribute) {
    const Ref object = name.with(tree[name.node].parent).child(diagnose::Field::object);
    return says_any(object.text(), {"arg", "opt", "conf", "cfg", "flag", "param", "setting"});
  }
  const auto& sources = program.sources(name);
  return !shares_evaluation &&
         std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
           const CallRef made = program.as_call(source.ref);
           return made && says_any(made.call->name, {"test", "valid", "eval"});
         });
}

// f"epoch{epoch}_loss{loss:.4f}.pt" in a program that reduces nothing: no two processes have the
// same figure, so that each of them writes a file of its own.
bool is_named_by_own_figure(const Program& program, const CallRef& save) {
  const Ref path =
      save.call->api == Api::torch_save ? save.argument(1, "f") : save.argument(0, "f");
  if (!path || !reductions_of(program).empty() || !program.calls_named("compute").empty())
    return false;
  const bool shared = accelerate_wraps(program);
  const auto holds_figure = [&](Ref part) {
    const auto& tree = part.module->tree();
    for (auto at = part.node; at < tree[part.node].last; ++at)
      if (tree[at].kind == diagnose::Kind::identifier && names_own_figure(tree.text(at), shared) &&
          !is_shared_figure(program, part.with(at), shared))
        return true;
    return false;
  };
  if (holds_figure(path)) return true;
  const auto sources = program.sources(path);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && holds_figure(source.ref);
  });
}

constexpr const char* kOwnFigure = "its name holds a figure of the process's own part of the data";

// DeepSpeedPlugin(zero_stage=2): every process holds all weights, and up to stage 2 that is so.
bool may_shard_weights(const Program& program) {
  if (program.mentions("FullyShardedDataParallelPlugin")) return true;
  if (!program.mentions("DeepSpeedPlugin")) return false;
  constexpr std::int64_t kWholeWeights = 2;
  const auto plugins = program.calls_named("DeepSpeedPlugin");
  return plugins.empty() || std::any_of(plugins.begin(), plugins.end(), [&](const CallRef& plugin) {
           return program.integer(plugin.keyword("zero_stage")).value_or(3) > kWholeWeights;
         });
}

// Accelerate leaves torch.save to the script, in every process.
void check_saves_beside_accelerate(const Program& program, Report& report) {
  if (!makes_accelerator(program) || program.calls_named("prepare").empty() ||
      may_shard_weights(program))
    return;
  std::vector<CallRef> saves;
  for (const CallRef& save : saves_of(program))
    if (is_training_state(program, save) && !is_file_of_its_own(program, save))
      saves.push_back(save);
  for (const CallRef& save : helpers_that_save(program)) saves.push_back(save);
  for (const CallRef& save : saves) {
    if (program.guarded_by_rank(save.ref()) != RankTest::none ||
        facts::rank_goes_first(program, save.ref()) || facts::in_dataset(program, save.ref()) ||
        !facts::is_reachable(program, save.ref()))
      continue;
    Finding& finding = report.at(
        save.ref(), Confidence::likely,
        "every process of accelerate launch writes the same file: the last one wins, and a "
        "reader may find a torn file");
    finding.help = "Save with accelerator.save(), or under if accelerator.is_main_process.";
    if (is_named_by_own_figure(program, save)) tell_as_note(finding, kOwnFigure);
  }
}

bool is_saving_hook(std::string_view name) {
  return name == "save_model" || name == "_save_checkpoint";
}

// save_model() or _save_checkpoint() of the node's class, or the one that all calls of the node's
// own method stand in: a helper that writes for it.
diagnose::FunctionRef saving_method(const Program& program, Ref node) {
  const auto method = program.enclosing_function(node);
  if (!method || is_saving_hook(method.function->name)) return method;
  const auto& sites = program.call_sites(method);
  if (sites.empty()) return {};
  const auto caller = program.enclosing_function(sites.front().ref());
  const bool all = std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return program.enclosing_function(site.ref()) == caller && site.receiver().text() == "self";
  });
  return all && caller && is_saving_hook(caller.function->name) ? caller : diagnose::FunctionRef{};
}

// save_model() and _save_checkpoint() of a class derived from Hugging Face's Trainer, which every
// process calls.
void check_saves_of_trainer(const Program& program, Report& report) {
  for (const CallRef& save : saves_of(program)) {
    const auto method = saving_method(program, save.ref());
    if (!method ||
        !facts::is_trainer_hook(program, program.enclosing_class(save.ref()),
                                method.function->name) ||
        program.guarded_by_rank(save.ref()) != RankTest::none ||
        is_file_of_its_own(program, save) || !is_training_state(program, save) ||
        facts::contains(method.module->text(method.function->body), "should_save"))
      continue;
    report
        .at(save.ref(), Confidence::likely,
            "the Trainer calls " + std::string(method.function->name) +
                "() on every process: all write the same file, and a reader may find a torn file")
        .help = "Save under if self.args.should_save.";
  }
}

// torch.save(model.state_dict(), path) below trainer.fit(): every process comes by.
void check_saves_below_fit(const Program& program, Report& report) {
  if (!has_lightning_ranks(program)) return;
  for (const CallRef& save : program.calls(Api::torch_save)) {
    if (!is_training_state(program, save) || is_file_of_its_own(program, save) ||
        program.guarded_by_rank(save.ref()) != RankTest::none ||
        facts::rank_goes_first(program, save.ref()) || !facts::is_reachable(program, save.ref()))
      continue;
    const auto fits = program.calls_named("fit");
    if (std::none_of(fits.begin(), fits.end(), [&](const CallRef& fit) {
          return fit.receiver() && program.comes_from(fit.receiver(), Api::lightning_trainer) &&
                 program.enclosing_function(fit.ref()) == program.enclosing_function(save.ref()) &&
                 only_runs_before(program, fit.ref(), save.ref());
        }))
      continue;
    report
        .at(save.ref(), Confidence::likely,
            "every process of the Trainer writes the same file: the last one wins, and a reader "
            "may find a torn file")
        .help = "Use trainer.save_checkpoint(), or save under if trainer.is_global_zero.";
  }
}

// on_train_epoch_end() of a callback or of the module, and training_step(), which the Trainer calls
// in every process.
bool is_in_saving_hook(const Program& program, Ref node) {
  const auto method = program.enclosing_function(node);
  const auto cls = program.enclosing_class(node);
  if (!method || !cls) return false;
  if (method.function->name.ends_with("_step"))
    return program.derives_from(cls, Api::lightning_module);
  if (!method.function->name.starts_with("on_") && !method.function->name.ends_with("_epoch_end"))
    return false;
  return program.derives_from(cls, Api::lightning_module) ||
         std::any_of(cls.cls->bases.begin(), cls.cls->bases.end(), [&](diagnose::NodeId base) {
           const std::string_view name = cls.module->text(base);
           return facts::contains(name, "Callback") || facts::contains(name, "ModelCheckpoint");
         });
}

// The method stands in a hook of a callback, or all calls of it do.
bool runs_in_hook(const Program& program, Ref node) {
  if (is_in_saving_hook(program, node)) return true;
  const auto helper = program.enclosing_function(node);
  if (!helper || !program.enclosing_class(node)) return false;
  const auto& sites = program.call_sites(helper);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_in_saving_hook(program, site.ref()) &&
           program.guarded_by_rank(site.ref()) == RankTest::none;
  });
}

// on_save(self, args, state, control) and its kin: of a TrainerCallback of Hugging Face, where
// Lightning's hooks get its Trainer.
bool is_callback_of_transformers(const Program& program, Ref node) {
  const auto cls = program.enclosing_class(node);
  if (!cls || program.derives_from(cls, Api::lightning_module)) return false;
  for (const diagnose::NodeId base : cls.cls->bases)
    if (facts::contains(cls.module->text(base), "TrainerCallback")) return true;
  return facts::contains(cls.module->text(cls.cls->node), "control");
}

void check_saves_in_hooks(const Program& program, Report& report) {
  const bool lightning = runs_steps_in_several(program);
  const bool transformers = has_trainer_ranks(program);
  for (const CallRef& save : transformers ? saves_of(program) : torch_saves_of(program)) {
    const bool of_transformers = is_callback_of_transformers(program, save.ref());
    if (!(of_transformers ? transformers : lightning) ||
        (!of_transformers && save.call->api != Api::torch_save))
      continue;
    if (!runs_in_hook(program, save.ref()) || !is_training_state(program, save) ||
        is_file_of_its_own(program, save) || program.guarded_by_rank(save.ref()) != RankTest::none)
      continue;
    report
        .at(save.ref(), Confidence::likely,
            "the Trainer calls this hook in every process: all write the same file, and a reader "
            "may find a torn file")
        .help = of_transformers ? "Save under if state.is_world_process_zero."
                                : "Save under if trainer.is_global_zero.";
  }
}

void check_saves_of_helpers(const Program& program, Report& report) {
  for (const CallRef& save : helpers_that_save(program)) {
    const Ref node = save.ref();
    if (program.guarded_by_rank(node) != RankTest::none || facts::rank_goes_first(program, node) ||
        facts::only_before_ranks(program, node) ||
        facts::only_without_distribution(program, node) || !facts::is_reachable(program, node))
      continue;
    Finding& finding =
        report.at(node, Confidence::likely,
                  "every rank calls this, and all write the same file: the last one wins, and a "
                  "reader may find a torn file");
    finding.severity = Severity::warning;
    finding.help = "Call it on one rank: if dist.get_rank() == 0.";
  }
}

// scatter_object_list(orders, all_orders); if orders[0] == 2: one rank decides for each of the
// others what it does.
bool is_told_to(const Program& program, Ref save) {
  return program.under(save, [&](Ref condition, bool) {
    for (const char* name : {"scatter_object_list", "recv_object_list", "recv", "scatter"})
      for (const CallRef& told : program.calls_named(name))
        if (told.positional(0) && told.module == condition.module &&
            meet(variables_in(condition), with_wholes(variables_in(told.positional(0)))))
          return true;
    return false;
  });
}

// Below trainer.train() in the function that calls it, or in a helper that is called there.
bool stands_below_training(const Program& program, const CallRef& save) {
  const auto trains = program.calls_named("train");
  const auto is_below = [&](Ref place) {
    return std::any_of(trains.begin(), trains.end(), [&](const CallRef& train) {
      return train.receiver() && program.comes_from(train.receiver(), Api::hf_trainer) &&
             program.enclosing_function(train.ref()) == program.enclosing_function(place) &&
             only_runs_before(program, train.ref(), place);
    });
  };
  if (is_below(save.ref())) return true;
  const auto helper = program.enclosing_function(save.ref());
  if (!helper) return false;
  const auto& sites = program.call_sites(helper);
  return std::any_of(sites.begin(), sites.end(),
                     [&](const CallRef& site) { return is_below(site.ref()); });
}

// if args.world_size == 1: there is one process alone.
bool asks_how_many(const Program& program, Ref save) {
  return program.under(save, [](Ref condition, bool) {
    return holds_any(condition.text(), {"world_size", "num_processes", "n_gpu"});
  });
}

// model.save_pretrained(path) and torch.save(model.state_dict(), path) below trainer.train() of
// Hugging Face's Trainer: trainer.save_model() writes on one process, this on every one.
void check_saves_beside_trainer(const Program& program, Report& report) {
  if (!has_trainer_ranks(program)) return;
  for (const CallRef& save : saves_of(program)) {
    if (!is_training_state(program, save) || is_file_of_its_own(program, save) ||
        program.guarded_by_rank(save.ref()) != RankTest::none ||
        facts::rank_goes_first(program, save.ref()) || !facts::is_reachable(program, save.ref()) ||
        !stands_below_training(program, save) || asks_how_many(program, save.ref()))
      continue;
    report
        .at(save.ref(), Confidence::likely,
            "every process of the Trainer writes the same files: the last one wins, and a reader "
            "may find a torn file")
        .help = "Use trainer.save_model(), or save under if trainer.is_world_process_zero().";
  }
}

// write("last") beside `if rank == 0: write("best")`, in the function that all ranks run: there the
// helper saves on every one of them.
Ref open_call_of(const Program& program, const CallRef& save) {
  const auto helper = program.enclosing_function(save.ref());
  if (!helper) return {};
  const auto& sites = program.call_sites(helper);
  for (const CallRef& site : sites) {
    if (program.guarded_by_rank(site.ref()) != RankTest::none ||
        !is_unconditional(program, site.ref()) ||  // if viewer: perhaps of a run of one process
        facts::only_without_distribution(program, site.ref()) ||
        facts::rank_goes_first(program, site.ref()))
      continue;
    if (std::any_of(sites.begin(), sites.end(), [&](const CallRef& other) {
          return program.rank_guard(other.ref()) && !facts::exclusive(site.ref(), other.ref()) &&
                 program.enclosing_function(other.ref()) == program.enclosing_function(site.ref());
        }))
      return site.ref();
  }
  return {};
}

// with open(path, "wb") as file: torch.save(state, file) -- every rank has emptied the file by
// then.
bool writes_to_open_file(const CallRef& save) {
  const auto& tree = save.module->tree();
  const Ref file = save.argument(1, "f");
  if (file.kind() != diagnose::Kind::identifier) return false;
  const std::string opened = " as " + std::string(file.text());
  for (auto at = tree.ancestor(save.call->node, diagnose::Kind::with_statement);
       at != diagnose::kNoNode; at = tree.ancestor(at, diagnose::Kind::with_statement)) {
    const std::string_view text = tree.text(at);
    const std::string_view header = text.substr(0, tree[save.call->node].begin - tree[at].begin);
    if (facts::contains(header, opened + ":") || facts::contains(header, opened + ",") ||
        facts::contains(header, opened + ")"))
      return true;
  }
  return false;
}

void guard_save(const Program& program, const CallRef& save, Finding& finding) {
  const Ref first = statement_of(save.ref());
  const Ref last = last_to_guard(program, save);
  finding.forbids_fix = !last;
  if (!last || first.kind() != diagnose::Kind::expression_statement || writes_to_open_file(save))
    return;
  if (const auto condition = facts::main_rank_condition(program, save.ref()); !condition.empty())
    guard_statements(first, last, condition, "Save on rank 0 only", finding);
}

}  // namespace

void check_save_on_every_rank(const Program& program, Report& report) {
  if (!wraps_by_itself(program)) {
    check_saves_beside_accelerate(program, report);
    check_saves_below_fit(program, report);
    check_saves_beside_trainer(program, report);
    check_saves_in_hooks(program, report);
  }
  if (!has_ranks_of_its_own(program)) return check_saves_of_trainer(program, report);
  check_saves_of_helpers(program, report);
  for (const CallRef& save : saves_of(program)) {
    const Ref node = save.ref();
    if (program.guarded_by_rank(node) != RankTest::none || is_file_of_its_own(program, save) ||
        facts::rank_goes_first(program, node) || facts::only_before_ranks(program, node) ||
        facts::in_dataset(program, node) || facts::only_without_distribution(program, node) ||
        !facts::is_reachable(program, node) || is_told_to(program, node))
      continue;
    if (const Ref open = open_call_of(program, save); open && is_training_state(program, save)) {
      report
          .at(open, Confidence::likely,
              "every rank comes by here, and what is called saves to one file: the last one wins, "
              "and a reader may find a torn file")
          .help = "Call it under the test of the rank here, too.";
      continue;
    }
    Finding& finding = report.at(
        save.ref(), Confidence::certain,
        "every rank writes the same file: the last one wins, and a reader may find a torn file");
    if (!is_training_state(program, save)) tell_as_note(finding);
    if (is_named_by_own_figure(program, save)) tell_as_note(finding, kOwnFigure);
    finding.help = "Save on one rank: if dist.get_rank() == 0.";
    if (finding.severity != Severity::info) guard_save(program, save, finding);
  }
}

namespace {

// Ranks that wrote the path that another rank wrote too; 0 where none did.
int writers_of_one_path(const RunEvidence& run) {
  int most = 0;
  for (const Json& paths : run.of_every_rank("paths_written"))
    for (const Json& path : paths) {
      int writers = 0;
      for (const Json& others : run.of_every_rank("paths_written"))
        writers += static_cast<int>(std::count(others.begin(), others.end(), path));
      most = std::max(most, writers);
    }
  return most > 1 ? most : 0;
}

double bytes_written(const RunEvidence& run) {
  double bytes = 0;
  for (const double each : rank_values(run, "bytes_written")) bytes += each;
  return bytes;
}

}  // namespace

void judge_save_on_every_rank(const RunEvidence& run, RunReport& report) {
  const int writers = writers_of_one_path(run);
  if (writers == 0) return;
  const std::string error = run.error_with("");
  Finding& finding = report.add(
      Confidence::certain, std::to_string(writers) + " ranks wrote one checkpoint file" +
                               (error.empty() ? "" : ", and a rank that read it found it torn"));
  finding.help = "Write on rank 0 only, and let the others wait at a barrier before they load.";
  finding.evidence.emplace_back("bytes written by rank", rank_figures(run, "bytes_written"));
  if (!error.empty()) finding.evidence.emplace_back("error", error);
}

Price price_save_on_every_rank(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with("");
  price.reproduced = !error.empty() && broken.number("keys_loaded") == 0;
  price.gone = cured.first("error") == nullptr && cured.number("keys_loaded") > 0;
  price.cost = bytes_written(cured);
  price.unit = "bytes of checkpoint lost";
  price.seen = first_sentence(error);
  return price;
}

}  // namespace bench::pitfalls
