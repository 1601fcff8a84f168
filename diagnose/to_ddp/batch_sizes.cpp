#include "diagnose/to_ddp/batch_sizes.hpp"

#include "diagnose/to_ddp/rank_counts.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

bool is_size(Ref node) {
  const Kind kind = node.kind();
  return kind == Kind::identifier || kind == Kind::attribute || kind == Kind::subscript;
}

BatchSize batch_size_of(const CallRef& loader) {
  const Ref batch = loader.argument(1, "batch_size");
  // batch * num_gpus is no share.
  const bool is_divided = batch && batch.kind() == Kind::binary && counts_ranks(batch) &&
                          (batch.module->tree()[batch.node].op == Op::floor_divide ||
                           batch.module->tree()[batch.node].op == Op::divide);
  return {loader, is_divided ? batch.child(Field::left) : batch, is_divided};
}

// The class of the object that has it: of self, and of loader in loader.batch_size.
ClassRef owner_of(const Program& program, Ref size) {
  if (size.kind() != Kind::attribute) return {};
  const Ref object = size.child(Field::object);
  return object.text() == "self" ? program.enclosing_class(size) : program.class_of(object);
}

bool is_kind_of(const Program& program, ClassRef cls, ClassRef base) {
  const auto& lineage = program.lineage(cls);
  return std::find(lineage.begin(), lineage.end(), base) != lineage.end();
}

// Both are one setting: the same option, or the same entry of a configuration that is not in sight.
bool is_same_setting(const Program& program, Ref a, Ref b) {
  const auto& of_a = program.sources(a);
  const auto& of_b = program.sources(b);
  const bool meet = std::any_of(of_a.begin(), of_a.end(), [&](const Source& first) {
    return !program.as_call(first.ref) == (first.how != Source::How::argument) &&
           std::any_of(of_b.begin(), of_b.end(), [&](const Source& second) {
             return first.ref == second.ref && first.how == second.how;
           });
  });
  if (meet) return true;
  if (a.kind() == Kind::identifier || b.kind() == Kind::identifier) return false;
  const ClassRef first = owner_of(program, a);
  const ClassRef second = owner_of(program, b);
  if (first || second)
    return first && second && last_word(a) == last_word(b) &&
           pitfalls::says_any(last_word(a), {"batch", "bs"}) &&
           (is_kind_of(program, first, second) || is_kind_of(program, second, first));
  return a.text() == b.text() && pitfalls::says_any(a.text(), {"batch", "bs"});
}

// The whole expression that says a size by the node: 2 * batch_size, (batch_size, 100).
Ref whole_size(Ref size) {
  const auto& tree = size.module->tree();
  for (NodeId at = tree[size.node].parent; at != kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::tuple && kind != Kind::list && kind != Kind::keyword_argument &&
        (kind != Kind::binary || tree[at].op != Op::multiply))
      break;
    size = size.with(at);
  }
  return size;
}

bool makes_tensor(const CallRef& call) {
  constexpr std::string_view kMakers[] = {"randn",       "rand",      "zeros",  "ones",
                                          "full",        "empty",     "normal", "uniform",
                                          "FloatTensor", "LongTensor"};
  return std::find(std::begin(kMakers), std::end(kMakers), call.call->name) != std::end(kMakers) &&
         pitfalls::holds_any(call.call->path, {"torch", "numpy"});
}

// x.view(batch_size, -1): the first of the sizes.
bool shapes_tensor(const CallRef& call, Ref whole) {
  constexpr std::string_view kShapes[] = {"view", "reshape", "expand", "resize_"};
  return call.receiver() &&
         std::find(std::begin(kShapes), std::end(kShapes), call.call->name) != std::end(kShapes) &&
         call.positional(0) == whole;
}

// Noise for pictures, an example for writer.add_graph(model, zeros(batch_size, 8)).
bool is_fixed(const Program& program, const CallRef& call) {
  const auto& tree = call.module->tree();
  for (NodeId at = tree[call.call->node].parent; at != kNoNode; at = tree[at].parent)
    if (const CallRef around = program.as_call(call.ref().with(at));
        around && pitfalls::says_any(around.call->name, {"graph", "summary", "export", "trace"}))
      return true;
  return pitfalls::says_any(
      program.assigned_name(call.ref()),
      {"fix", "test", "eval", "val", "sample", "vis", "viz", "static", "example", "dummy"});
}

