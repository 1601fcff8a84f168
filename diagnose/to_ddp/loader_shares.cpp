#include "diagnose/to_ddp/loader_shares.hpp"

#include "diagnose/to_ddp/loader_choice.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

namespace edit = pitfalls;
namespace facts = pitfalls::facts;

class Sharer {
 public:
  Sharer(const Program& program, const CallRef& loader, FileNames& names, Finding& made)
      : program_(program),
        loader_(loader),
        names_(names),
        made_(made),
        is_script_(loader.module == &program.root()) {
    if (!is_named_for_training(program, loader) && !is_in_branch_for_training(program, loader))
      choice_ = (serves_several(program, loader) ? choice_of_training(program, loader)
                                                 : word_of_training(loader))
                    .text();
    if (choice_.empty()) {
      choice_ = choice_of_item(program, loader);
      is_of_item_ = !choice_.empty();
    }
  }

  // False where the call has no place for it.
  bool add_sampler() {
    const Ref given = loader_.argument(0, "dataset");
    const bool is_made_here = is_made_once_above(given);
    const std::string dataset = is_made_here ? free_name(given) : std::string(given.text());
    const Ref shuffle = loader_.argument(2, "shuffle");
    const Ref own = loader_.argument(3, "sampler");
    const Order order = own ? order_of(own) : Order::none;
    if (order == Order::unknown || loader_.argument(4, "batch_sampler")) return false;
    std::string sampler = names_.sampler(*loader_.module) + "(" + dataset;
    if ((choice_.empty() || is_of_item_) && order != Order::random &&
        (!shuffle || !is_always(shuffle, true)))
      sampler += ", shuffle=" + (shuffle ? std::string(shuffle.text()) : "False");
    sampler += ")";
    if (const std::string test = test_of_sharing(); !test.empty())
      sampler += " if " + test + " else " + (own ? std::string(own.text()) : "None");
    const bool is_put = put(shuffle, sampler, dataset);
    if (is_put && is_made_here) {
      edit::insert_before(given, dataset + " = " + std::string(given.text()), "", made_);
      edit::replace(given, dataset, "", made_);
    }
    return is_put;
  }

  // What users may set is checked to divide; a batch of one cannot be divided.
  void divide_batch() {
    const Ref batch = loader_.argument(1, "batch_size");
    const Value size = batch ? program_.evaluate(batch) : Value{};
    // kw.pop("batch_size") gives it once.
    if (batch && !is_in_call(batch)) {
      const Ref carried = in_dictionary_ ? Ref{} : dictionary_behind();
      if (carried && edits() > 0)
        edit::replace(carried, "{**" + std::string(carried.text()) + batch_item(carried) + "}", "",
                      made_);
      return;
    }
    if (!batch || (size.is_integer() && size.integer < 2) || batch.kind() == Kind::none_literal)
      return;
    if (const Ref one = without_gpus(batch)) {
      const std::string test = test_of_sharing();
      edit::replace(batch,
                    std::string(one.text()) +
                        (test.empty() ? "" : " if " + test + " else " + std::string(batch.text())),
                    "", made_);
      return;
    }
    if (!gives_the_same_again(batch)) return;
    const std::string total = in_brackets(batch);
    const std::string ranks = count_ranks(batch);
    if (batch.kind() == Kind::integer)
      put_lines_above(batch);
    else
      assert_division(batch, total, ranks);
    edit::replace(batch, total + " // " + ranks, "", made_);
  }

 private:
  bool put(Ref shuffle, const std::string& sampler, const std::string& dataset) {
    if (const Ref carried = dictionary_behind();
        carried && (shuffle ? !is_in_call(shuffle) : loader_.has_splat()))
      return put_in_dictionary(carried, dataset);
    return shuffle && !loader_.keyword("shuffle")
               ? put_by_position(shuffle, sampler, shuffle_beside(shuffle))
               : put_by_name(sampler, shuffle_beside(shuffle));
  }

