#include "scenarios/pitfalls/data/loaders.hpp"

#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

bool says_evaluation(std::string_view text) {
  const std::string plain = facts::lowered(text);
  if (plain.find("train") != std::string::npos) return false;
  for (const std::string_view word : {"val", "test", "eval", "dev", "infer", "predict"})
    if (plain.find(word) != std::string::npos) return true;
  return false;
}

// What stands in (first, second), over which a loop goes.
std::vector<Ref> items_of(Ref list) {
  std::vector<Ref> out;
  if (list.kind() != Kind::tuple && list.kind() != Kind::list) return out;
  const auto& tree = list.module->tree();
  for (NodeId at = tree[list.node].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
    out.push_back(list.with(at));
  return out;
}

// MultiEpochsDataLoader(data, sampler=sampler) or DataLoaderX(...) of a file that is not there.
bool is_named_loader(const Program& program, const CallRef& call) {
  const std::string name = facts::lowered(call.call->name);
  return facts::contains(name, "dataloader") && !name.ends_with("s") &&
         (call.keyword("sampler") || call.keyword("batch_sampler")) && !program.callee(call) &&
         !program.class_of_call(call);
}

// Background(data, sampler=sampler) of a class of the program that derives from DataLoader.
bool is_derived_loader(const Program& program, const CallRef& call) {
  if (call.call->api != Api::none) return false;
  const diagnose::ClassRef cls = program.class_of_call(call);
  return cls && program.derives_from(cls, Api::data_loader) &&
         (call.keyword("sampler") || call.keyword("batch_sampler") ||
          !program.method(cls, "__init__"));
}

}  // namespace

std::vector<CallRef> loaders_of(const Program& program, Ref iterable) {
  std::vector<CallRef> out;
  if (!iterable) return out;
  for (const Source& source : program.sources(program.strip_iterable(iterable))) {
    if (source.how == Source::How::loop_item) {
      for (const Ref item : items_of(source.ref))
        if (const CallRef loader = program.origin(item, Api::data_loader)) out.push_back(loader);
      continue;
    }
    const CallRef call = program.as_call(source.ref);
    if (call && (call.call->api == Api::data_loader || is_named_loader(program, call) ||
                 is_derived_loader(program, call)))
      out.push_back(call);
  }
  return out;
}

namespace {

// self.loader as it is, and not self.loader.dataset.
bool names_itself(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const char next = end < text.size() ? text[end] : '\n';
    if (next == ')' || next == ':' || next == ',' || next == '\n' || next == ' ') return true;
  }
  return false;
}

// self.loader = loader in __init__, of which __iter__ says self.loader.
bool goes_over_parameter(const diagnose::FunctionRef& init, const diagnose::FunctionRef& goes,
                         std::string_view parameter) {
  const diagnose::Module& module = *init.module;
  const std::string_view text = goes.module->text(goes.function->body);
  return std::any_of(module.defs().begin(), module.defs().end(), [&](const diagnose::Def& def) {
    return def.is_attribute && def.value != kNoNode &&
           module.tree().contains(init.function->body, def.target) &&
           module.text(def.value) == parameter && names_itself(text, module.text(def.target));
  });
}

// loader in Moved(loader, device), of a class of the program that goes over what it is given.
Ref held_by_wrapper(const Program& program, const CallRef& made) {
  const diagnose::ClassRef cls =
      made && made.call->api == Api::none ? program.class_of_call(made) : diagnose::ClassRef{};
  const auto init = cls ? program.method(cls, "__init__") : diagnose::FunctionRef{};
  const auto goes = cls ? program.method(cls, "__iter__") : diagnose::FunctionRef{};
  if (!init || !goes) return {};
  for (const auto& parameter : init.function->parameters) {
    const Ref held = facts::argument_for(made, init, parameter.name);
    if (held && goes_over_parameter(init, goes, parameter.name)) return held;
  }
  return {};
}

}  // namespace

