#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// model() is given nothing that could be cut: DataParallel makes one replica for it.
bool runs_one_replica(const diagnose::ForwardCall& forward) {
  return forward.wrap->kind == Wrapper::data_parallel &&
         forward.call.module->arguments(forward.call.call->node).empty() &&
         !forward.call.has_splat();
}

// forward returns what a loss function gives, as its only value or as the element of a tuple.
bool forward_returns_loss(const Program& program, const Wrap& wrap, int element) {
  for (const ClassRef& cls : wrap.classes) {
    const FunctionRef forward = program.method(cls, "forward");
    if (!forward || forward.function->returns.empty()) continue;
    bool all = true;
    for (NodeId value : forward.function->returns) {
      const auto& tree = forward.module->tree();
      if (element >= 0 && tree[value].kind == diagnose::Kind::tuple)
        value = tree.child_at(value, static_cast<std::size_t>(element));
      bool is_loss = false;
      for (const Source& source : program.sources({forward.module, value})) {
        const CallRef call = program.as_call(source.ref);
        if (!call || source.how != Source::How::value) continue;
        is_loss = is_loss || call.call->api == Api::loss ||
                  program.comes_from({call.module, call.call->function}, Api::loss);
      }
      all = all && is_loss;
    }
    if (all) return true;
  }
  return false;
}

// images[0, 0]: one element of a tensor, no item of a tuple.
bool has_several_indices(Ref subscript) {
  const auto& tree = subscript.module->tree();
  const NodeId value = tree.child(subscript.node, Field::value);
  int indices = 0;
  for (NodeId at = tree[subscript.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling)
    indices += at != value ? 1 : 0;
  return indices > 1;
}

// kl for kl.to(device) and kl.float(), which leave as many values as there are.
Ref moved_by(const Program& program, Ref value) {
  constexpr std::string_view kMoves[] = {"to", "cuda", "cpu", "float", "double", "half"};
  const CallRef call = program.as_call(value);
  const bool moves =
      call && std::find(std::begin(kMoves), std::end(kMoves), call.call->name) != std::end(kMoves);
  return moves ? call.receiver() : Ref{};
}

// An item of what a DataParallel model gives, by a name or by its place: losses[0], nothing
// between.
bool is_output(const Program& program, Ref value, int depth = 0) {
  constexpr int kSteps = 4;
  if (!value || depth > kSteps) return false;
  if (const Ref moved = moved_by(program, value)) return is_output(program, moved, depth + 1);
  if (value.kind() == Kind::subscript)
    return !has_several_indices(value) && is_output(program, value.child(Field::value), depth + 1);
  if (value.kind() != Kind::identifier) return false;
  const auto& sources = program.sources(value);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    if (source.ref.kind() == Kind::subscript && source.how == Source::How::value)
      return is_output(program, source.ref, depth + 1);
    if (const Ref moved = moved_by(program, source.ref); moved && moved != value)
      return is_output(program, moved, depth + 1);
    if (source.how != Source::How::value && source.how != Source::How::element) return false;
    const auto& forwards = program.forward_calls();
    return std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
      return forward.call.ref() == source.ref && forward.wrap->kind == Wrapper::data_parallel &&
             !runs_one_replica(forward);
    });
  });
}

// What is added up in a + b * weight, as far as it is an output.
bool adds_output(const Program& program, Ref sum) {
  std::vector<Ref> pending{sum};  // sums of any length cost no call stack
  while (!pending.empty()) {
    const Ref at = pending.back();
    pending.pop_back();
    if (at.kind() != Kind::binary) {
      if (is_output(program, at)) return true;
      continue;
    }
    const diagnose::Op op = (*at.module)[at.node].op;
    // 0 * output[0] keeps a graph whole and is no loss.
    if (op == diagnose::Op::multiply &&
        (at.child(Field::left).text() == "0" || at.child(Field::right).text() == "0"))
      continue;
    if (op != diagnose::Op::add && op != diagnose::Op::multiply) continue;
    pending.push_back(at.child(Field::left));
    pending.push_back(at.child(Field::right));
  }
  return false;
}