  // DataLoader(Items(path)): the sampler needs the same object, which a line above may make.
  bool is_made_once_above(Ref dataset) const {
    const auto& tree = dataset.module->tree();
    if (dataset.kind() != Kind::call || !is_in_call(dataset) || !has_line_of_its_own(dataset))
      return false;
    const NodeId statement = edit::statement_of(dataset).node;
    for (NodeId at = dataset.node; at != statement; at = tree[at].parent)
      if (tree[at].kind == Kind::conditional || tree[at].kind == Kind::boolean) return false;
    const Kind kind = tree[statement].kind;
    return kind == Kind::assignment || kind == Kind::expression_statement ||
           kind == Kind::return_statement;
  }

  // Another loader of the statement has a name of its own: (DataLoader(a()), DataLoader(b())).
  std::string free_name(Ref node) const {
    const Ref statement = edit::statement_of(node);
    const auto calls = program_.calls(Api::data_loader);
    const auto before = std::count_if(calls.begin(), calls.end(), [&](const CallRef& each) {
      return each.module == node.module && each.call->node < loader_.call->node &&
             node.module->tree().contains(statement.node, each.call->node);
    });
    const std::string number = before > 0 ? "_" + std::to_string(before + 1) : "";
    for (const std::string_view name : {"train_data", "sampled_data"})
      if (const std::string free = std::string(name) + number;
          node.module->defs_of(free, false).empty())
        return free;
    return "data_of_ranks" + number;
  }

  // int(size), but not options.pop("size").
  static bool gives_the_same_again(Ref batch) {
    const auto calls = facts::calls_in(batch);
    return std::all_of(calls.begin(), calls.end(), [](const CallRef& call) {
      constexpr std::string_view kPlain[] = {"int", "max", "min", "get", "getattr"};
      return std::find(std::begin(kPlain), std::end(kPlain), call.call->name) != std::end(kPlain);
    });
  }

  void put_lines_above(Ref node) {
    if (!lines_.empty()) edit::insert_before(node, lines_, "", made_);
  }

  void assert_division(Ref node, const std::string& total, const std::string& ranks) {
    const std::string rest = total + " % " + ranks;
    const std::string words = "\"the batch does not divide by the number of ranks\"";
    if (has_line_of_its_own(node))
      lines_ +=
          (lines_.empty() ? "" : "\n") +
          (is_assertion_swallowed(node) ? "if " + rest + " != 0:\n\traise SystemExit(" + words + ")"
                                        : "assert " + rest + " == 0, " + words);
    put_lines_above(node);
  }

  // except Exception: print(...) around it: the run would go on without the loader.
  static bool is_assertion_swallowed(Ref node) {
    const auto& tree = node.module->tree();
    for (NodeId at = tree.ancestor(node.node, Kind::try_statement); at != kNoNode;
         at = tree.ancestor(at, Kind::try_statement)) {
      if (!tree.contains(tree.child(at, Field::body), node.node)) continue;
      for (NodeId part = tree[at].first_child; part != kNoNode; part = tree[part].next_sibling) {
        if (tree[part].kind != Kind::except_clause) continue;
        const std::string_view text = tree.text(part);
        const std::string_view head = text.substr(0, text.find(':'));
        if ((facts::contains(head, "Exception") || facts::contains(head, "AssertionError")) &&
            !facts::contains(text, "raise"))
          return true;
      }
    }
    return false;
  }

  // And not by default, or in the calls that are in sight: an option may say something else.
  bool is_always(Ref value, bool holds) const {
    const auto& sources = program_.sources(value);
    return !facts::is_parameter(program_, value) &&
           std::none_of(sources.begin(), sources.end(),
                        [](const Source& source) { return source.how == Source::How::argument; }) &&
           (holds ? program_.is_literal_true(value) : program_.is_literal_false(value));
  }

  // What `shuffle` says beside the sampler: that of before, where there is none.
  std::string shuffle_beside(Ref shuffle) const {
    if (!shuffle || is_always(shuffle, false)) return "False";
    const std::string before = is_always(shuffle, true) ? "" : in_brackets(shuffle) + " and ";
    if (is_of_item_) return before + "not (" + test_of_sharing() + ")";
    return is_script_ ? "False"
                      : before + "not " + names_.dist(*loader_.module) + ".is_initialized()";
  }

