#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/tested_calls.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/wrappers/handed_to_training.hpp"
#include "scenarios/pitfalls/wrappers/named_buffers.hpp"
#include "scenarios/pitfalls/wrappers/taken_off.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// if args.local_rank == -1: a run of one process, in which nothing is wrapped.
bool is_for_one_process(const Program& program, Ref node) {
  return facts::only_without_distribution(program, node) ||
         program.under(node, [](Ref condition, bool holds) {
           return holds && condition.text().ends_with("== -1");
         });
}

// net = model.module if distributed else model, as a statement.
bool may_be_inner(const Program& program, Ref argument) {
  const auto& sources = program.sources(argument);
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    return source.ref.text().ends_with(".module");
  });
}

bool is_given_wrapper(const Program& program, const CallRef& site) {
  for (std::size_t i = 0; const Ref argument = site.positional(i); ++i)
    if (program.is_wrapped(argument, Wrapper::ddp) && !may_be_inner(program, argument)) return true;
  const auto& tree = site.module->tree();
  const diagnose::NodeId list = tree.child(site.call->node, diagnose::Field::arguments);
  for (diagnose::NodeId at = list == diagnose::kNoNode ? list : tree[list].first_child;
       at != diagnose::kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == diagnose::Kind::keyword_argument &&
        program.is_wrapped({site.module, tree.child(at, diagnose::Field::value)}, Wrapper::ddp))
      return true;
  return false;
}

// evaluate(model, loader) that is called from several places: the one that hands over the wrapper
// has to be the one that a single rank reaches.
bool one_rank_hands_over_wrapper(const Program& program, const CallRef& forward) {
  const Ref callee{forward.module, forward.call->function};
  const auto function = program.enclosing_function(forward.ref());
  if (!facts::is_parameter(program, callee) || program.rank_guard(forward.ref())) return true;
  const auto sites = program.call_sites(function);
  return sites.size() < 2 || std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return is_given_wrapper(program, site) && !is_for_one_process(program, site.ref()) &&
                  program.guarded_by_rank(site.ref()) != RankTest::none;
         });
}

// The function whose parameter the called name is: of a nested function, perhaps one around it.
diagnose::FunctionRef given_to(const Program& program, Ref callee) {
  for (auto at = program.enclosing_function(callee); at;
       at = program.enclosing_function({at.module, at.function->node})) {
    const auto& parameters = at.function->parameters;
    if (std::any_of(parameters.begin(), parameters.end(),
                    [&](const auto& each) { return each.name == callee.text(); }))
      return at;
    if (at.function->node == 0) break;
  }
  return {};
}

// if rank == 0: train(ddp, bar) else: train(ddp): the other ranks call it in the other branch.
bool others_call_too(const Program& program, const CallRef& site, const std::vector<CallRef>& sites,
                     const std::function<bool(const CallRef&)>& passes) {
  const RankTest mine = program.guarded_by_rank(site.ref());
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& other) {
    const RankTest theirs = program.guarded_by_rank(other.ref());
    return theirs != RankTest::none && theirs != mine && passes(other) &&
           facts::exclusive(site.ref(), other.ref());
  });
}

// The same for ddp(x) itself.
bool others_pass_too(const Program& program, const diagnose::ForwardCall& forward) {
  const RankTest mine = program.guarded_by_rank(forward.call.ref());
  const auto& all = program.forward_calls();
  return std::any_of(all.begin(), all.end(), [&](const diagnose::ForwardCall& other) {
    const RankTest theirs = program.guarded_by_rank(other.call.ref());
    return other.wrap == forward.wrap && theirs != RankTest::none && theirs != mine &&
           facts::exclusive(forward.call.ref(), other.call.ref());
  });
}