std::vector<CallRef> loaders_gone_over(const Program& program, Ref iterable) {
  std::vector<CallRef> out = loaders_of(program, iterable);
  if (!out.empty() || !iterable) return out;
  for (const Source& source : program.sources(program.strip_iterable(iterable)))
    if (const Ref held = held_by_wrapper(program, program.as_call(source.ref)))
      for (const CallRef& loader : loaders_of(program, held)) out.push_back(loader);
  return out;
}

namespace {

// batches itself, or loader after batches = Prefetcher(loader).
Ref loader_behind(const Program& program, Ref batches) {
  if (!loaders_of(program, batches).empty()) return batches;
  const CallRef made = program.made_by(batches);
  if (!made || !(program.class_of_call(made) || says_any(made.call->name, {"prefetch"}))) return {};
  const Ref loader = made.positional(0);
  return loader && !loaders_of(program, loader).empty() ? loader : Ref{};
}

// batch = next(batches), batch = batches.next() in rounds of the loop itself.
Ref drawn_in(const Program& program, Ref loop) {
  for (const std::string_view name : {"next", "__next__"})
    for (const CallRef& call : program.calls_named(name)) {
      if (call.module != loop.module || !loop.module->tree().contains(loop.node, call.call->node) ||
          program.innermost_loop(call.ref()) != loop)
        continue;
      const Ref batches = call.receiver() ? call.receiver() : call.positional(0);
      if (const Ref loader = batches ? loader_behind(program, batches) : Ref{}) return loader;
    }
  return {};
}

}  // namespace

Ref goes_over(const Program& program, Ref loop) {
  const Ref right = loop.child(Field::right);
  const CallRef range = right ? program.as_call(program.strip_iterable(right)) : CallRef{};
  if (right && !(range && range.call->name == "range")) return right;
  const Ref drawn = drawn_in(program, loop);
  return drawn ? drawn : right;
}

namespace {

// make(dataset) after make = DistributedSampler if distributed else RandomSampler.
CallRef made_by_chosen_class(const Program& program, Ref sampler) {
  for (const Source& source : program.sources(sampler)) {
    const CallRef call = program.as_call(source.ref);
    if (!call || call.call->api != Api::none) continue;
    const Ref maker{call.module, call.call->function};
    if (maker.kind() != Kind::identifier) continue;
    for (const Source& cls : program.sources(maker))
      if (cls.ref.module->api(cls.ref.node) == Api::distributed_sampler) return call;
  }
  return {};
}

}  // namespace

CallRef sampler_of(const Program& program, const CallRef& loader) {
  const Ref given = loader.argument(3, "sampler");
  const CallRef direct = program.origin(given, Api::distributed_sampler);
  if (direct) return direct;
  if (const CallRef chosen = made_by_chosen_class(program, given)) return chosen;
  for (const Source& source : program.sources(loader.argument(4, "batch_sampler"))) {
    const CallRef batches = program.as_call(source.ref);
    if (!batches) continue;
    if (batches.call->api == Api::distributed_sampler) return batches;
    for (const Ref inner : {batches.positional(0), batches.keyword("sampler")})
      if (const CallRef found = program.origin(inner, Api::distributed_sampler)) return found;
  }
  return {};
}

