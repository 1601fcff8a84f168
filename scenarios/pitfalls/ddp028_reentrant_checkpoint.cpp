#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

constexpr std::string_view kTwice =
    "re-entrant checkpointing with find_unused_parameters=True: \"Expected to mark a variable "
    "ready only once\"";
constexpr std::string_view kPerhapsTwice =
    "re-entrant checkpointing under DDP fails when a layer is checkpointed twice or weights are "
    "shared";
constexpr std::string_view kNoGraph =
    "re-entrant checkpointing of the model's raw input, which needs no gradient: no graph is "
    "recorded, and the layers in it get no gradients";

bool same_or_derived(const Program& program, ClassRef cls, ClassRef base) {
  const auto& lineage = program.lineage(cls);
  return std::find(lineage.begin(), lineage.end(), base) != lineage.end();
}

constexpr std::int16_t kFirstWithChoice = 111;  // PyTorch 1.11 has use_reentrant

// What is known of the class that the checkpoint stands in.
enum class Place : std::uint8_t {
  nowhere,  // nothing calls the function
  unknown,  // no object of the class is made, or what is wrapped does not lead here, as far as seen
  part,     // of a model that is wrapped
  wrapped,  // the class of the model itself
};

// An object of the class, or of one derived from it, may exist: it is made, or handed on.
bool may_be_made(const Program& program, ClassRef cls) {
  const auto made = [&](ClassRef each) {
    return !program.calls_named(each.cls->name).empty() || !program.handed_on(each).empty();
  };
  const auto& derived = program.derived_of(cls);
  return made(cls) || std::any_of(derived.begin(), derived.end(), made);
}

// Of a function beside the classes: a part of the model where a forward pass comes by.
Place place_of_function(const Program& program, const std::vector<ClassRef>& wrapped,
                        Ref checkpoint) {
  const FunctionRef function = program.enclosing_function(checkpoint);
  for (const ClassRef& cls : wrapped) {
    const FunctionRef forward = program.method(cls, "forward");
    if (!forward) continue;
    const auto reached = program.reached({forward.module, forward.function->body});
    if (std::find(reached.begin(), reached.end(), function) != reached.end()) return Place::part;
  }
  return facts::is_reachable(program, checkpoint) ? Place::unknown : Place::nowhere;
}

Place place_of(const Program& program, const std::vector<ClassRef>& wrapped, Ref checkpoint) {
  const ClassRef cls = program.enclosing_class(checkpoint);
  if (!cls) return place_of_function(program, wrapped, checkpoint);
  if (!may_be_made(program, cls)) return Place::unknown;
  const bool known = std::any_of(wrapped.begin(), wrapped.end(), [&](const ClassRef& each) {
    return same_or_derived(program, each, cls);
  });
  if (!known) return Place::unknown;
  const FunctionRef method = program.enclosing_function(checkpoint);
  if (method && method.function->name != "forward" &&
      program.calls_named(method.function->name).empty() && program.handed_on(method).empty())
    return Place::nowhere;
  const bool directly =
      std::any_of(program.wraps().begin(), program.wraps().end(), [&](const Wrap& wrap) {
        return std::any_of(wrap.classes.begin(), wrap.classes.end(), [&](const ClassRef& each) {
          return same_or_derived(program, each, cls);
        });
      });
  return directly ? Place::wrapped : Place::part;
}

// The argument is a parameter of forward, or that through checkpoints of its kin.
bool is_raw(const Program& program, Ref argument, const CallRef& checkpoint, int depth) {
  if (argument.kind() != Kind::identifier || depth > 2) return false;
  const auto& sources = program.sources(argument);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& each) {
    if (each.how == Source::How::parameter) return true;
    const CallRef call = program.as_call(each.ref);
    return call &&
           (call.call == checkpoint.call || (call.call->api == Api::checkpoint &&
                                             is_raw(program, call.positional(1), call, depth + 1)));
  });
}

// What the program calls the wrapped model with comes from no other model: not decoder(encoder(x)).
bool gets_data_only(const Program& program, ClassRef cls) {
  bool called = false;
  for (const diagnose::ForwardCall& forward : program.forward_calls()) {
    const auto& classes = forward.wrap->classes;
    if (std::none_of(classes.begin(), classes.end(),
                     [&](const ClassRef& each) { return same_or_derived(program, each, cls); }))
      continue;
    called = true;
    for (std::size_t i = 0; const Ref argument = forward.call.positional(i); ++i)
      for (const Ref& behind : facts::calls_behind(program, argument)) {
        const CallRef call = program.as_call(behind);
        const Ref function{call.module, call.call->function};
        const ClassRef called_class = program.class_of(function);
        if (program.wrap_of(function) != nullptr ||
            (called_class && program.derives_from(called_class, Api::module_class)))
          return false;
      }
  }
  return called;
}