// loss += losses[0] above loss.backward(), where `losses` comes out of a DataParallel model. On one
// GPU backward() asks for a single number, so that is what the model gives on each of them.
void check_added_outputs(const Program& program, const CallRef& backward, Report& report) {
  Ref loss = backward.receiver();
  if (const CallRef scaled = program.as_call(loss); scaled && scaled.call->name == "scale")
    loss = scaled.positional(0);  // of a GradScaler
  if (backward.positional(0) || loss.kind() != Kind::identifier) return;
  const auto& module = *backward.module;
  bool added = false;
  for (const std::uint32_t index : module.defs_of(loss.text(), false)) {
    const auto& def = module.defs()[index];
    if (def.target > backward.call->node || def.value == diagnose::kNoNode ||
        module.function_of(def.target) != module.function_of(backward.call->node))
      continue;
    const Ref value{&module, def.value};
    const CallRef reduced = program.made_by(value);
    if (reduced && (reduced.call->name == "mean" || reduced.call->name == "sum")) return;
    const bool adds = def.kind == diagnose::DefKind::augmented || value.kind() == Kind::binary;
    added = added || (adds && adds_output(program, value));
  }
  if (!added) return;
  as_in_trial(
      report.at(
          backward.ref(), Confidence::likely,
          "a part of this loss comes out of DataParallel, which gives one value for each GPU: the "
          "sum is a vector, and backward() raises RuntimeError"),
      "vector")
      .help = "Average the part before it is added: loss += losses[0].mean().";
}

// The wrapper takes several GPUs where there are several: no device_ids, or more than one.
bool takes_several(const Program& program, const Wrap& wrap) {
  if (facts::visible_gpus(program) == 1 || wrap.call.has_splat()) return false;
  return !wrap.call.argument(1, "device_ids") || facts::device_ids(program, wrap.call).size() > 1;
}

// outputs for outputs.loss, outputs["loss"] and loss = outputs[0].
Ref container_of(const Program& program, Ref value) {
  constexpr int kSteps = 4;
  for (int step = 0; step < kSteps; ++step) {
    if (value.kind() == Kind::identifier) {
      const auto& sources = program.sources(value);
      const Kind kind = sources.size() == 1 ? sources.front().ref.kind() : Kind::other;
      if (kind != Kind::attribute && kind != Kind::subscript) break;
      value = sources.front().ref;
    }
    if (value.kind() == Kind::attribute)
      value = value.child(Field::object);
    else if (value.kind() == Kind::subscript)
      value = value.child(Field::value);
    else
      break;
  }
  return value;
}

// outputs.update({key: value.mean() ...}): the items are other ones then.
bool is_changed(const Program& program, Ref container) {
  const auto updates = program.calls_named("update");
  return std::any_of(updates.begin(), updates.end(), [&](const CallRef& update) {
    return update.receiver() && program.same_variable(update.receiver(), container);
  });
}

// loss.backward() of what a DataParallel model gives as it is, from classes that are not there:
// backward() asks for one number, and several GPUs give one each at least.
bool is_gathered(const Program& program, const CallRef& backward) {
  if (!backward.receiver() || backward.positional(0)) return false;
  const Ref outputs = container_of(program, backward.receiver());
  if (!is_output(program, outputs) || is_changed(program, outputs)) return false;
  const auto& sources = program.sources(outputs);
  const auto& forwards = program.forward_calls();
  return std::all_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
    return std::none_of(sources.begin(), sources.end(),
                        [&](const Source& source) { return source.ref == forward.call.ref(); }) ||
           takes_several(program, *forward.wrap);
  });
}