// x[:batch_size] of the batch itself, which is no longer than that.
bool cuts_whole_batch(const Program& program, Ref slice) {
  const auto& tree = slice.module->tree();
  const Ref cut = slice.with(tree[slice.node].parent);
  const Ref name = cut.kind() == Kind::subscript ? cut.child(Field::value) : Ref{};
  const TrainingLoop* loop = pitfalls::facts::training_loop_of(program, slice);
  if (!loop || !name || name.kind() != Kind::identifier || slice.text().find(':') != 0)
    return false;
  const Ref target = loop->batches.child(Field::left);
  if (!target) return false;
  const auto& words = target.module->tree();
  for (NodeId at = target.node; at < words[target.node].last; ++at)
    if (words[at].kind == Kind::identifier && words.text(at) == name.text()) return true;
  return false;
}

// x.size(0) != batch_size
bool compares_with_batch(Ref comparison) {
  return pitfalls::holds_any(comparison.text(), {".size(0)", ".size()[0]", ".shape[0]", "len("});
}

bool is_in_training(const Program& program, Ref node) {
  return pitfalls::facts::training_loop_of(program, node) != nullptr;
}

// for i in range(batch_size): ... x[i] ..., over the samples of a batch.
bool counts_rows(const Program& program, const CallRef& range, Ref whole) {
  const auto& tree = range.module->tree();
  const Ref loop = range.ref().with(tree[range.call->node].parent);
  const Ref row = loop.kind() == Kind::for_statement ? loop.child(Field::left) : Ref{};
  return row.kind() == Kind::identifier && range.positional(0) == whole && !range.positional(1) &&
         is_in_training(program, loop) &&
         contains(loop.text(), "[" + std::string(row.text()) + "]");
}

// correct, n_hits, (output == y).sum(): what is counted over samples. A sum of mean losses is none.
bool counts_hits(Ref figure) {
  constexpr std::string_view kWords[] = {"correct", "corrects", "hits",  "hit",
                                         "acc",     "accuracy", "right", "matches"};
  const auto words = pitfalls::words_of_name(figure.text());
  const auto is_hit = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return !contains(pitfalls::facts::lowered(figure.text()), "loss") &&
         !contains(figure.text(), "len(") &&
         (std::any_of(std::begin(kWords), std::end(kWords), is_hit) ||
          contains(figure.text(), "sum("));
}

// Where the number in a figure grows last above it: correct += ..., the node that stands for it.
Ref counted_above(Ref figure) {
  const auto& module = *figure.module;
  const auto& tree = module.tree();
  NodeId last = kNoNode;
  for (NodeId at = figure.node; at < tree[figure.node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    for (const std::uint32_t index : module.defs_of(tree.text(at), false)) {
      const Def& def = module.defs()[index];
      if (def.kind == DefKind::augmented && def.target < figure.node &&
          (last == kNoNode || def.target > last))
        last = def.target;
    }
  }
  return last == kNoNode ? Ref{} : figure.with(last);
}

// Behind the loop over batches too, where the figure of an epoch is made of what that loop counts;
// an evaluation below it may still go over all data.
bool is_beside_training(const Program& program, Ref figure) {
  if (is_in_training(program, figure)) return true;
  const Ref counted = counted_above(figure);
  const auto& loops = program.training_loops();
  return counted && std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& loop) {
           return loop.batches.module == counted.module &&
                  counted.module->tree().contains(loop.batches.node, counted.node) &&
                  program.enclosing_function(loop.batches) == program.enclosing_function(figure);
         });
}

// correct / (steps * batch_size) of one rank's samples.
bool divides_hits(const Program& program, Ref division, Ref whole) {
  const auto& tree = division.module->tree();
  return tree[whole.node].field == Field::right && tree[division.node].op == Op::divide &&
         counts_hits(division.child(Field::left)) &&
         is_beside_training(program, division.child(Field::left));
}

bool stands_for_batch(const Program& program, Ref size) {
  const Ref whole = whole_size(size);
  const auto& tree = whole.module->tree();
  const NodeId around = tree[whole.node].parent;
  if (counts_ranks(whole)) return false;
  switch (tree[around].kind) {
    case Kind::argument_list: {
      const CallRef call = program.as_call(size.with(tree[around].parent));
      if (!call) return false;
      if (call.call->name == "range") return whole == size && counts_rows(program, call, whole);
      return (makes_tensor(call) && !is_fixed(program, call)) || shapes_tensor(call, whole) ||
             pitfalls::says_any(call.call->name, {"init_hidden", "inithidden", "mixing_noise"}) ||
             (call.call->name == "sample" && whole != size && is_in_training(program, size));
    }
    case Kind::comparison:
      return compares_with_batch(size.with(around)) && is_in_training(program, size);
    case Kind::binary:
    case Kind::augmented_assignment:
      return divides_hits(program, size.with(around), whole);
    case Kind::slice:
      return is_in_training(program, size) && !cuts_whole_batch(program, size.with(around));
    default:
      return false;
  }
}

