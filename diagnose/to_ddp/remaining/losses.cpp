// Losses whose meaning hangs on how many samples one process sees.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// Losses over pairs of samples or over the covariance of a batch, without underscores.
constexpr std::string_view kNames[] = {
    "supconloss",       "supervisedcontrastiveloss",
    "infonce",          "infonceloss",
    "ntxent",           "ntxentloss",
    "barlowtwinsloss",  "vicregloss",
    "cliploss",         "totalcodingrate",
    "simclrloss",       "multisimilarityloss",
    "npairsloss",       "maximalcodingratereduction",
    "mmdloss",          "mmdrbf",
    "batchhardtriplet", "batchhardtripletloss",
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

// dist.addmm_(1, -2, x, y.t()), torch.addmm(bias, x, y.t()): the product of the last two.
bool adds_product_of_samples(const CallRef& call) {
  Ref first, second;
  for (std::size_t i = 0; const Ref each = call.positional(i); ++i) {
    first = second;
    second = each;
  }
  return first && second && multiplies_samples(first.text(), second.text());
}

bool compares_samples(const CallRef& call) {
  static constexpr std::string_view kProducts[] = {"matmul", "mm"};
  const std::string_view name = call.call->name;
  if (name == "logdet" || name == "slogdet") return true;
  if (name == "addmm" || name == "addmm_") return adds_product_of_samples(call);
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
  return contains(name, "triplet") || contains(name, "loss") || contains(name, "contrast") ||
         contains(name, "codingrate");
}

// All that it is given are features: euclidean_dist(emb, emb), and not dist(emb, self.centers).
bool is_given_features(const CallRef& site) {
  const auto given = pitfalls::facts::arguments_of(site);
  return !given.empty() && std::all_of(given.begin(), given.end(), [](Ref each) {
    return is_feature(each.text()) || each.kind() == Kind::true_literal ||
           each.kind() == Kind::false_literal;
  });
}

// The calls in losses that lead to a helper which compares: dist(emb, emb) in a triplet loss.
std::vector<CallRef> calls_from_losses(const Program& program, const CallRef& comparison) {
  std::vector<CallRef> out;
  const FunctionRef helper = program.enclosing_function(comparison.ref());
  if (!helper) return out;
  for (const CallRef& site : program.call_sites(helper))
    if (is_given_features(site) && is_loss_code(program, site.ref())) out.push_back(site);
  return out;
}

// Code that each rank runs, or a method of an object that each rank makes: criterion(a, b) runs the
// forward pass of what `criterion` is, and self.criterion may be a method that a class hands out.
bool runs_as_loss(const Left& left, Ref node) {
  if (left.program.guarded_by_rank(node) != RankTest::none || left.program.is_evaluation(node))
    return false;
  if (left.is_run(node)) return true;
  const ClassRef owner = left.program.enclosing_class(node);
  if (!owner || !left.reached.has(node)) return false;
  const auto made = left.program.calls_named(owner.cls->name);
  return std::any_of(made.begin(), made.end(), [&](const CallRef& call) {
    return left.program.class_of_call(call) == owner && left.runs_on_every_rank(call.ref());
  });
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
      const auto tell = [&](const CallRef& place, bool known) {
        if (!runs_as_loss(left, place.ref())) return;
        // One line for each function that computes it.
        const FunctionRef around = left.program.enclosing_function(place.ref());
        if (known || functions.insert(around.function).second) places.push_back(place.ref());
      };
      if (is_known_loss(left.program, call))
        tell(call, true);
      else if (!compares_samples(call))
        continue;
      else if (is_loss_code(left.program, call.ref()))
        tell(call, false);
      else
        for (const CallRef& site : calls_from_losses(left.program, call)) tell(site, false);
    }
  left.tell(Harm::figures, places,
            "this loss compares the samples of a batch with each other, and a rank has only its "
            "share of them: fewer pairs, another loss. Gather the features of all ranks with "
            "gradients (torch.distributed.nn.functional.all_gather), or expect other results.");
}