namespace {

// The "true" of train == "true" leaves it to the name what the test is about.
bool is_truth(std::string_view word) {
  constexpr std::string_view kTruths[] = {"true", "false", "yes", "no", "1", "0", "on", "off"};
  return std::find(std::begin(kTruths), std::end(kTruths), word) != std::end(kTruths);
}

// split == "train", train == "yes", train == "fit"; not training_type == "rl": the compared word
// tells, unless the name is for training alone.
bool compares_with_training(Ref comparison, Ref word) {
  const auto& tree = comparison.module->tree();
  if (says_any(word.text(), {"train"})) return true;
  return is_truth(facts::lowered(tree.string_value(word.node).value_or("")))
             ? says_any(comparison.text(), {"train"})
             : names_training(comparison.with(tree[comparison.node].first_child));
}

// is_train, and a comparison with a word of training.
bool speaks_of_training(Ref condition, int depth = 0) {
  constexpr int kDeepest = 64;
  if (!condition || depth > kDeepest) return false;
  const auto& tree = condition.module->tree();
  if (condition.kind() == Kind::not_expression)
    return speaks_of_training(condition.child(Field::argument), depth + 1);
  if (condition.kind() == Kind::boolean)
    return speaks_of_training(condition.child(Field::left), depth + 1) ||
           speaks_of_training(condition.child(Field::right), depth + 1);
  if (condition.kind() == Kind::comparison)
    for (NodeId at = tree[condition.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind == Kind::string)
        return compares_with_training(condition, condition.with(at));
  return says_any(condition.text(), {"train"});
}

}  // namespace

bool is_sampled_for_training(const Program& program, const CallRef& loader) {
  const auto& samplers = program.sources(loader.keyword("sampler"));
  return std::any_of(samplers.begin(), samplers.end(), [&](const Source& source) {
    return source.ref.kind() == Kind::none_literal &&
           program.under(source.ref, [](Ref condition, bool holds) {
             return !holds && speaks_of_training(condition);
           });
  });
}

namespace {

// kwargs.update({"num_workers": 1, "shuffle": True}) above DataLoader(data, **kwargs): with shuffle
// there is no sampler.
bool shuffles_by_update(const Program& program, const CallRef& loader) {
  const std::string_view arguments = loader.ref().child(Field::arguments).text();
  for (const CallRef& update : program.calls_named("update")) {
    const Ref dictionary = update.receiver();
    if (dictionary.kind() != Kind::identifier || update.module != loader.module ||
        update.call->node > loader.call->node ||
        program.enclosing_function(update.ref()) != program.enclosing_function(loader.ref()) ||
        !facts::contains(arguments, "**" + std::string(dictionary.text())))
      continue;
    for (const Source& source : program.sources(update.positional(0))) {
      const std::string_view text = source.ref.text();
      if (source.ref.kind() == Kind::dictionary && !facts::contains(text, "sampler") &&
          (facts::contains(text, "'shuffle': True") || facts::contains(text, "\"shuffle\": True")))
        return true;
    }
  }
  return false;
}

// options.update(settings), options.setdefault("sampler", ...) or add_sampler(options) above
// DataLoader(data, **options): what is added may be the sampler.
bool is_added_to(const Program& program, const CallRef& loader, Ref dictionary) {
  const diagnose::Module& module = *loader.module;
  const auto& defs = module.defs_of(dictionary.text(), false);
  NodeId first = kNoNode;
  for (const std::uint32_t index : defs)
    if (const NodeId target = module.defs()[index].target;
        target < loader.call->node && (first == kNoNode || target > first))
      first = target;
  if (first == kNoNode) return false;
  return std::any_of(module.calls().begin(), module.calls().end(), [&](const diagnose::Call& each) {
    if (each.node <= first || each.node >= loader.call->node) return false;
    const CallRef call{&module, &each};
    if (call.receiver().text() == dictionary.text())
      return (each.name == "update" || each.name == "setdefault") &&
             (facts::contains(call.ref().text(), "sampler") || call.keyword("sampler") ||
              (call.positional(0) && call.positional(0).kind() != Kind::dictionary &&
               call.positional(0).kind() != Kind::string));
    for (std::size_t i = 0; const Ref given = call.positional(i); ++i)
      if (given.kind() == Kind::identifier && given.text() == dictionary.text())
        return each.name != "print" && !program.class_of_call(call);
    return false;
  });
}

bool may_add_sampler(const Program& program, const CallRef& loader) {
  const auto& tree = loader.module->tree();
  const Ref arguments = loader.ref().child(Field::arguments);
  if (!arguments) return false;
  for (NodeId at = tree[arguments.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::dictionary_splat) continue;
    const Ref dictionary = loader.ref().with(tree[at].first_child);
    if (dictionary.kind() == Kind::identifier && is_added_to(program, loader, dictionary))
      return true;
  }
  return false;
}

// RandomSampler(data), SequentialSampler(data) and batches of what they draw: all of the data, in
// every process. With replacement each process may well draw samples of its own.
bool draws_from_all(const Program& program, Ref sampler, int depth = 0) {
  const CallRef made = program.as_call(sampler);
  if (!made || depth > 1 || program.class_of_call(made) || program.mentions_rank(sampler))
    return false;
  const std::string_view name = made.call->path;
  if (!name.starts_with("torch.utils.data.")) return false;
  if (name.ends_with(".BatchSampler")) {
    const auto& sources = program.sources(made.argument(0, "sampler"));
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
             return draws_from_all(program, source.ref, depth + 1);
           });
  }
  return (name.ends_with(".RandomSampler") && !made.argument(1, "replacement") &&
          !made.keyword("num_samples")) ||
         name.ends_with(".SequentialSampler");
}

}  // namespace