  enum class Order : std::uint8_t { none, random, as_stored, unknown };

  // Of RandomSampler(data), SequentialSampler(data) or None.
  Order order_of(Ref sampler) const {
    std::set<Order> orders;
    for (const Source& source : program_.sources(sampler)) {
      const CallRef made = program_.as_call(source.ref);
      if (source.ref.kind() == Kind::none_literal)
        orders.insert(Order::none);
      else if (made && made.call->name == "RandomSampler")
        orders.insert(Order::random);
      else
        orders.insert(made && made.call->name == "SequentialSampler" ? Order::as_stored
                                                                     : Order::unknown);
    }
    return orders.size() == 1 ? *orders.begin() : Order::unknown;
  }

  // What holds where ranks share the loader's data out; empty where they always do.
  std::string test_of_sharing() const {
    std::string out(choice_);
    if (!is_script_)
      out += (out.empty() ? "" : " and ") + names_.dist(*loader_.module) + ".is_initialized()";
    return out;
  }

  // An expression for the number of ranks; with a line of its own, as a name, in files that others
  // may import.
  std::string count_ranks(Ref batch) {
    const std::string dist = names_.dist(*loader_.module);
    const std::string test = test_of_sharing();
    if (test.empty()) return dist + ".get_world_size()";
    const std::string count = dist + ".get_world_size() if " + test + " else 1";
    if (!has_line_of_its_own(batch)) return "(" + count + ")";
    const bool is_taken = !batch.module->defs_of("ranks", false).empty();
    const std::string name = is_taken ? "ddp_ranks" : "ranks";
    lines_ = name + " = " + count;
    return name;
  }

  // A statement may stand above: it is alone on its line, and no lambda or comprehension binds the
  // names.
  static bool has_line_of_its_own(Ref node) {
    const auto& tree = node.module->tree();
    const Ref statement = edit::statement_of(node);
    if (!edit::starts_its_line(statement)) return false;
    for (NodeId at = node.node; at != statement.node; at = tree[at].parent)
      if (tree[at].kind == Kind::lambda || tree[at].kind == Kind::comprehension) return false;
    return true;
  }

  // And not in a dictionary behind **, which other loaders may share.
  bool is_in_call(Ref value) const {
    return value.module == loader_.module &&
           loader_.module->tree().contains(loader_.call->node, value.node);
  }