// loss = loss.mean() or torch.mean(loss).
bool is_mean_of(const Program& program, Ref value, std::string_view name) {
  // loss.mean() if gpus > 1 else loss
  if (value.kind() == Kind::conditional)
    value = value.with(value.module->tree()[value.node].first_child);
  const CallRef mean = program.as_call(value);
  if (!mean || mean.call->name != "mean") return false;
  const Ref averaged =
      facts::contains(mean.ref().text(), "torch.mean(") ? mean.positional(0) : mean.receiver();
  return averaged && averaged.text() == name;
}

// if loss.dim() > 0: or if isinstance(net, nn.DataParallel): what is asked for is the vector
// itself.
bool asks_for_vector(const Program& program, Ref target) {
  const auto guards = program.guards(target);
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    for (const char* each : {".dim()", ".ndim", ".numel()", ".shape", ".size(", "DataParallel"})
      if (facts::contains(text, each)) return guard.holds;
    return false;
  });
}

// if device_count() > 1: loss = loss.mean() between the forward pass and backward(), under the test
// that wraps the model. What divides or scales the loss below may stand there, too.
bool is_averaged_where_wrapped(const Program& program, const CallRef& backward, Ref loss,
                               const diagnose::ForwardCall& forward) {
  const auto& module = *backward.module;
  const bool is_attribute = loss.kind() == Kind::attribute;
  if (loss.module != &module || (!is_attribute && loss.kind() != Kind::identifier)) return false;
  const Ref name = is_attribute ? loss.child(Field::attribute) : loss;
  const auto& defs = module.defs_of(name.text(), is_attribute);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = module.defs()[index];
    const Ref target{&module, def.target};
    return def.value != diagnose::kNoNode && def.target < backward.call->node &&
           target.text() == loss.text() &&
           (forward.call.module != &module || def.target > forward.call.call->node ||
            def.value == forward.call.call->node) &&
           module.function_of(def.target) == module.function_of(backward.call->node) &&
           is_mean_of(program, {&module, def.value}, loss.text()) &&
           (runs_wherever(program, target, backward.ref()) || asks_for_vector(program, target) ||
            (!is_unconditional(program, target) &&
             runs_wherever(program, target, forward.wrap->call.ref())));
  });
}

struct Loss {
  Ref value;
  bool is_divided = false;
};

// loss for scaler.scale(loss), for (loss / steps), and for what amp.scale_loss(loss, optimizer)
// gives the name of a with statement: they leave as many values as there are.
Loss unscaled(const Program& program, Ref loss) {
  constexpr int kSteps = 3;
  Loss out;
  for (int step = 0; loss && step < kSteps; ++step) {
    Ref at = loss;
    if (at.kind() == Kind::identifier) {
      const auto sources = program.sources(at);
      if (sources.size() == 1 && sources.front().how == Source::How::value)
        at = sources.front().ref;
    }
    const CallRef call = program.as_call(at);
    const bool is_divided = at.kind() == Kind::binary && (*at.module)[at.node].op == Op::divide;
    if (call && (call.call->name == "scale" || call.call->name == "scale_loss")) {
      loss = call.positional(0);
    } else if (is_divided && (diagnose::stands_for_object(at.child(Field::left)) ||
                              at.child(Field::left).kind() == Kind::call)) {
      loss = at.child(Field::left);
      // By the number of GPUs, or of samples; the steps of an accumulation make no mean of it.
      const std::string divisor = facts::lowered(at.child(Field::right).text());
      out.is_divided = !facts::contains(divisor, "accum") && !facts::contains(divisor, "step") &&
                       at.child(Field::right).kind() != Kind::integer;
    } else {
      break;
    }
  }
  out.value = loss;
  return out;
}

}  // namespace

