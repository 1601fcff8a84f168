#include "diagnose/to_ddp/loader_shares.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/words.hpp"

namespace bench::diagnose {
namespace {

namespace edit = pitfalls;

class Sharer {
 public:
  Sharer(const Program& program, const CallRef& loader, FileNames& names, Finding& made)
      : program_(program),
        loader_(loader),
        names_(names),
        made_(made),
        is_script_(loader.module == &program.root()) {}

  void add_sampler() {
    const std::string dataset(loader_.argument(0, "dataset").text());
    const Ref shuffle = loader_.argument(2, "shuffle");
    std::string sampler = names_.sampler(*loader_.module) + "(" + dataset;
    if (!shuffle || !program_.is_literal_true(shuffle))
      sampler += ", shuffle=" + (shuffle ? std::string(shuffle.text()) : "False");
    sampler += ")";
    const Ref keyword = loader_.keyword("shuffle");
    if (is_script_) {
      put("sampler=" + sampler, keyword);
      return;
    }
    const std::string joined = names_.dist(*loader_.module) + ".is_initialized()";
    std::string text = "sampler=" + sampler + " if " + joined + " else None";
    if (shuffle && !program_.is_literal_false(shuffle)) {
      const bool is_true = program_.is_literal_true(shuffle);
      text += ", shuffle=" + (is_true ? std::string() : in_brackets(shuffle) + " and ") + "not " +
              joined;
    }
    put(text, keyword);
  }

  // What users may set is checked to divide; a batch of one cannot be divided.
  void divide_batch() {
    const Ref batch = loader_.argument(1, "batch_size");
    const Value size = batch ? program_.evaluate(batch) : Value{};
    if (!batch || (size.is_integer() && size.integer < 2)) return;
    if (const Ref one = without_gpus(batch)) {
      edit::replace(batch, std::string(one.text()), "", made_);
      return;
    }
    const std::string total = in_brackets(batch);
    const std::string ranks = count_ranks(batch);
    if (batch.kind() != Kind::integer)
      lines_ += (lines_.empty() ? "" : "\n") + ("assert " + total) + " % " + ranks +
                " == 0, \"the batch does not divide by the number of ranks\"";
    if (!lines_.empty()) edit::insert_before(batch, lines_, "", made_);
    edit::replace(batch, total + " // " + ranks, "", made_);
  }

 private:
  // An expression for the number of ranks; with a line of its own, as a name, in files that others
  // may import.
  std::string count_ranks(Ref batch) {
    const std::string dist = names_.dist(*loader_.module);
    if (is_script_) return dist + ".get_world_size()";
    const bool is_taken = !batch.module->defs_of("ranks", false).empty();
    const std::string name = is_taken ? "ddp_ranks" : "ranks";
    lines_ = name + " = " + dist + ".get_world_size() if " + dist + ".is_initialized() else 1";
    return name;
  }

  void put(const std::string& arguments, Ref shuffle) {
    const Ref none = loader_.keyword("sampler");  // sampler=None
    const auto put_in_place_of = [&](Ref value) {
      edit::replace(value.with((*value.module)[value.node].parent), arguments, "", made_);
    };
    if (none) {
      put_in_place_of(none);
      if (shuffle) edit::remove_argument(loader_, "shuffle", "", made_);
    } else if (shuffle) {
      put_in_place_of(shuffle);
    } else {
      edit::add_argument(loader_, arguments, "", made_);
    }
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
  std::string lines_;  // above the statement
};

}  // namespace

void count_epochs(const Program& program, const TrainingLoop& loop, Finding& made) {
  const Ref epochs = loop.epochs;
  if (!epochs || epochs.module != loop.batches.module) return;
  const std::string counter = "data_epoch";
  if (!epochs.module->defs_of(counter, false).empty()) return;
  if (epochs.kind() == Kind::for_statement) {
    const Ref variable = epochs.child(Field::left);
    if (variable && variable.text() == "_") edit::replace(variable, counter, "", made);
    return;
  }
  const Ref loader = program.strip_iterable(loop.iterable);
  if (epochs.kind() != Kind::while_statement || !loader ||
      program.enclosing_function(epochs) != program.enclosing_function(loop.batches) ||
      (loader.kind() != Kind::identifier && loader.kind() != Kind::attribute))
    return;
  const std::string sampler = std::string(loader.text()) + ".sampler";
  const std::string call = sampler + ".set_epoch(" + counter + ")";
  const bool is_script = epochs.module == &program.root();
  edit::insert_before(epochs, counter + " = 0", "", made);
  edit::insert_first(epochs.child(Field::body),
                     (is_script ? call : "if hasattr(" + sampler + ", \"set_epoch\"):\n\t" + call) +
                         "\n" + counter + " += 1",
                     "", made);
}

void share_out(const Program& program, const CallRef& loader, FileNames& names, Finding& made) {
  Sharer sharer(program, loader, names, made);
  sharer.add_sampler();
  sharer.divide_batch();
}

}  // namespace bench::diagnose