// Calls by which one rank enters a function that all ranks run as well, with the wrapper, or
// without where that is a name of the script or an attribute.
std::vector<CallRef> entries_of_one_rank(const Program& program, const CallRef& forward) {
  std::vector<CallRef> out;
  const Ref callee{forward.module, forward.call->function};
  const bool is_name = callee.kind() == diagnose::Kind::identifier;
  if (!is_name && callee.kind() != diagnose::Kind::attribute) return out;
  const auto handed = is_name ? given_to(program, callee) : diagnose::FunctionRef{};
  const auto function = handed ? handed : program.enclosing_function(forward.ref());
  if (!function || program.rank_guard(forward.ref())) return out;
  const auto& sites = program.call_sites(function);
  if (sites.size() < 2) return out;
  const auto passes = [&](const CallRef& site) {
    return !handed || is_given_wrapper(program, site);
  };
  std::copy_if(sites.begin(), sites.end(), std::back_inserter(out), [&](const CallRef& site) {
    return passes(site) && !is_for_one_process(program, site.ref()) &&
           program.guarded_by_rank(site.ref()) == RankTest::main_only &&
           !others_call_too(program, site, sites, passes);
  });
  return out;
}

// The calls under the test by which the wrapper comes to the forward pass: another one may hand
// over model.module.
std::vector<Ref> entries_with_wrapper(const Program& program, Ref forward) {
  std::vector<Ref> out = tested_calls(program, forward);
  std::erase_if(out, [&](Ref entry) {
    const CallRef call = program.as_call(entry);
    if (!call || entry == forward) return false;
    const auto given = facts::arguments_of(call);
    return std::any_of(given.begin(), given.end(), [](Ref argument) {
      return argument.text().ends_with(".module") || says_any(argument.text(), {"unwrap"});
    });
  });
  if (out.empty()) out.push_back(forward);
  return out;
}

// self.register_buffer(...) in a class that is wrapped or built by one, whatever the options are.
bool registers_buffer(const Program& program, const Wrap& wrap) {
  if (wrap.classes.empty()) return false;
  const auto classes = facts::wrapped_classes(program, wrap);
  for (const CallRef& call : program.calls_named("register_buffer"))
    if (is_unconditional(program, call.ref()) &&
        std::find(classes.begin(), classes.end(), program.enclosing_class(call.ref())) !=
            classes.end())
      return true;
  return false;
}

// prepare_qat(net), above DDP(net): its modules of fake quantization keep scales in buffers.
bool is_quantized(const Program& program, const Wrap& wrap) {
  const auto calls = program.calls_named("prepare_qat");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const Ref model = call.positional(0);
    return model && wrap.module && model.text() == wrap.module.text() &&
           program.runs_before(call.ref(), wrap.call.ref());
  });
}

// The model behind a prepared name holds BatchNorm or other buffers, as far as it is seen or named.
bool holds_buffers(const Program& program, Ref model) {
  const diagnose::ClassRef cls = program.class_of(model);
  if (!cls) return is_named_after_buffers(program, model);
  const auto inside = [&](const CallRef& call) {
    return program.enclosing_class(call.ref()) == cls;
  };
  const auto norms = program.calls(Api::batch_norm);
  const auto buffers = program.calls_named("register_buffer");
  return std::any_of(norms.begin(), norms.end(), inside) ||
         std::any_of(buffers.begin(), buffers.end(), inside);
}

// net(x) and _ = net(x)
bool is_dropped(const CallRef& forward) {
  const auto& tree = forward.module->tree();
  const diagnose::NodeId parent = tree[forward.call->node].parent;
  if (parent == diagnose::kNoNode) return false;
  return tree[parent].kind == diagnose::Kind::expression_statement ||
         (tree[parent].kind == diagnose::Kind::assignment &&
          tree.text(tree.child(parent, diagnose::Field::left)) == "_");
}