bool has_some_sampler(const Program& program, const CallRef& loader) {
  if (const Ref batches = loader.argument(4, "batch_sampler")) {
    const auto& sources = program.sources(batches);
    return sources.size() != 1 || !draws_from_all(program, sources.front().ref);
  }
  if (loader.has_splat() && !shuffles_by_update(program, loader) &&
      (!loader.keyword("shuffle") || may_add_sampler(program, loader)))
    return true;
  const Ref sampler = loader.argument(3, "sampler");
  if (!sampler) return false;
  for (const Source& source : program.sources(sampler))
    if (source.ref.kind() != Kind::none_literal && !draws_from_all(program, source.ref))
      return true;
  return false;
}

bool reads_iterable_dataset(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!dataset) return false;
  const auto cls = program.class_of(dataset);
  return cls && program.derives_from(cls, Api::iterable_dataset);
}

namespace {

// "test" of loaders["test"] = DataLoader(...) and of {"test": DataLoader(...)}: the loader's name.
std::string key_of(const CallRef& loader) {
  const auto& tree = loader.module->tree();
  const NodeId around = tree[loader.call->node].parent;
  Ref key;
  if (tree[around].kind == Kind::pair) {
    key = loader.ref().with(tree.child(around, Field::key));
  } else if (tree[around].kind == Kind::assignment) {
    const Ref target = loader.ref().with(tree.child(around, Field::left));
    if (target.kind() == Kind::subscript) key = target.child(Field::subscript);
  }
  return key ? tree.string_value(key.node).value_or("") : "";
}

}  // namespace

namespace {

bool is_a_name(Ref condition) {
  return condition.kind() == Kind::identifier || condition.kind() == Kind::attribute;
}

bool is_shuffled(const Program& program, const CallRef& loader) {
  const Ref shuffled = loader.argument(2, "shuffle");
  return shuffled && !program.is_literal_false(shuffled);
}

}  // namespace

bool names_training(Ref condition) {
  std::string word = facts::lowered(diagnose::last_word(condition));
  std::erase(word, '_');
  return is_a_name(condition) &&
         (word == "train" || word == "istrain" || word == "training" || word == "istraining");
}

namespace {

// val_mode, args.is_test; not multi_device, skip_validation or fast_dev_run.
bool asks_for_evaluation(Ref condition) {
  if (!is_a_name(condition)) return false;
  const auto words = words_of_name(diagnose::last_word(condition));
  constexpr std::string_view kWords[] = {"val",        "valid",    "validation", "validate", "eval",
                                         "evaluation", "evaluate", "test",       "testing"};
  constexpr std::string_view kBeside[] = {"is",   "for", "mode",  "do",
                                          "only", "set", "split", "phase"};
  const auto is_in = [](const auto& list, const std::string& word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
  };
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_in(kWords, word); }) &&
         std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return is_in(kWords, word) || is_in(kBeside, word);
         });
}

// Not below `if self.training: return`, where all the rest of the function is for training.
bool is_in_else_of(Ref condition, const CallRef& loader) {
  const auto& tree = condition.module->tree();
  const auto test = tree.ancestor(condition.node, Kind::if_statement);
  const Ref shuffled = loader.keyword("shuffle");
  return test != diagnose::kNoNode && loader.module == condition.module &&
         tree.contains(test, loader.call->node) && shuffled.kind() != Kind::true_literal;
}

}  // namespace

