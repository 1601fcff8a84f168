// Losses whose meaning hangs on how many samples one process sees.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// Losses over pairs of samples or over the covariance of a batch, without underscores.
constexpr std::string_view kNames[] = {
    "supconloss",      "supervisedcontrastiveloss",
    "infonce",         "infonceloss",
    "ntxent",          "ntxentloss",
    "barlowtwinsloss", "vicregloss",
    "cliploss",        "totalcodingrate",
    "simclrloss",      "multisimilarityloss",
    "npairsloss",      "maximalcodingratereduction",
};

std::string plain(std::string_view name) {
  std::string out = lowered(name);
  std::erase(out, '_');
  return out;
}

bool is_known_name(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), plain(name)) != std::end(kNames);
}

// SupConLoss(temperature) and info_nce(a, b), and no supcon_loss(x) of what a line above has made.
bool is_known_loss(const Program& program, const CallRef& call) {
  const bool is_class = std::isupper(static_cast<unsigned char>(call.call->name.front())) != 0;
  return (is_known_name(call.call->name) && (is_class || program.callee(call))) ||
         call.call->path.starts_with("pytorch_metric_learning.losses") ||
         call.call->path.starts_with("pytorch_metric_learning.miners");
}

// z for z.t(), z.T and z.transpose(0, 1); empty for anything else.
std::string_view transposed(std::string_view text) {
  for (const std::string_view end : {".t()", ".T", ".transpose(0, 1)", ".transpose(1, 0)"})
    if (text.ends_with(end)) return text.substr(0, text.size() - end.size());
  return {};
}

// Features of the batch: a plain name, which no layer, weight or centre has.
bool is_feature(std::string_view text) {
  const std::string word = lowered(text);
  return !text.empty() && text.find_first_of(".([") == std::string_view::npos &&
         !contains(word, "weight") && !contains(word, "proto") && !contains(word, "center") &&
         !contains(word, "bank") && !contains(word, "queue") && !contains(word, "text");
}

// matmul(z, z.T), mm(a, b.t()): how much each sample is like each other one.
bool multiplies_samples(std::string_view left, std::string_view right) {
  const std::string_view other = transposed(right);
  return is_feature(left) && is_feature(other);
}

bool compares_samples(const CallRef& call) {
  static constexpr std::string_view kProducts[] = {"matmul", "mm"};
  const std::string_view name = call.call->name;
  if (name == "logdet" || name == "slogdet") return true;
  const Ref first =
      call.receiver() && call.receiver().text() != "torch" ? call.receiver() : call.positional(0);
  const Ref second = first == call.positional(0) ? call.positional(1) : call.positional(0);
  if (!first || !second) return false;
  if (name == "cdist") return first.text() == second.text() && is_feature(first.text());
  return std::find(std::begin(kProducts), std::end(kProducts), name) != std::end(kProducts) &&
         multiplies_samples(first.text(), second.text());
}

// A function or a class that is called a loss.
bool is_loss_code(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  const ClassRef cls = program.enclosing_class(node);
  const std::string name = (function ? lowered(function.function->name) : "") + " " +
                           (cls ? lowered(cls.cls->name) : "");
  // Of a class that has one of the names, the place where it is made is told.
  if (cls && is_known_name(cls.cls->name)) return false;
  return contains(name, "loss") || contains(name, "contrast") || contains(name, "codingrate");
}

// loss = criterion(a, b) / n, also on a line below.
bool is_divided(const Program& program, Ref value) {
  const auto& tree = value.module->tree();
  NodeId at = value.node;
  for (NodeId up = tree[at].parent; up != kNoNode && tree[up].kind != Kind::block;
       at = up, up = tree[up].parent) {
    if (tree[up].kind == Kind::binary && (tree[up].op == Op::divide)) return true;
    if (tree[up].kind == Kind::attribute && contains(tree.text(up), ".mean")) return true;
    if (tree[up].kind == Kind::module) break;
  }
  const std::string_view name = program.assigned_name({value.module, value.node});
  if (name.empty()) return false;
  const FunctionRef function = program.enclosing_function(value);
  const std::string body(function ? function.module->text(function.function->node)
                                  : value.module->tree().source());
  for (const std::string_view form : {" / ", " /= ", "/", ".div", ".mean("})
    if (contains(body, std::string(name) + std::string(form))) return true;
  return false;
}

bool is_summed(const Program& program, const CallRef& loss) {
  const Ref reduction = loss.keyword("reduction");
  if (reduction) return program.string(reduction) == "sum";
  const Ref average = loss.keyword("size_average");
  return average && program.is_literal_false(average);
}

// The loss of a call, or the one that its criterion was made with; empty where it is not summed.
CallRef summed_loss(const Program& program, const CallRef& call) {
  const auto is_loss = [](const CallRef& made) {
    return made.call->api == Api::loss || contains(made.call->path, "functional.");
  };
  if (contains(call.call->path, "functional.")) return is_summed(program, call) ? call : CallRef{};
  for (const Source& source : program.sources({call.module, call.call->function})) {
    const CallRef made = program.as_call(source.ref);
    if (made && is_loss(made) && is_summed(program, made)) return made;
  }
  return {};
}

}  // namespace

void tell_losses_of_batch(Left& left) {
  if (!left.trains() || left.program.uses(Api::all_gather) ||
      left.program.uses(Api::differentiable_gather))
    return;
  std::vector<Ref> places;
  std::set<const Function*> functions;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const bool known = is_known_loss(left.program, call);
      if (!known && !(compares_samples(call) && is_loss_code(left.program, call.ref()))) continue;
      if (!left.runs_on_every_rank(call.ref()) || left.program.is_evaluation(call.ref())) continue;
      // One line for each function that computes it.
      const FunctionRef around = left.program.enclosing_function(call.ref());
      if (!known && !functions.insert(around.function).second) continue;
      places.push_back(call.ref());
    }
  left.tell(Harm::figures, places,
            "this loss compares the samples of a batch with each other, and a rank has only its "
            "share of them: fewer pairs, another loss. Gather the features of all ranks with "
            "gradients (torch.distributed.nn.functional.all_gather), or expect other results.");
}

void tell_summed_losses(Left& left) {
  std::vector<Ref> places;
  for (const TrainingLoop& loop : left.program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = pitfalls::facts::loss_of(backward);
      if (!loss || !left.runs_on_every_rank(backward.ref()) || is_divided(left.program, loss))
        continue;
      for (const Ref& each : pitfalls::facts::calls_behind(left.program, loss)) {
        const CallRef call = left.program.as_call(each);
        const CallRef made = call ? summed_loss(left.program, call) : CallRef{};
        if (made && !is_divided(left.program, each)) places.push_back(made.ref());
      }
    }
  left.tell(Harm::figures, places,
            "this loss is a sum over the batch, and DDP averages the gradients of the ranks: they "
            "become 1/N of what they were. Multiply the loss by dist.get_world_size(), or take the "
            "mean and set the learning rate anew.");
}

}  // namespace bench::diagnose
