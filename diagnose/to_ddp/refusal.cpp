#include "diagnose/to_ddp/refusal.hpp"

#include "diagnose/to_ddp/ddp_mode.hpp"
#include "diagnose/to_ddp/frameworks.hpp"
#include "diagnose/to_ddp/reached_code.hpp"
#include "diagnose/to_ddp/sync_batch_norm.hpp"
#include "diagnose/to_ddp/trains.hpp"
#include "diagnose/to_ddp/unfollowed.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMostScripts = 3;  // that are named

// The file's own DataParallel calls stand in what it offers to others, and it runs none of that.
bool only_offers_wraps(const Program& program, const std::vector<const Wrap*>& wraps,
                       const ReachedCode& reached) {
  const Module& script = program.root();
  if (script.has_main_guard() || program.is_notebook() || is_experiment(script)) return false;
  bool any = false;
  for (const Wrap* wrap : wraps) {
    if (reached.has(wrap->call)) return false;
    any = any || wrap->call.module == &script;
  }
  return any;
}

bool is_named_after(const std::string& path, std::initializer_list<std::string_view> words) {
  return pitfalls::says_any(std::string_view(path).substr(path.rfind('/') + 1), words);
}

// Scripts that say that they train come first, and those that evaluate do not count.
std::string to_start_instead(std::vector<std::string> scripts) {
  std::erase_if(scripts, [](const std::string& path) {
    return !is_named_after(path, {"train"}) &&
           is_named_after(path, {"eval", "test", "infer", "demo", "predict", "plot", "export",
                                 "extract", "sample", "visual", "valid"});
  });
  std::stable_partition(scripts.begin(), scripts.end(),
                        [](const std::string& path) { return is_named_after(path, {"train"}); });
  std::string out = "a module that others import: give the script that starts the training";
  for (std::size_t index = 0; index < std::min(scripts.size(), kMostScripts); ++index)
    out += (index == 0 ? ": " : ", ") + scripts[index];
  return out + (scripts.size() > kMostScripts ? " ..." : "");
}

// Of a script without DataParallel.
std::string what_is_there_already(const Program& program, const ReachedCode& reached) {
  const auto& wraps = program.wraps();
  const auto in_script = std::find_if(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.kind == Wrapper::ddp && wrap.call.module == &program.root();
  });
  const auto seen = std::find_if(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.kind == Wrapper::ddp && reached.has(wrap.call);
  });
  const auto found = in_script != wraps.end() ? in_script : seen;
  if (found != wraps.end())
    return "wraps in DistributedDataParallel already " +
           place_in_brackets(program, found->call.ref());
  return distributing_framework(program, reached);
}

// class Parallel(nn.DataParallel) that only looks attributes up in what it wraps.
bool only_passes_on(const ClassRef& own) {
  const auto& functions = own.module->functions();
  return std::all_of(functions.begin(), functions.end(), [&](const Function& each) {
    return each.owner_class != own.cls->node || each.name == "__init__" ||
           each.name == "__getattr__";
  });
}

std::string advice_for_passing_on(const Program& program, const ClassRef& own) {
  const bool looks_up = own.module->method(*own.cls, "__getattr__") != nullptr;
  return ", a DataParallel that only passes attributes on: derive the class " +
         place_in_brackets(program, {own.module, own.cls->node}) +
         " from torch.nn.parallel.DistributedDataParallel" +
         (looks_up ? ", let __getattr__ read self.__dict__['_modules']['module'] (self.module asks "
                     "__getattr__ again before DDP has set it)"
                   : "") +
         ", pass device_ids=[local_rank] where it is made, and what has to be averaged must run in "
         "its forward, not in a method that is passed on";
}

bool calls_scatter(Ref body) {
  const auto calls = pitfalls::facts::calls_in(body);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return pitfalls::says_any(call.call->name, {"scatter", "chunk", "split"}) ||
           (call.call->name == "forward" && call.receiver().text().starts_with("super("));
  });
}

// The forward pass cuts its inputs, self.scatter(inputs, kwargs, ids), or has PyTorch's do it;
// where the class has none, what it has in its place.
bool scatters(const Program& program, const ClassRef& own) {
  if (const FunctionRef forward = program.method(own, "forward"))
    return calls_scatter({forward.module, forward.function->body});
  if (program.derives_from(own, Api::data_parallel)) return true;
  const auto& functions = own.module->functions();
  return std::any_of(functions.begin(), functions.end(), [&](const Function& each) {
    return each.owner_class == own.cls->node && each.name != "scatter" &&
           calls_scatter({own.module, each.body});
  });
}

// forward(self, *inputs): self.module(*inputs[0]): whoever calls it has made a batch for each GPU.
bool takes_a_batch_for_each_gpu(const Program& program, const ClassRef& own) {
  const FunctionRef forward = program.method(own, "forward");
  if (!forward) return false;
  for (const Parameter& each : forward.function->parameters)
    if (each.splat == '*' && pitfalls::facts::contains(forward.module->text(forward.function->body),
                                                       std::string(each.name) + "[0]"))
      return true;
  return false;
}

// gpu0_bsz: the first GPU gets a smaller part than the others.
bool balances(const ClassRef& own) {
  return pitfalls::says_any(own.cls->name, {"balanced", "balance"}) ||
         pitfalls::facts::contains(own.module->text(own.cls->body), "gpu0");
}