// net.train() just for this pass, which has no gradients and whose result is dropped: the running
// statistics of BatchNorm are all that is left of it, and these are buffers.
bool refreshes_statistics(const Program& program, const CallRef& forward) {
  if (!is_dropped(forward) || !program.under_no_grad(forward.ref())) return false;
  const Ref model{forward.module, forward.call->function};
  CallRef last;
  for (const std::string_view mode : {"train", "eval"})
    for (const CallRef& call : program.calls_named(mode))
      if (call.receiver() && program.same_variable(call.receiver(), model) &&
          call.call->node < forward.call->node && (!last || last.call->node < call.call->node))
        last = call;
  return last && last.call->name == "train" && !last.positional(0) && !last.keyword("mode") &&
         program.rank_guard(last.ref());
}

// A pass with gradients in a function that may be called behind that call.
bool trains_in_between(const Program& program, const diagnose::ForwardCall& forward,
                       const CallRef& last) {
  const auto& passes = program.forward_calls();
  const auto function = program.enclosing_function(last.ref());
  return std::any_of(passes.begin(), passes.end(), [&](const diagnose::ForwardCall& other) {
    if (other.wrap != forward.wrap || program.under_no_grad(other.call.ref()) ||
        program.enclosing_function(other.call.ref()) == function)
      return false;
    const auto places = diagnose::places_of(program, other.call.ref());
    const auto here = std::find_if(places.begin(), places.end(), [&](Ref place) {
      return place.module == last.module && program.enclosing_function(place) == function;
    });
    return here == places.end() || here->node > last.call->node;
  });
}

// All ranks have just run the same wrapper without gradients: from such a pass on, up to the next
// one with gradients, DDP does not broadcast the buffers again.
bool follows_pass_without_gradients(const Program& program, const diagnose::ForwardCall& forward) {
  if (!program.under_no_grad(forward.call.ref())) return false;
  const auto function = program.enclosing_function(forward.call.ref());
  const diagnose::ForwardCall* last = nullptr;
  for (const auto& other : program.forward_calls()) {
    if (other.wrap != forward.wrap || other.call.call == forward.call.call) continue;
    if (program.enclosing_function(other.call.ref()) == function &&
        other.call.call->node < forward.call.call->node)
      last = &other;
  }
  if (last == nullptr || trains_in_between(program, forward, last->call)) return false;
  return program.under_no_grad(last->call.ref()) &&
         program.guarded_by_rank(last->call.ref()) == RankTest::none &&
         runs_wherever(program, last->call.ref(), forward.call.ref());
}

// The function of the pass goes back through it: a reduction of the gradients, in which every rank
// takes part.
bool passes_back(const Program& program, const diagnose::ForwardCall& forward) {
  if (program.under_no_grad(forward.call.ref()) || program.mentions("no_sync") ||
      program.mentions("require_backward_grad_sync") ||
      program.guarded_by_rank(forward.wrap->call.ref()) != RankTest::none)
    return false;
  const auto function = program.enclosing_function(forward.call.ref());
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    if (program.enclosing_function(backward.ref()) != function ||
        !runs_wherever(program, backward.ref(), forward.call.ref()))  // if train: loss.backward()
      return false;
    const auto behind = facts::forwards_behind(program, facts::loss_of(backward));
    return std::any_of(behind.begin(), behind.end(), [&](const diagnose::ForwardCall& each) {
      return each.call.call == forward.call.call;
    });
  });
}

// Every pass of the wrapper is without gradients, as of an encoder that is not trained, and all
// ranks make one: DDP broadcasts its buffers at the first of them and at no other.
bool never_has_gradients(const Program& program, const diagnose::ForwardCall& forward) {
  if (may_train_elsewhere(program, *forward.wrap)) return false;
  bool all_ranks = false;
  for (const auto& other : program.forward_calls()) {
    if (other.wrap != forward.wrap) continue;
    if (!program.under_no_grad(other.call.ref())) return false;
    all_ranks = all_ranks || (program.guarded_by_rank(other.call.ref()) == RankTest::none &&
                              program.runs_before(other.call.ref(), forward.call.ref()));
  }
  return all_ranks;
}