void check_loss_inside_dp_forward(const Program& program, Report& report) {
  for (const CallRef& backward : program.calls_named("backward")) {
    const Loss unscaled_loss = unscaled(program, backward.receiver());
    Ref loss = unscaled_loss.value;
    if (!loss) continue;
    if (program.has_data_parallel()) check_added_outputs(program, backward, report);
    const CallRef direct = program.as_call(loss);
    if (direct && direct.receiver() && direct.call->name != "sum") continue;
    bool summed = false;
    // loss.sum().backward(), or loss = loss.sum() above it
    for (int depth = 0; depth < 2 && loss; ++depth) {
      const auto& sources = program.sources(loss);
      const CallRef inner = sources.size() == 1 ? program.as_call(sources.front().ref) : CallRef{};
      if (!inner || inner.call->name != "sum" || !inner.receiver() || summed) break;
      summed = true;
      loss = inner.receiver();
    }
    // loss.sum() / device_count() is their mean.
    if (summed && unscaled_loss.is_divided) continue;
    bool told = false;
    for (const Source& source : program.sources(loss)) {
      if (source.how != Source::How::value && source.how != Source::How::element) continue;
      for (const auto& forward : program.forward_calls()) {
        if (forward.call.ref() != source.ref || forward.wrap->kind != Wrapper::data_parallel)
          continue;
        if (runs_one_replica(forward) ||
            !forward_returns_loss(program, *forward.wrap, source.element) ||
            is_averaged_where_wrapped(program, backward, unscaled_loss.value, forward))
          continue;
        told = true;
        Finding& finding = report.at(
            backward.ref(), Confidence::certain,
            summed
                ? "the losses of the DataParallel shards are summed: the gradient is as many "
                  "times too large as there are GPUs"
                : "forward returns a scalar loss, so DataParallel gives a vector with one loss for "
                  "each GPU, and backward() raises RuntimeError");
        finding.help =
            "Average it first: loss = loss.mean(); it is exact when all shards are equal.";
        as_in_trial(finding, summed ? "summed" : "vector");
        if (!summed)
          replace(backward.receiver(), std::string(loss.text()) + ".mean()",
                  "Average the shards' losses", finding);
      }
    }
    if (!told && !summed && is_gathered(program, backward))
      as_in_trial(
          report.at(
              backward.ref(), Confidence::likely,
              "this comes out of DataParallel as it is, with one value for each GPU at least, and "
              "backward() asks for a single one: RuntimeError on several GPUs"),
          "vector")
          .help = "Average it first: loss = loss.mean(); it is exact when all shards are equal.";
  }
}

namespace {

constexpr std::string_view kScalarOutputs =
    "grad can be implicitly created only for scalar outputs";

double gradient_ratio(const RunEvidence& run) {
  return run.number("gradient_sum") / run.number("reference_gradient_sum");
}

constexpr double kSameRatio = 1.001;  // rounding of a few additions

}  // namespace

void judge_loss_inside_dp_forward(const RunEvidence& run, RunReport& report) {
  const double losses = run.number("loss_elements");
  if (!(losses > 1)) return;
  const std::string error = run.error_with(kScalarOutputs);
  if (error.empty() && !(gradient_ratio(run) > kSameRatio)) return;
  std::string message = "the loss is a vector of " + figure(losses) + " elements, one a GPU: ";
  message += error.empty() ? "its sum makes gradients " + figure(gradient_ratio(run)) +
                                 " times those of one GPU"
                           : "backward refused it";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help = "loss = loss.mean() before backward, or compute the loss outside the model.";
}

Price price_loss_inside_dp_forward(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with(kScalarOutputs);
  const double ratio = gradient_ratio(broken);
  price.reproduced = !error.empty() || ratio > kSameRatio;
  price.gone = cured.first("error") == nullptr && gradient_ratio(cured) > 0 &&
               gradient_ratio(cured) < kSameRatio;
  price.cost = error.empty() ? ratio : 0;
  price.unit = error.empty() ? "times the gradient of one GPU" : "steps before the crash";
  price.seen = error.empty() ? "silent: gradients " + figure(ratio) + " times too large"
                             : "RuntimeError: " + error.substr(0, error.find('\n'));
  return price;
}

}  // namespace bench::pitfalls
