#include "scenarios/pitfalls/files/named_by_figure.hpp"

#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

// loss, val_loss, mean_acc: what a process computes from its part of the data. Of an evaluation
// only where its data is shared out as well, as Accelerate does.
bool names_own_figure(std::string_view name, bool shares_evaluation) {
  bool figure = false;
  for (const std::string& word : words_of_name(name)) {
    for (const char* each : {"val", "valid", "validation", "test", "eval", "best"})
      if (word == each && !shares_evaluation) return false;
    // The kind of a loss, which is the same everywhere.
    for (const char* each : {"type", "name", "fn", "func", "function", "mode", "kind"})
      if (word == each) return false;
    for (const char* each : {"loss", "losses", "acc", "accuracy", "score", "ppl", "perplexity",
                             "psnr", "iou", "auc", "wer", "cer", "bleu", "reward"})
      figure = figure || word == each;
  }
  return figure;
}

// loss in f"{args.loss}.pt" is an option, and acc = test(net) that of all the data.
bool is_shared_figure(const Program& program, Ref name, bool shares_evaluation) {
  const auto& tree = name.module->tree();
  if (tree[name.node].field == diagnose::Field::attribute) {
    const Ref object = name.with(tree[name.node].parent).child(diagnose::Field::object);
    return says_any(object.text(), {"arg", "opt", "conf", "cfg", "flag", "param", "setting"});
  }
  const auto& sources = program.sources(name);
  return !shares_evaluation &&
         std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
           const CallRef made = program.as_call(source.ref);
           return made && says_any(made.call->name, {"test", "valid", "eval"});
         });
}

// {metric:.4f}, str(metric), round(metric, 3): a number, where {metric} may be the name of one.
bool is_written_as_number(Ref name) {
  const auto& tree = name.module->tree();
  const auto parent = tree[name.node].parent;
  if (tree[parent].kind == Kind::argument_list) {
    const std::string_view call = tree.text(tree[parent].parent);
    return call.starts_with("str(") || call.starts_with("round(") || call.starts_with("float(");
  }
  const std::string_view rest = tree.source().substr(tree[name.node].end);
  return rest.starts_with(":.") && rest.substr(0, rest.find('}')).ends_with("f");
}

bool is_metric(std::string_view name) {
  const auto words = words_of_name(name);
  return std::find(words.begin(), words.end(), "metric") != words.end();
}

// The figures in the text of a path, and behind the names in it: os.path.join(folder, name), after
// name = f"best_{loss}.pt".
class Path {
 public:
  static constexpr int kNames = 3;

  explicit Path(const Program& program) : program_(program), shared_(accelerate_wraps(program)) {}

  bool holds_figure(Ref part, int depth = 0) const {
    const int names = shared_ ? kNames : 0;  // elsewhere a score may be one of all the data
    const auto& tree = part.module->tree();
    for (auto at = part.node; at < tree[part.node].last; ++at)
      if (tree[at].kind == Kind::identifier &&
          (is_figure(part.with(at)) || (depth < names && stands_for_figure(part, at, depth))))
        return true;
    return false;
  }

 private:
  bool is_figure(Ref name) const {
    if (is_shared_figure(program_, name, shared_)) return false;
    return names_own_figure(name.text(), shared_) ||
           (shared_ && is_metric(name.text()) && is_written_as_number(name));
  }

  bool stands_for_figure(Ref part, diagnose::NodeId at, int depth) const {
    if (part.module->tree()[at].field == diagnose::Field::attribute) return false;
    const auto& sources = program_.sources(part.with(at));
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      return source.how == Source::How::value && makes_text(source.ref) &&
             holds_figure(source.ref, depth + 1);
    });
  }

  // A string, parts of one that are joined, or os.path.join(...).
  bool makes_text(Ref value) const {
    const CallRef call = program_.as_call(value);
    return value.kind() == Kind::string || value.kind() == Kind::binary ||
           (call && (call.call->name == "join" || call.call->name == "format"));
  }

  const Program& program_;
  bool shared_;  // the data of the evaluation is, too
};

// A class that nothing makes an object of, and a Lightning module in a script without a Trainer,
// are not run.
bool is_idle(const Program& program, Ref node) {
  const diagnose::ClassRef cls = program.enclosing_class(node);
  return facts::is_never_made(program, node) ||
         (cls && program.derives_from(cls, Api::lightning_module) &&
          !program.uses(Api::lightning_trainer));
}

// all_reduce(...), and metric.compute(), which reduces what it holds.
bool reduces_something(const Program& program) {
  const auto reductions = reductions_of(program);
  const auto computes = program.calls_named("compute");
  return !std::all_of(reductions.begin(), reductions.end(),
                      [&](const Reduction& each) { return is_idle(program, each.call); }) ||
         !std::all_of(computes.begin(), computes.end(),
                      [&](const CallRef& each) { return is_idle(program, each.ref()); });
}

}  // namespace

bool is_named_by_own_figure(const Program& program, const CallRef& save) {
  const Ref path =
      save.call->api == Api::torch_save ? save.argument(1, "f") : save.argument(0, "f");
  if (!path || reduces_something(program)) return false;
  const Path name(program);
  const auto& sources = program.sources(path);
  return name.holds_figure(path) ||
         std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
           return source.how == Source::How::value && name.holds_figure(source.ref);
         });
}

}  // namespace bench::pitfalls