Finding& report_forward(const Program& program, const diagnose::ForwardCall& forward, Ref where,
                        Report& report) {
  if (passes_back(program, forward)) {
    Finding& finding = report.at(
        where, Confidence::likely,
        "one rank alone trains a step through the DDP model: its backward pass waits for the "
        "gradients of the other ranks, which do not take part");
    finding.help = "Run the step on every rank, or through model.module.";
    return finding;
  }
  const Wrap& wrap = *forward.wrap;
  const bool buffers = facts::has_batch_norm(program, wrap) || registers_buffer(program, wrap) ||
                       is_quantized(program, wrap);
  const bool likely_buffers = buffers || is_named_after_buffers(program, wrap) ||
                              refreshes_statistics(program, forward.call);
  // Under no_grad it gets through by luck in some programs: its broadcast pairs with the next one.
  const bool certain = buffers && !program.under_no_grad(forward.call.ref());
  Finding& finding = report.at(
      where, certain ? Confidence::certain : Confidence::likely,
      "one rank alone calls the DDP model: a forward broadcasts the buffers, and the other ranks "
      "do not take part");
  // A model without BatchNorm has no buffers as a rule, and broadcasts nothing.
  if (!likely_buffers)
    finding.severity = is_convolutional(program, wrap) ? Severity::warning : Severity::info;
  finding.help = "Evaluate with model.module, or on every rank.";
  return finding;
}

// writer.add_graph(model, batch), summary(model, size): the model runs to be drawn or counted.
bool traces(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "add_graph", "trace", "summary", "profile", "get_model_complexity_info", "FlopCountAnalysis"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// validate(model, loader) of a file that is not at hand: by its name it runs the model.
bool may_evaluate(std::string_view name) {
  return traces(name) ||
         (says_any(name, {"eval", "valid", "test", "infer", "sample", "generate", "predict"}) &&
          !says_any(name, {"save", "log", "plot", "load", "print", "make", "build", "create"}));
}

bool evaluates_out_of_sight(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  // summary(net) alone lists layers and runs nothing.
  if (traces(name))
    return !program.callee(call) && (call.positional(1) || call.keyword("input_size") ||
                                     call.keyword("input_data") || call.keyword("inputs"));
  return call.call->api == Api::none && may_evaluate(name) && !program.callee(call) &&
         !program.class_of_call(call);
}

// The wrapper that the call is handed, where that is all the name may hold.
const Wrap* wrapper_handed(const Program& program, const CallRef& call) {
  for (const Ref given : facts::arguments_of(call))
    if (facts::is_surely_wrapped(program, given) && !may_be_inner(program, given))
      return program.wrap_of(given, Wrapper::ddp);
  return nullptr;
}

void check_evaluations_out_of_sight(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_that(may_evaluate)) {
    if (!evaluates_out_of_sight(program, call)) continue;
    const Wrap* wrap = wrapper_handed(program, call);
    if (wrap == nullptr || program.is_literal_false(wrap->call.keyword("broadcast_buffers")) ||
        program.guarded_by_rank(call.ref()) != RankTest::main_only ||
        is_for_one_process(program, call.ref()) || !facts::is_reachable(program, call.ref()))
      continue;
    // It may look below the wrapper.
    report_forward(program, {call, wrap}, call.ref(), report).confidence = Confidence::likely;
  }
}

// if accelerator.is_main_process: model(batch), after model = accelerator.prepare(model).
void check_prepared_on_one_rank(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator) || program.mentions("broadcast_buffers")) return;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref model{module, made.function};
      if (made.api != Api::none || !is_variable(model) ||
          program.guarded_by_rank(call.ref()) != RankTest::main_only || program.callee(call))
        continue;
      const CallRef prepare = preparation_gone_below(program, model);
      if (!prepare || !is_of_accelerator(program, prepare) ||
          !facts::is_reachable(program, call.ref()))
        continue;
      Finding& finding = report.at(
          call.ref(), Confidence::likely,
          "one process alone calls the model that accelerator.prepare() has wrapped: a forward "
          "broadcasts the buffers, and the others do not take part");
      if (!holds_buffers(program, model)) finding.severity = Severity::info;
      finding.help = "Evaluate with accelerator.unwrap_model(model), or on every process.";
      return;
    }
}

}  // namespace

