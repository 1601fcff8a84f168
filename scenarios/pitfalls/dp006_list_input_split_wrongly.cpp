#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/call_shapes.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Wrapper;

namespace {

// [images, boxes] is cut as it should be, tensor by tensor; numbers and strings are copied.
bool holds_plain_values(Ref list) {
  const auto& tree = list.module->tree();
  const diagnose::NodeId first = tree.child_at(list.node, 0);
  if (first == diagnose::kNoNode) return false;
  const Kind kind = tree[first].kind;
  return kind == Kind::integer || kind == Kind::floating || kind == Kind::string;
}

// The iterable of `for x in loader:`, not of a comprehension.
bool is_of_statement(Ref iterable) {
  const auto& tree = iterable.module->tree();
  for (NodeId at = iterable.node; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::for_statement) return true;
    if (tree[at].kind == Kind::for_in_clause) return false;
  }
  return false;
}

// [image.cuda() for image in images] of what a loader gives holds samples, and len(x) gives
// numbers; [part[0] for part in parts] may as well hold whole batches, each cut as it should be.
bool makes_items(const Program& program, Ref comprehension) {
  const auto& tree = comprehension.module->tree();
  const NodeId element = tree.child_at(comprehension.node, 0);
  if (element == kNoNode) return false;
  if (tree[element].kind == Kind::dictionary) return true;  // one for each sample
  const CallRef call = program.as_call(comprehension.with(element));
  if (call && (call.call->name == "len" || call.call->name == "int" || call.call->name == "float" ||
               call.call->name == "str" || call.call->name == "item"))
    return true;
  for (NodeId at = element; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::for_in_clause) continue;
    const Ref iterated = comprehension.with(tree.child(at, Field::right));
    for (const Source& source : program.sources(iterated))
      if (source.how == Source::How::loop_item && is_of_statement(source.ref)) return true;
  }
  return false;
}

// What a loader gives: the item of a loop or of next(...), moved or not.
bool is_batch(const Program& program, Ref value, int depth = 0) {
  constexpr int kMoves = 3;  // images = Variable(images.cuda())
  if (!value || depth > kMoves) return false;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef call = program.as_call(source.ref);
    if (call && call.call->name == "next") return true;
    if (source.how == Source::How::loop_item || source.how == Source::How::element)
      return is_of_statement(source.ref);
    if (!call || source.how != Source::How::value) return false;
    if (call.call->name == "Variable") return is_batch(program, call.positional(0), depth + 1);
    const bool moves = call.call->name == "to" || call.call->name == "cuda";
    return moves && is_batch(program, call.receiver(), depth + 1);
  });
}

// list(images): the rows of what a loader gives, whether that is a tensor or already a list.
bool lists_rows(const Program& program, const CallRef& call) {
  const Ref listed = call.positional(0);
  return listed.kind() == Kind::identifier && !call.positional(1) && is_batch(program, listed);
}

// if isinstance(data, dict): ... elif isinstance(data, list): return [move(x) for x in data]: a
// list for a list, as the default collate makes of whole batches, and none for all else.
bool keeps_type(const Program& program, Ref comprehension) {
  const auto guards = program.guards(comprehension);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const CallRef test = program.as_call(guard.condition);
    if (!guard.holds || !test || test.call->name != "isinstance") return false;
    const auto& tree = comprehension.module->tree();
    for (NodeId at = tree[comprehension.node].first_child; at != kNoNode;
         at = tree[at].next_sibling)
      if (tree[at].kind == Kind::for_in_clause &&
          tree.text(tree.child(at, Field::right)) == test.positional(0).text())
        return true;
    return false;
  });
}

bool is_list_of_items(const Program& program, Ref argument) {
  for (const Source& source : program.sources(argument)) {
    if (source.how != Source::How::value) continue;
    const Kind kind = source.ref.kind();
    if (kind == Kind::comprehension && source.ref.text().starts_with("[") &&
        !keeps_type(program, source.ref) && makes_items(program, source.ref))
      return true;
    if (kind == Kind::list && holds_plain_values(source.ref)) return true;
    const CallRef call = program.as_call(source.ref);
    if (!call || call.call->name != "list" || call.receiver() || !call.positional(0)) continue;
    if (call.positional(0).kind() == Kind::comprehension ? makes_items(program, call.positional(0))
                                                         : lists_rows(program, call))
      return true;
  }
  return false;
}

// for key in batch: batch[key] = [item.cuda() for item in batch[key]]: lists of samples, whatever
// the loader gave: rows of tensors, or samples that were not stacked.
bool lists_each_item(const Program& program, Ref comprehension) {
  const auto& tree = comprehension.module->tree();
  const NodeId assigned = tree[comprehension.node].parent;
  if (tree[assigned].kind != Kind::assignment || !comprehension.text().starts_with("["))
    return false;
  const Ref item = comprehension.with(tree.child(assigned, Field::left));
  if (item.kind() != Kind::subscript || item.child(Field::subscript).kind() != Kind::identifier ||
      !is_batch(program, item.child(Field::value)))
    return false;
  for (NodeId at = tree[comprehension.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::for_in_clause &&
        tree.text(tree.child(at, Field::right)) == item.text())
      return true;
  return false;
}

bool is_of_listed_items(const Program& program, Ref argument) {
  const auto& sources = program.sources(argument);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.ref.kind() == Kind::comprehension && lists_each_item(program, source.ref);
  });
}