namespace {

// logit.size(0), x.shape[0], len(images): the samples at hand, by the name of what holds them; a
// list of tasks, or an output in time, is counted so as well.
bool counts_samples(std::string_view text) {
  const bool counts =
      text.ends_with(".size(0)") || text.ends_with(".shape[0]") || text.ends_with(".size()[0]");
  if (counts) return true;
  return text.starts_with("len(") && text.find_first_of(".(", 4) == std::string_view::npos &&
         pitfalls::says_any(text, {"batch", "image", "img", "sample", "label", "target", "logit"});
}

// The number of samples, or the name of it: n of n, c, h, w = logit.size().
bool is_size_of_batch(const Program& program, Ref divisor) {
  if (counts_samples(divisor.text())) return true;
  if (divisor.kind() != Kind::identifier) return false;
  const FunctionRef function = program.enclosing_function(divisor);
  const auto& tree = divisor.module->tree();
  const auto defs = divisor.module->defs_of(divisor.text(), false);
  NodeId last = kNoNode;
  for (const std::uint32_t index : defs)
    if (const Def& def = divisor.module->defs()[index];
        program.enclosing_function({divisor.module, def.target}) == function &&
        def.target < divisor.node)
      last = def.target;
  if (last == kNoNode) return false;
  NodeId at = tree[last].parent;
  while (at != kNoNode && (tree[at].kind == Kind::tuple || tree[at].kind == Kind::list))
    at = tree[at].parent;
  if (at == kNoNode || tree[at].kind != Kind::assignment) return false;
  const std::string_view target = tree.text(tree.child(at, Field::left));
  const std::string_view value = tree.text(tree.child(at, Field::right));
  if (target == divisor.text()) return counts_samples(value);
  const bool is_first = target.starts_with(std::string(divisor.text()) + ",") ||
                        target.starts_with("(" + std::string(divisor.text()) + ",");
  return is_first && (value.ends_with(".size()") || value.ends_with(".shape"));
}

// criterion(logit, target) of a loss of PyTorch that takes the mean.
bool is_mean_loss(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call) return false;
  const auto is_mean = [&](const CallRef& made) {
    const Ref reduction = made.keyword("reduction");
    return !is_summed(program, made) && !made.keyword("reduce") &&
           (!reduction || program.string(reduction) == "mean");
  };
  if (contains(call.call->path, "functional."))
    return (call.call->name.ends_with("_loss") || contains(call.call->name, "cross_entropy")) &&
           is_mean(call);
  const auto& sources = program.module_sources({call.module, call.call->function});
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->api == Api::loss && is_mean(made);
  });
}

// The mean that is divided: what the name was given above, or the call itself.
bool divides_mean(const Program& program, Ref dividend, NodeId division) {
  if (dividend.kind() == Kind::call) return is_mean_loss(program, dividend);
  if (dividend.kind() != Kind::identifier) return false;
  const FunctionRef function = program.enclosing_function(dividend);
  bool any = false;
  for (const std::uint32_t index : dividend.module->defs_of(dividend.text(), false)) {
    const Def& def = dividend.module->defs()[index];
    if (program.enclosing_function({dividend.module, def.target}) != function ||
        def.target >= division ||
        (def.value != kNoNode && dividend.module->tree().contains(def.value, division)) ||
        def.kind != DefKind::assign || def.value == kNoNode)
      continue;
    if (!is_mean_loss(program, dividend.with(def.value))) return false;
    any = true;
  }
  return any;
}

// loss /= n; loss.backward(), or what the function gives back; not a figure for a log.
bool is_trained_by(const Program& program, Ref division) {
  const auto& tree = division.module->tree();
  const NodeId around = tree[division.node].parent;
  if (tree[around].kind == Kind::return_statement) return true;
  Ref name;
  if (division.kind() == Kind::augmented_assignment)
    name = division.child(Field::left);
  else if (tree[around].kind == Kind::assignment)
    name = division.with(tree.child(around, Field::left));
  if (!name || name.kind() != Kind::identifier) return false;
  const FunctionRef function = program.enclosing_function(division);
  const Ref scope = division.with(function ? function.function->body : NodeId{0});
  for (NodeId at = division.node; at < tree[scope.node].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != name.text()) continue;
    const NodeId returned = tree.ancestor(at, Kind::return_statement);
    if (returned != kNoNode && tree.contains(scope.node, returned)) return true;
    const CallRef call = program.as_call(division.with(tree[tree[at].parent].parent));
    if (call && call.call->name == "backward") return true;
  }
  return false;
}

// In the forward pass of what is wrapped the size was that of a replica, as it is now.
bool is_in_wrapped(const Program& program, Ref node) {
  const ClassRef around = program.enclosing_class(node);
  const auto classes = pitfalls::facts::wrapped_classes(program, Wrapper::ddp);
  return around && std::find(classes.begin(), classes.end(), around) != classes.end();
}

}  // namespace

void tell_means_divided_again(Left& left) {
  if (!left.trains()) return;
  std::vector<Ref> places;
  for (const Module* module : left.program.modules()) {
    const auto& tree = module->tree();
    for (NodeId node = 0; node < tree.size(); ++node) {
      if ((tree[node].kind != Kind::binary && tree[node].kind != Kind::augmented_assignment) ||
          tree[node].op != Op::divide)
        continue;
      const Ref division{module, node};
      if (is_size_of_batch(left.program, division.child(Field::right)) &&
          divides_mean(left.program, division.child(Field::left), node) &&
          is_trained_by(left.program, division) && runs_as_loss(left, division) &&
          !is_in_wrapped(left.program, division))
        places.push_back(division);
    }
  }
  left.tell(Harm::figures, places,
            "this loss is a mean, and is divided by the size of the batch once more: that was the "
            "size for all GPUs, and is a rank's share now, so that the loss and its gradients "
            "become N times what they were. Multiply the size by dist.get_world_size().");
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