void check_rank0_forward_through_wrapper(const Program& program, Report& report) {
  if (!wraps_by_itself(program)) check_prepared_on_one_rank(program, report);
  check_evaluations_out_of_sight(program, report);
  std::vector<Ref> entries;  // of functions with several forward passes, each once
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::ddp || facts::is_taken_off_above(program, forward.call))
      continue;
    // Apex's wrapper has no buffers to keep equal: its forward tells the other ranks nothing.
    if (forward.wrap->call.call->api == Api::apex_ddp && !passes_back(program, forward)) continue;
    if (program.is_literal_false(forward.wrap->call.keyword("broadcast_buffers")) &&
        !passes_back(program, forward))
      continue;
    // Where all ranks run the function, the mistake is the call by which one of them enters it.
    const std::vector<CallRef> sites = entries_of_one_rank(program, forward.call);
    for (const CallRef& site : sites) {
      const Ref entry = tested_calls(program, site.ref()).front();
      if (std::find(entries.begin(), entries.end(), entry) != entries.end()) continue;
      entries.push_back(entry);
      Finding& finding = report_forward(program, forward, entry, report);
      // sample(average.forward): other callers hand the wrapper to what is behind it.
      const Ref callee{forward.call.module, forward.call.call->function};
      if (finding.severity == Severity::warning && callee.kind() == diagnose::Kind::identifier &&
          facts::is_parameter(program, callee) &&
          !is_given_wrapper(program, program.as_call(entry)))
        finding.severity = Severity::info;
    }
    if (sites.empty() && program.guarded_by_rank(forward.call.ref()) != RankTest::none &&
        one_rank_hands_over_wrapper(program, forward.call) && !others_pass_too(program, forward) &&
        !follows_pass_without_gradients(program, forward) && !never_has_gradients(program, forward))
      for (const Ref entry : entries_with_wrapper(program, forward.call.ref())) {
        if (std::find(entries.begin(), entries.end(), entry) != entries.end()) continue;
        entries.push_back(entry);
        report_forward(program, forward, entry, report);
      }
  }
}

namespace {

constexpr std::string_view kMismatch = "Received data size doesn't match expected size";

}  // namespace

void judge_rank0_forward_through_wrapper(const RunEvidence& run, RunReport& report) {
  const bool alone = run.number("forwards_on_one_rank") > 0;
  bool failed = !run.hung_ranks().empty() || run.document().contains("message");
  for (const Json& rank : run.ranks()) failed = failed || rank.contains("error");
  if (!alone || !failed) return;
  Finding& finding = report.add(Confidence::certain,
                                "one rank called the wrapper alone: its broadcast of the "
                                "buffers met another collective of the other ranks");
  finding.help = "Validate through ddp.module, or on all ranks.";
}

Price price_rank0_forward_through_wrapper(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  // Gloo raises it on a thread of its own, which ends the process: the launcher has its last words.
  const std::string last_words = broken.document().value("message", std::string());
  const bool mismatch = last_words.find(kMismatch) != std::string::npos;
  const std::vector<int> hung = broken.hung_ranks();
  price.reproduced = mismatch || !hung.empty() || broken.first("error") != nullptr;
  price.gone = cured.first("error") == nullptr && cured.hung_ranks().empty() &&
               !cured.of_every_rank("collectives").empty();
  price.cost = 1;
  price.unit = "epoch until the run dies";
  if (mismatch)
    price.seen = "the process aborts: " + std::string(kMismatch);
  else
    price.seen = hung.empty()
                     ? first_sentence(broken.text("error"))
                     : "nothing is printed: rank " + std::to_string(hung.front()) + " hangs";
  return price;
}

}  // namespace bench::pitfalls