Ref element_of(Ref comprehension) {
  return comprehension.with(comprehension.module->tree().child_at(comprehension.node, 0));
}

// [image.cuda() for image in images]: what it holds are tensors, as do the lists in
// [[crop.cuda() for crop in scale] for scale in scales].
bool moves_tensors(const Program& program, Ref argument) {
  for (const Source& source : program.sources(argument)) {
    if (source.ref.kind() != Kind::comprehension) continue;
    Ref element = element_of(source.ref);
    while (element && element.kind() == Kind::comprehension) element = element_of(element);
    const CallRef made = element ? program.as_call(element) : CallRef{};
    if (made && made.receiver()) return true;
  }
  return false;
}

}  // namespace

void check_list_input_split_wrongly(const Program& program, Report& report) {
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::data_parallel || cuts_batches_itself(program, *forward.wrap))
      continue;
    for (const Ref argument : facts::arguments_of(forward.call)) {
      const bool listed = is_of_listed_items(program, argument);
      if (!listed && !is_list_of_items(program, argument)) continue;
      Finding& finding = report.at(
          argument, Confidence::likely,
          "DataParallel is given a Python list: every tensor in it is cut along its own first "
          "dimension, and numbers or strings are copied whole to every replica");
      finding.help = "Pad to one tensor (and a tensor of lengths), or use DistributedDataParallel.";
      // The default collate makes lists of whole batches, which are cut as they should be.
      if (!listed && moves_tensors(program, argument) && !program.mentions("collate"))
        tell_as_note(finding);
      break;
    }
  }
}

namespace {

enum class ListKind { none, tensors, plain_values };

// A list of as many items as the batch has samples. Tensors that each have the whole batch in their
// first dimension are cut as they should be, however many they are.
ListKind list_of_samples(const Json& input, double batch) {
  const Json* items = list_items(input);
  if (items == nullptr || items->empty() || static_cast<double>(items->size()) != batch)
    return ListKind::none;
  const auto is_plain = [](const Json& item) { return item.is_null(); };
  if (std::all_of(items->begin(), items->end(), is_plain)) return ListKind::plain_values;
  const auto is_whole = [batch](const Json& item) {
    return static_cast<double>(leading_dim(item)) == batch;
  };
  return std::all_of(items->begin(), items->end(), is_whole) ? ListKind::none : ListKind::tensors;
}

// "[3, 8, 8] into [2, 8, 8] and [1, 8, 8]": what became of the list's first tensor.
std::string cut_of_the_first(const CallShapes& call, std::size_t argument) {
  std::string text = "[" + listed(list_items(call.inputs[argument])->front()) + "] into ";
  bool first = true;
  for (const std::vector<Json>& replica : call.replicas) {
    const Json* items = argument < replica.size() ? list_items(replica[argument]) : nullptr;
    if (items == nullptr || items->empty()) continue;
    text += (first ? "[" : " and [") + listed(items->front()) + "]";
    first = false;
  }
  return text;
}

}  // namespace

void judge_list_input_split_wrongly(const RunEvidence& run, RunReport& report) {
  const CallShapes call = call_shapes(run);
  const double batch = run.number("batch");
  if (call.replicas.size() < 2) return;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const ListKind kind = list_of_samples(call.inputs[i], batch);
    if (kind == ListKind::none) continue;
    std::string message =
        "DataParallel was given a list with an item for each of " + figure(batch) + " samples: ";
    message +=
        kind == ListKind::tensors
            ? "it cut each tensor along its own first dimension, " + cut_of_the_first(call, i)
            : "every one of " + std::to_string(call.replicas.size()) +
                  " replicas got all of it beside its share of the batch";
    const bool tensors = kind == ListKind::tensors;
    Finding& finding =
        report.add(tensors ? Confidence::certain : Confidence::likely, std::move(message));
    finding.help = "Pad to one tensor (and a tensor of lengths), or use DistributedDataParallel.";
    if (const std::string error = run.text("error"); !error.empty())
      finding.evidence.emplace_back("error", error);
  }
}

Price price_list_input_split_wrongly(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with("channels, but got");
  if (!error.empty()) {
    price.reproduced = true;
    price.gone = cured.first("error") == nullptr && !call_shapes(cured).outputs.empty();
    price.cost = 0;
    price.unit = "steps before the crash";
    price.seen = "RuntimeError: " + error.substr(0, error.find('\n'));
    return price;
  }
  const double rows = broken.number("rows_compared");
  const double apart = broken.number("rows_apart");
  price.reproduced = apart > 0;
  price.gone = cured.number("rows_apart") == 0;
  price.cost = 100 * apart / rows;
  price.unit = "% of the samples computed with another one's length";
  price.seen =
      "silent: " + figure(apart) + " of " + figure(rows) + " outputs are not those of one GPU";
  return price;
}

}  // namespace bench::pitfalls