// Every tensor that goes into the checkpoint is an input of the wrapped model itself, and the
// program asks for no gradient of it.
bool takes_raw_input(const Program& program, const CallRef& checkpoint) {
  const FunctionRef method = program.enclosing_function(checkpoint.ref());
  if (!method || method.function->name != "forward" || checkpoint.has_splat()) return false;
  if (program.mentions("requires_grad_(") || program.mentions("requires_grad=True") ||
      program.mentions("enable_input_require_grads") || program.mentions("requires_grad = True"))
    return false;
  bool any = false;
  for (std::size_t i = 1; const Ref argument = checkpoint.positional(i); ++i) {
    if (!is_raw(program, argument, checkpoint, 0)) return false;
    any = true;
  }
  return any && gets_data_only(program, program.enclosing_class(checkpoint.ref()));
}

// DDP(net, find_unused_parameters=True) without static_graph, which takes care of it.
bool searches_for_unused(const Program& program) {
  const bool made_static = !program.calls_named("_set_static_graph").empty();
  return std::any_of(program.wraps().begin(), program.wraps().end(), [&](const Wrap& wrap) {
    return wrap.kind == Wrapper::ddp && !made_static &&
           program.is_literal_true(wrap.call.keyword("find_unused_parameters")) &&
           !program.is_literal_true(wrap.call.keyword("static_graph"));
  });
}

// An option decides, and it may be off.
bool is_optional(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    return holds && text != "self.training" && !text.starts_with("torch.is_grad_enabled");
  });
}

// Layers that get no gradient are marked by nobody.
bool freezes_some(const Program& program) {
  return program.mentions("requires_grad = False") || program.mentions("requires_grad=False") ||
         program.mentions("requires_grad_(False)");
}

void check_checkpoint(const Program& program, const std::vector<ClassRef>& wrapped,
                      const CallRef& call, Report& report) {
  const Ref flag = call.keyword("use_reentrant");
  if (flag && !program.is_literal_true(flag)) return;
  if (!flag && call.has_splat() && !call.positional(0)) return;
  const Place place = place_of(program, wrapped, call.ref());
  if (place == Place::nowhere || program.under_no_grad(call.ref())) return;
  const bool trains = !is_optional(program, call.ref()) && !facts::only_evaluates(program);
  const bool raw = place == Place::wrapped && takes_raw_input(program, call);
  const bool twice = trains && !raw && place != Place::unknown && searches_for_unused(program);
  Finding& finding = [&]() -> Finding& {
    if (raw && trains) return report.at(call.ref(), Confidence::likely, std::string(kNoGraph));
    if (twice) return report.at(call.ref(), Confidence::certain, std::string(kTwice));
    return report.at(call.ref(), Confidence::check, std::string(kPerhapsTwice));
  }();
  if (raw) finding.severity = Severity::warning;
  if (!trains || (!raw && !twice)) finding.severity = Severity::info;
  if (twice && freezes_some(program)) tell_as_note(finding);
  const bool is_known = program.newest().torch >= kFirstWithChoice;
  finding.help = is_known ? "Pass use_reentrant=False."
                          : "Pass use_reentrant=False, which PyTorch has from 1.11 on.";
  if (!flag && is_known)
    add_argument(call, "use_reentrant=False", "Checkpoint without re-entering autograd", finding);
}

// gradient_checkpointing_kwargs={"use_reentrant": True}, or none: until Transformers 5 that is the
// default.
bool re_enters(const Program& program, const CallRef& arguments) {
  const Ref options = arguments.keyword("gradient_checkpointing_kwargs");
  if (!options) return true;
  const auto& sources = program.sources(options);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.ref.kind() == Kind::dictionary &&
           facts::contains(source.ref.text(), "use_reentrant") &&
           facts::contains(source.ref.text(), "True") &&
           !facts::contains(source.ref.text(), "False");
  });
}

// True if ddp else None: set in the runs that count.
bool may_be_true(const Program& program, Ref value) {
  const auto sources = value ? program.sources(value) : std::vector<Source>{};
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && program.is_literal_true(source.ref);
  });
}

void check_trainer_arguments(const Program& program, Report& report) {
  for (const CallRef& arguments : program.calls(Api::hf_training_arguments))
    if (program.is_literal_true(arguments.keyword("gradient_checkpointing")) &&
        may_be_true(program, arguments.keyword("ddp_find_unused_parameters")) &&
        re_enters(program, arguments))
      report
          .at(arguments.keyword("gradient_checkpointing"), Confidence::likely,
              "gradient_checkpointing with ddp_find_unused_parameters=True: parameters are marked "
              "ready twice")
          .help =
          "Set ddp_find_unused_parameters=False, or "
          "gradient_checkpointing_kwargs={\"use_reentrant\": False}.";
}

}  // namespace

void check_reentrant_checkpoint(const Program& program, Report& report) {
  if (program.has_ddp()) {
    const std::vector<ClassRef> wrapped = facts::wrapped_classes(program, Wrapper::ddp);
    for (const CallRef& call : program.calls(Api::checkpoint))
      check_checkpoint(program, wrapped, call, report);
  }
  check_trainer_arguments(program, report);
}

}  // namespace bench::pitfalls