// What each rank has to take in place of what the class did.
std::string share_of_rank(const Program& program, const ClassRef& own) {
  if (balances(own))
    return ", and let each rank load an equal share of the batch (DDP averages over ranks, so that "
           "the samples of a smaller share would weigh more)";
  if (scatters(program, own)) return ", and let each rank load the part that it scatters";
  if (takes_a_batch_for_each_gpu(program, own))
    return ". It scatters nothing: its caller makes a batch for each GPU, so let each rank make "
           "one batch of its own, and give the model that alone";
  return "";
}

std::string advice_for_copy(const Program& program, const ClassRef& own) {
  return ", a class of the project (" + own.module->path() +
         ") that is not PyTorch's: wrap in DistributedDataParallel in its place by hand" +
         share_of_rank(program, own);
}

// class DataParallel(Module) of a file of the project, as a copy of the library's.
std::string copied_wrapper(const Program& program, const ReachedCode& reached) {
  for (const Module* module : program.modules())
    for (const Call& call : module->calls()) {
      const CallRef made{module, &call};
      if (call.api != Api::none || !reached.has(made)) continue;
      const ClassRef cls = program.class_of_call(made);
      if (!cls || !cls.cls->name.ends_with("DataParallel") ||
          cls.cls->name.find("Distributed") != std::string_view::npos ||
          !program.derives_from(cls, Api::module_class) ||
          program.derives_from(cls, Api::data_parallel))
        continue;
      return "wraps in " + std::string(cls.cls->name) + " " +
             place_in_brackets(program, made.ref()) + advice_for_copy(program, cls);
    }
  return {};
}

// PyTorch's own is what the script comes by.
bool comes_by_plain(const Program& program, const ReachedCode& reached) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.kind == Wrapper::data_parallel && !wrap.own && reached.comes_by(wrap.call.ref());
  });
}

// class Parallel(nn.DataParallel), which scatters its inputs in a way of its own.
std::string own_wrapper(const Program& program, const ReachedCode& reached) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel || !wrap.own ||
        only_runs_callbacks(program, wrap.own) ||
        (!reached.comes_by(wrap.call.ref()) && comes_by_plain(program, reached)))
      continue;
    const std::string found = "wraps in " + std::string(wrap.own.cls->name) + " " +
                              place_in_brackets(program, wrap.call.ref());
    if (program.derives_from(wrap.own, Api::data_parallel) && only_passes_on(wrap.own))
      return found + advice_for_passing_on(program, wrap.own);
    // from data_parallel import DataParallel: its name alone is that of PyTorch's.
    if (!program.derives_from(wrap.own, Api::data_parallel))
      return found + advice_for_copy(program, wrap.own);
    return found +
           ", a DataParallel of its own: wrap in DistributedDataParallel itself in its place (a "
           "class derived from that would run a forward pass of its own, past DDP's, and no "
           "gradient would be averaged)" +
           share_of_rank(program, wrap.own);
  }
  return copied_wrapper(program, reached);
}

}  // namespace

std::string wrapper_out_of_reach(const Program& program) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel || wrap.call.module != &program.root()) continue;
    std::vector<std::string> scripts = program.scripts_above();
    if (!scripts.empty()) return to_start_instead(std::move(scripts));
    return "nothing in it comes to the DataParallel call " +
           place_in_brackets(program, wrap.call.ref()) +
           ": give the script that makes an object of what wraps, or calls it";
  }
  return {};
}

std::string reason_to_refuse(ReachedCode& reached) {
  const Program& program = reached.program();
  std::vector<const Wrap*> wraps;
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::data_parallel && !(wrap.own && wraps_again(program, wrap)))
      wraps.push_back(&wrap);
  std::erase_if(wraps, [&](const Wrap* wrap) {
    return wrap->call.module != &program.root() && !reached.has(wrap->call);
  });
  if (std::string own = own_wrapper(program, reached); !own.empty()) return own;
  if (wraps.empty()) {
    const std::string there = what_is_there_already(program, reached);
    return there.empty() ? unfollowed_wrapper(program, reached) : there;
  }
  if (only_offers_wraps(program, wraps, reached)) return to_start_instead(program.scripts_above());
  // What the author has switched off by a comment is a part of the script still.
  if (std::none_of(wraps.begin(), wraps.end(),
                   [&](const Wrap* wrap) { return reached.has(wrap->call); }))
    for (const Wrap* wrap : wraps) reached.enter_above(wrap->call.ref());
  if (std::string mode = existing_ddp_mode(program, reached); !mode.empty()) return mode;
  if (std::string framework = distributing_framework(program, reached); !framework.empty())
    return framework;
  if (!surely_trains_nothing(program, reached) && !is_test_by_name(program, reached)) return {};
  if (evaluates(program, reached))
    return "evaluates only: DataParallel " + place_in_brackets(program, wraps.front()->call.ref()) +
           " may stay, or give each process its share of the data";
  // The guard of a module tries it out.
  std::vector<std::string> scripts = program.scripts_above();
  return scripts.empty() ? std::string() : to_start_instead(std::move(scripts));
}

}  // namespace bench::diagnose