bool is_whole_name(Ref node) {
  const auto& tree = node.module->tree();
  const Kind parent = tree[tree[node.node].parent].kind;
  const Field field = tree[node.node].field;
  return parent != Kind::attribute && !(parent == Kind::subscript && field == Field::value) &&
         field != Field::name && field != Field::function;
}

// A class or a file that evaluates, which training runs now and then.
bool is_for_evaluation(const Left& left, Ref node) {
  const std::string& path = node.module->path();
  const ClassRef cls = left.program.enclosing_class(node);
  return left.program.is_evaluation(node) ||
         pitfalls::says_any(path.substr(path.rfind('/') + 1),
                            {"eval", "test", "metric", "sample"}) ||
         (cls && pitfalls::says_any(cls.cls->name, {"eval", "test", "metric", "sampler"}));
}

template <typename Accepts>
std::vector<Ref> sizes_that(const Left& left, const BatchSize& batch, Accepts accepts) {
  std::vector<Ref> out;
  if (!batch.total || !is_size(batch.total)) return out;
  for (const Module* module : left.program.modules())
    for (NodeId id = 0; id < module->tree().size(); ++id) {
      const Ref node{module, id};
      if (is_size(node) && is_whole_name(node) && accepts(node) && left.is_run(node) &&
          !is_for_evaluation(left, node) && !pitfalls::facts::in_dataset(left.program, node) &&
          is_same_setting(left.program, batch.total, node))
        out.push_back(node);
    }
  return out;
}

// `part` of part = batch_size // steps
std::string_view name_of_part(Ref size) {
  const auto& tree = size.module->tree();
  const NodeId division = tree[size.node].parent;
  if (tree[division].kind != Kind::binary || tree[size.node].field != Field::left ||
      (tree[division].op != Op::divide && tree[division].op != Op::floor_divide) ||
      counts_ranks(size.with(division)))
    return {};
  NodeId at = tree[division].parent;
  while (tree[at].kind == Kind::argument_list || tree[at].kind == Kind::call) at = tree[at].parent;
  return tree[at].kind == Kind::assignment ? tree.text(tree.child(at, Field::left))
                                           : std::string_view{};
}

}  // namespace

std::vector<BatchSize> batch_sizes(const Left& left) {
  std::vector<BatchSize> out;
  const auto add = [&](const Supply& supply) {
    const CallRef loader = left.program.as_call(supply.place);
    const bool is_known = std::any_of(out.begin(), out.end(), [&](const BatchSize& each) {
      return each.loader.ref() == supply.place;
    });
    if (loader && !is_known && !is_unfollowed(supply) && supply.share != Share::own_class &&
        supply.share != Share::episodes && supply.share != Share::foreign)
      out.push_back(batch_size_of(loader));
  };
  for (const TrainingLoop* loop : trainings(left))
    for (const Supply& each : supplies_of(left, *loop)) add(each);
  for (const Supply& each : unfollowed_supplies(left)) add(each);
  return out;
}

std::vector<Ref> other_uses(const Left& left, const BatchSize& batch) {
  return sizes_that(left, batch, [&](Ref size) { return stands_for_batch(left.program, size); });
}

std::vector<Ref> products_with_gpus(const Left& left, const BatchSize& batch) {
  return sizes_that(left, batch, [](Ref size) {
    const auto& tree = size.module->tree();
    const Node& around = tree[tree[size.node].parent];
    return around.kind == Kind::binary && around.op == Op::multiply &&
           pitfalls::says_any(size.with(tree[size.node].parent).text(), {"gpu", "device_count"});
  });
}

std::vector<Ref> parts_of_batch(const Left& left, const BatchSize& batch) {
  return sizes_that(left, batch, [](Ref size) {
    // Not num_batches or chunks_per_batch, which count.
    const auto words = pitfalls::words_of_name(name_of_part(size));
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    return (has("batch") || has("batchsize") || has("bs") || has("chunk")) && !has("per") &&
           !has("num") && !has("log") && !has("n");
  });
}

}  // namespace bench::diagnose