  // options of DataLoader(data, **options), where nothing else is behind **.
  Ref dictionary_behind() const {
    const auto& tree = loader_.module->tree();
    const Ref arguments = loader_.ref().child(Field::arguments);
    Ref out;
    for (NodeId at = tree[arguments.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
      if (tree[at].kind != Kind::dictionary_splat) continue;
      if (out) return {};
      out = loader_.ref().with(tree[at].first_child);
    }
    return out.kind() == Kind::identifier || out.kind() == Kind::attribute ? out : Ref{};
  }

  // , "batch_size": options["batch_size"] // dist.get_world_size()
  std::string batch_item(Ref carried) {
    const Ref batch = loader_.argument(1, "batch_size");
    const Value size = batch ? program_.evaluate(batch) : Value{};
    if (!batch || is_in_call(batch) || (size.is_integer() && size.integer < 2)) return {};
    const std::string total = std::string(carried.text()) + "[\"batch_size\"]";
    const std::string ranks = count_ranks(carried);
    assert_division(carried, total, ranks);
    return ", \"batch_size\": " + total + " // " + ranks;
  }

  // Other loaders may take the same dictionary, so that this one gets a copy.
  bool put_in_dictionary(Ref carried, const std::string& dataset) {
    const std::string options(carried.text());
    const std::string shuffled = options + ".get(\"shuffle\", False)";
    const std::string test = test_of_sharing();
    std::string text = "{**" + options + ", \"shuffle\": ";
    text += test.empty() ? "False" : shuffled + " and not (" + test + ")";
    text += ", \"sampler\": " + names_.sampler(*loader_.module) + "(" + dataset +
            ", shuffle=" + shuffled + ")" + (test.empty() ? "" : " if " + test + " else None");
    edit::replace(carried, text + batch_item(carried) + "}", "", made_);
    // sampler=None beside it
    if (const Ref named = loader_.keyword("sampler"); named && is_in_call(named))
      edit::remove_argument(loader_, "sampler", "", made_);
    in_dictionary_ = true;
    return true;
  }

  std::size_t edits() const { return made_.fix ? made_.fix->edits.size() : 0; }

  // DataLoader(data, 64, True, None)
  bool put_by_position(Ref shuffle, const std::string& sampler, const std::string& shuffle_now) {
    const std::size_t before = edits();
    const Ref named = loader_.keyword("sampler");
    const Ref place = named ? named : loader_.argument(3, "sampler");
    if (place)
      edit::replace(place, sampler, "", made_);
    else
      edit::add_argument(loader_, "sampler=" + sampler, "", made_);
    if (edits() == before) return false;
    edit::replace(shuffle, shuffle_now, "", made_);
    return true;
  }

  bool put_by_name(const std::string& sampler, const std::string& shuffle_now) {
    const std::size_t before = edits();
    const Ref shuffle = loader_.keyword("shuffle");
    const Ref none = loader_.keyword("sampler");  // sampler=None
    std::string arguments = "sampler=" + sampler;
    if (shuffle_now != "False") arguments += ", shuffle=" + shuffle_now;
    const auto put_in_place_of = [&](Ref value) {
      edit::replace(value.with((*value.module)[value.node].parent), arguments, "", made_);
    };
    if ((none && !is_in_call(none)) || (shuffle && !is_in_call(shuffle))) return false;
    if (none) {
      put_in_place_of(none);
      if (shuffle) edit::remove_argument(loader_, "shuffle", "", made_);
    } else if (shuffle) {
      put_in_place_of(shuffle);
    } else {
      edit::add_argument(loader_, arguments, "", made_);
    }
    return edits() > before;
  }

  static std::string in_brackets(Ref expression) {
    const Kind kind = expression.kind();
    const bool joined = kind == Kind::binary || kind == Kind::conditional ||
                        kind == Kind::boolean || kind == Kind::comparison;
    const std::string text(expression.text());
    return joined ? "(" + text + ")" : text;
  }

  // per_gpu for per_gpu * num_gpus: what each rank takes.
  static Ref without_gpus(Ref batch) {
    if (batch.kind() != Kind::binary || batch.module->tree()[batch.node].op != Op::multiply)
      return {};
    const auto counts_gpus = [](Ref part) {
      return pitfalls::says_any(part.text(), {"gpu", "device_count", "device_ids"}) &&
             !pitfalls::says_any(part.text(), {"per_gpu", "batch"});
    };
    const Ref left = batch.child(Field::left);
    const Ref right = batch.child(Field::right);
    if (counts_gpus(right)) return left;
    return counts_gpus(left) ? right : Ref{};
  }

  const Program& program_;
  const CallRef& loader_;
  FileNames& names_;
  Finding& made_;
  bool is_script_;
  bool is_of_item_ = false;
  std::string choice_;          // holds for training, in a function that serves evaluation too
  bool in_dictionary_ = false;  // the sampler stands behind **
  std::string lines_;           // above the statement
};

// loader = DataLoader(...) in each round
bool is_assigned_in(Ref name, Ref body) {
  const auto& tree = body.module->tree();
  for (NodeId at = body.node; at < tree[body.node].last; ++at)
    if (tree[at].kind == Kind::assignment) {
      const std::string_view target = tree.text(tree.child(at, Field::left));
      if (target == name.text() || target.starts_with(std::string(name.text()) + ",") ||
          target.ends_with(", " + std::string(name.text())))
        return true;
    }
  return false;
}

bool names_any(Ref subtree, std::string_view name) {
  const auto& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at)
    if (tree[at].kind == Kind::identifier && tree.text(at) == name) return true;
  return false;
}

// def run(loader): while step < limit: ...; called in a loop: a count within it begins anew.
bool is_called_in_rounds(const Program& program, Ref loop) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(),
                     [&](const CallRef& site) { return program.innermost_loop(site.ref()); });
}

}  // namespace

