#include "scenarios/pitfalls/steps/gradient_sources.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <iterator>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

// Methods of tensors, of the containers that batches come in, of what scales a loss, and of the
// parser that its weights come from.
constexpr std::string_view kOfTensors[] = {
    "abs",       "add",        "all",          "any",
    "argmax",    "bfloat16",   "bmm",          "bool",
    "chunk",     "clamp",      "clone",        "contiguous",
    "copy_",     "cos",        "cpu",          "cuda",
    "cumsum",    "detach",     "div",          "dot",
    "double",    "eq",         "exp",          "expand",
    "expand_as", "flatten",    "float",        "format",
    "gather",    "ge",         "get",          "gt",
    "half",      "index_fill", "index_select", "int",
    "item",      "items",      "keys",         "lower",
    "le",        "log",        "log_softmax",  "logsumexp",
    "long",      "lt",         "masked_fill",  "masked_select",
    "matmul",    "max",        "mean",         "min",
    "mm",        "mul",        "narrow",       "ne",
    "neg",       "new_ones",   "new_tensor",   "new_zeros",
    "norm",      "numel",      "parse_args",   "parse_known_args",
    "numpy",     "permute",    "pop",          "pow",
    "prod",      "relu",       "repeat",       "reshape",
    "scale",     "scatter",    "select",       "sigmoid",
    "sin",       "size",       "softmax",      "split",
    "sqrt",      "square",     "squeeze",      "stack",
    "std",       "sub",        "sum",          "t",
    "tanh",      "to",         "tolist",       "topk",
    "transpose", "triu",       "type",         "type_as",
    "unbind",    "unfold",     "unsqueeze",    "values",
    "var",       "view",       "view_as",      "zero_"};

constexpr std::string_view kBuiltins[] = {"abs",  "bool",  "dict",  "enumerate", "float", "int",
                                          "iter", "len",   "list",  "max",       "min",   "next",
                                          "pow",  "range", "round", "sum",       "tuple", "zip"};

template <std::size_t kCount>
bool is_among(const std::string_view (&list)[kCount], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_model(const Program& program, Ref object) {
  if (!diagnose::stands_for_object(object)) return false;
  if (program.wrap_of(object) != nullptr) return true;
  if (program.derives_from(program.class_of(object), Api::module_class)) return true;
  const std::string text = lowered(object.text());
  const std::string name = text.substr(text.rfind('.') + 1);
  for (const std::string_view word : {"model", "net", "module", "student", "policy", "actor"})
    if (contains(name, word)) return true;
  return false;
}

bool takes_model(const Program& program, const CallRef& call) {
  const auto& tree = call.module->tree();
  const Ref arguments = Ref{call.module, call.call->node}.child(diagnose::Field::arguments);
  if (!arguments) return false;
  for (diagnose::NodeId at = tree[arguments.node].first_child; at != kNoNode;
       at = tree[at].next_sibling) {
    Ref given = call.ref().with(at);
    if (given.kind() == Kind::keyword_argument) given = given.child(diagnose::Field::value);
    if (given && is_model(program, given)) return true;
  }
  return false;
}

// criterion, loss_fn, mse_loss: not compute_loss, which may run the model.
bool is_named_loss(std::string_view name) {
  const std::string plain = lowered(name);
  for (const std::string_view verb : {"compute", "get", "calc", "train", "forward", "step"})
    if (plain.starts_with(verb)) return false;
  for (const std::string_view word : {"loss", "crit", "distance", "entropy", "divergence"})
    if (contains(plain, word)) return true;
  return false;
}

// torch.zeros(..., requires_grad=True), nn.Parameter(...): it is trained itself.
bool makes_leaf(const Program& program, const CallRef& call) {
  return call.call->name == "Parameter" || call.call->name == "requires_grad_" ||
         program.is_literal_true(call.keyword("requires_grad"));
}

bool is_entered(const FunctionRef& function, const std::vector<Ref>& calls) {
  return std::any_of(calls.begin(), calls.end(), [&](const Ref& call) {
    return call.module == function.module &&
           call.module->tree().contains(function.function->node, call.node);
  });
}

// A function of the program gives what its own calls give, which are among `calls`.
bool is_harmless_function(const Program& program, const CallRef& call, const FunctionRef& function,
                          const std::vector<Ref>& calls) {
  return !takes_model(program, call) || is_entered(function, calls);
}

bool is_harmless(const Program& program, const CallRef& call, const std::vector<Ref>& calls) {
  if (makes_leaf(program, call)) return false;
  const Ref function{call.module, call.call->function};
  if (call.call->api == Api::loss) return true;
  if (const FunctionRef known = program.callee(call))
    return is_harmless_function(program, call, known, calls);
  if (takes_model(program, call)) return false;
  if (!function || is_model(program, function)) return false;
  if (program.comes_from(function, Api::loss)) return true;
  const std::string_view name = call.call->name;
  const bool is_method = function.kind() == Kind::attribute && program.qualified(function).empty();
  if (is_method) {
    if (is_among(kOfTensors, name)) return true;
    return call.receiver().text() == "self" && is_named_loss(name);
  }
  // Functions of a library have no parameters of their own. Its classes may, but an object has to
  // be called as well, which is a call of its own.
  if (!program.qualified(function).empty()) return true;
  return function.kind() == Kind::identifier && (is_among(kBuiltins, name) || is_named_loss(name));
}

// @torch.no_grad() above the function, or `with torch.no_grad():` around all it returns.
bool gives_no_gradients(const Program& program, const FunctionRef& function) {
  const auto& returns = function.function->returns;
  return program.under_no_grad({function.module, function.function->body}) ||
         (!returns.empty() && std::all_of(returns.begin(), returns.end(), [&](NodeId value) {
           return program.under_no_grad({function.module, value});
         }));
}

}  // namespace

bool is_without_gradients(const Program& program, Ref node, Ref loss) {
  const FunctionRef end = program.enclosing_function(loss);
  for (const Ref place : diagnose::places_of(program, node)) {
    if (program.under_no_grad(place)) return true;
    if (program.enclosing_function(place) == end) break;
  }
  return false;
}

bool may_have_gradients(const Program& program, Ref loss) {
  // A call under no_grad, also in a function that is called so, or of a function that is: what it
  // is given leads back to nothing either.
  const auto without = [&](Ref call) {
    const FunctionRef known = program.callee(program.as_call(call));
    return is_without_gradients(program, call, loss) ||
           (known && gives_no_gradients(program, known));
  };
  const std::vector<Ref> calls = calls_behind(program, loss, without);
  return std::any_of(calls.begin(), calls.end(), [&](const Ref& node) {
    return !without(node) && !is_harmless(program, program.as_call(node), calls);
  });
}

}  // namespace bench::pitfalls::facts