bool is_evaluation_loader(const Program& program, const CallRef& loader) {
  const std::string_view name = program.assigned_name(loader.ref());
  if (!name.empty() ? says_evaluation(name) : says_evaluation(key_of(loader))) return true;
  const Ref dataset = loader.argument(0, "dataset");
  if (dataset && says_evaluation(dataset.text())) return true;
  const auto function = program.enclosing_function(loader.ref());
  // train_loader of def link_prediction(data), which trains for it.
  const bool is_task = function && facts::contains(function.function->name, "prediction") &&
                       facts::contains(facts::lowered(name), "train");
  if (function && !is_task && says_evaluation(function.function->name)) return true;
  // `if val_mode:`, and the other branch of `if tag == "train"` and of `if train`.
  return program.under(loader.ref(), [&](Ref condition, bool holds) {
    if (condition.kind() == Kind::not_expression) {  // the other branch of `if not is_test`
      condition = condition.child(Field::argument);
      holds = !holds;
    }
    if (holds && asks_for_evaluation(condition)) return !is_shuffled(program, loader);
    if (!holds && names_training(condition)) return is_in_else_of(condition, loader);
    const std::string_view text = condition.text();
    const bool same = facts::contains(text, "==");
    const bool quoted = facts::contains(text, "'train") || facts::contains(text, "\"train");
    // phase == "train" and args.phase != "val" is for training.
    return quoted && ((same && !holds) || (facts::contains(text, "!=") && !same && holds));
  });
}

namespace {

// dl, sampler = get_loader("val", size): whatever the name says, the word it was asked for tells.
bool is_asked_for_evaluation(const Program& program, Ref iterable) {
  if (iterable.kind() != Kind::identifier) return false;
  const auto function = program.enclosing_function(iterable);
  bool is_asked = false;
  for (const std::uint32_t index : iterable.module->defs_of(iterable.text(), false)) {
    const diagnose::Def& def = iterable.module->defs()[index];
    if (program.enclosing_function(iterable.with(def.target)) != function) continue;
    const CallRef made = program.as_call(iterable.with(def.value));
    if (def.kind != diagnose::DefKind::assign || !made) return false;
    const auto given = facts::arguments_of(made);
    is_asked = std::any_of(given.begin(), given.end(), [](Ref word) {
      return word.kind() == Kind::string && says_evaluation(word.text());
    });
    if (!is_asked) return false;
  }
  return is_asked;
}

}  // namespace

bool is_evaluation_loop(const Program& program, Ref loop) {
  const Ref over = goes_over(program, loop);
  const Ref iterable = over ? program.strip_iterable(over) : Ref{};
  return iterable &&
         (says_evaluation(iterable.text()) || is_asked_for_evaluation(program, iterable));
}

std::optional<std::int64_t> epoch_count(const Program& program, Ref loop) {
  if (!loop || loop.kind() != Kind::for_statement) return std::nullopt;
  const CallRef range = program.as_call(program.strip_iterable(loop.child(Field::right)));
  if (!range || range.call->name != "range") return std::nullopt;
  const Ref rounds = range.positional(1) ? range.positional(1) : range.positional(0);
  diagnose::Value stop = program.evaluate(rounds);
  // range(config["epochs"]) of a dictionary that is written out
  if (const auto& sources = program.sources(rounds);
      !stop.known() && rounds.kind() == Kind::subscript && sources.size() == 1 &&
      sources.front().how == Source::How::value)
    stop = program.evaluate(sources.front().ref);
  if (!stop.is_integer() || stop.is_default) return std::nullopt;
  return stop.integer;
}

void note_sampler(const CallRef& sampler, Finding& finding) {
  const std::string& file = sampler.module->path();
  if (file != finding.file) finding.evidence.emplace_back("sampler_file", file);
  finding.evidence.emplace_back("sampler_line",
                                std::to_string(sampler.module->tree().line_of(sampler.call->node)));
}

}  // namespace bench::pitfalls