void count_epochs(const Program& program, const TrainingLoop& loop, Finding& made) {
  const Ref epochs = loop.epochs;
  if (!epochs || epochs.module != loop.batches.module) return;
  const std::string counter = "data_epoch";
  if (!epochs.module->defs_of(counter, false).empty()) return;
  if (epochs.kind() == Kind::for_statement) {
    const Ref variable = epochs.child(Field::left);
    // print(_) uses it all the same.
    if (variable && variable.text() == "_" && !names_any(epochs.child(Field::body), "_"))
      edit::replace(variable, counter, "", made);
    return;
  }
  const Ref loader = program.strip_iterable(loop.iterable);
  if (epochs.kind() != Kind::while_statement || !loader || is_called_in_rounds(program, epochs) ||
      program.enclosing_function(epochs) != program.enclosing_function(loop.batches) ||
      (loader.kind() != Kind::identifier && loader.kind() != Kind::attribute))
    return;
  const std::string sampler = std::string(loader.text()) + ".sampler";
  const std::string call = sampler + ".set_epoch(" + counter + ")";
  const bool is_sure = epochs.module == &program.root() && !facts::is_parameter(program, loader);
  const std::string lines =
      (is_sure ? call : "if hasattr(" + sampler + ", \"set_epoch\"):\n\t" + call) + "\n" + counter +
      " += 1";
  const bool is_made_within = is_assigned_in(loader, epochs.child(Field::body));
  if (is_made_within && loop.batches.kind() != Kind::for_statement) return;
  edit::insert_before(epochs, counter + " = 0", "", made);
  if (is_made_within)
    edit::insert_before(loop.batches, lines, "", made);
  else
    edit::insert_first(epochs.child(Field::body), lines, "", made);
}

namespace {

// sampler.set_epoch(epoch), and dataset.set_epoch(epoch) of an object that tells its sampler.
bool tells_some_sampler(const Program& program) {
  const auto sets = program.calls_named("set_epoch");
  return std::any_of(sets.begin(), sets.end(), [&](const CallRef& set) {
    const FunctionRef callee = program.callee(set);
    return facts::contains(set.receiver().text(), "sampler") ||
           (callee && facts::contains(callee.module->text(callee.function->body), "sampler"));
  });
}

}  // namespace

void set_epochs_of_holder(const Program& program, const TrainingLoop& loop, const CallRef& loader,
                          Finding& made) {
  const Ref epochs = loop.epochs;
  const Ref holder = program.strip_iterable(loop.iterable);
  const std::string_view name = program.assigned_name(loader.ref());
  if (epochs.kind() != Kind::for_statement ||
      epochs.child(Field::left).kind() != Kind::identifier ||
      epochs.child(Field::left).text() == "_" || !name.starts_with("self.") ||
      !stands_for_object(holder) || epochs.module != holder.module ||
      program.enclosing_function(epochs) != program.enclosing_function(holder) ||
      is_assigned_in(holder, epochs.child(Field::body)) || tells_some_sampler(program))
    return;
  const auto& line = program.lineage(program.class_of(holder));
  if (std::find(line.begin(), line.end(), program.enclosing_class(loader.ref())) == line.end())
    return;
  const std::string sampler =
      std::string(holder.text()) + "." + std::string(name.substr(5)) + ".sampler";
  const std::string call =
      sampler + ".set_epoch(" + std::string(epochs.child(Field::left).text()) + ")";
  const bool is_sure = epochs.module == &program.root() && !facts::is_parameter(program, holder) &&
                       !serves_several(program, loader);
  edit::insert_first(epochs.child(Field::body),
                     is_sure ? call : "if hasattr(" + sampler + ", \"set_epoch\"):\n\t" + call, "",
                     made);
}

bool share_out(const Program& program, const CallRef& loader, FileNames& names, Finding& made) {
  Sharer sharer(program, loader, names, made);
  if (!sharer.add_sampler()) return false;
  sharer.divide_batch();
  return true;
}

}  // namespace bench::diagnose
