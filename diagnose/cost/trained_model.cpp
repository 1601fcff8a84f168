#include "diagnose/cost/trained_model.hpp"

#include "bench/core/model_catalog.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

// The last component of torchvision.models.resnet50, where the catalogue has that model.
std::string zoo_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  return find_model(last) != nullptr ? std::string(last) : std::string();
}

// Functions that build a model from its name.
bool builds_by_name(std::string_view qualified) {
  static constexpr auto kBuilders =
      std::to_array<std::string_view>({"timm.create_model", "torchvision.models.get_model",
                                       "torch.hub.load", "timm.models.create_model"});
  return std::find(kBuilders.begin(), kBuilders.end(), qualified) != kBuilders.end();
}

// models.__dict__[args.arch](), and a builder with a literal or default name.
std::string model_built_by(const Program& program, const CallRef& call) {
  const Ref function{call.module, call.call->function};
  if (function.kind() == Kind::subscript) {
    const Ref object = function.child(Field::value);
    if (!object.text().ends_with("models.__dict__")) return {};
    return zoo_name(program.string(function.child(Field::subscript)).value_or(""));
  }
  const std::string name = program.qualified(function);
  if (name.starts_with("torchvision.models.")) {
    if (const std::string model = zoo_name(name); !model.empty()) return model;
  }
  if (!builds_by_name(name)) return {};
  for (std::size_t i = 0; i < 2; ++i)
    if (const auto text = program.string(call.positional(i)))
      if (const std::string model = zoo_name(*text); !model.empty()) return model;
  return {};
}

// What models a program's expressions and classes stand for.
class Models {
 public:
  explicit Models(const Program& program) : program_(program) {}

  void add(Ref expression) {
    const auto& sources = program_.module_sources(expression);
    bool known = !sources.empty();
    for (const Source& source : sources) {
      if (program_.wrap_made_by(source.ref) != nullptr) continue;  // counts by what it wraps
      const CallRef call = program_.as_call(source.ref);
      known = known && call && source.how == Source::How::value && add_built(call);
    }
    // model.features is a part of the model.
    if (!known && expression.kind() == Kind::attribute)
      add(expression.child(Field::object));
    else if (!known)
      unknown_ = true;
  }

  void add_class(ClassRef cls, const CallRef& made = {}) {
    Models parts(program_);
    if (!facts::contains(cls.module->tree().text(cls.cls->node), "requires_grad"))
      parts.add_parts(cls, made);
    if (parts.catalogue_.size() == 1 && parts.own_.empty())
      catalogue_.merge(parts.catalogue_);
    else
      own_.emplace(cls.cls->name);
  }

  TrainedModel only() const {
    if (unknown_ || catalogue_.size() + own_.size() != 1) return {};
    return own_.empty() ? TrainedModel{*catalogue_.begin(), {}} : TrainedModel{{}, *own_.begin()};
  }

 private:
  bool add_built(const CallRef& call) {
    if (std::string model = model_built_by(program_, call); !model.empty()) {
      catalogue_.insert(std::move(model));
      return true;
    }
    const ClassRef cls = program_.class_of_call(call);
    if (cls) add_class(cls, call);
    return static_cast<bool>(cls);
  }

  // self.body = resnet50(), self.net = Net(), and what the class is given: Net(resnet50()). Classes
  // of the program that are no modules, as of data sets, have no parameters.
  void add_parts(ClassRef cls, const CallRef& made) {
    constexpr int kDeepest = 4;
    if (++depth_ > kDeepest) return;
    for (const ClassRef& each : program_.lineage(cls))
      for (const CallRef& call : facts::calls_in({each.module, each.cls->body})) {
        const ClassRef part = program_.class_of_call(call);
        if (!part)
          add_built(call);
        else if (!(part == cls) && program_.derives_from(part, Api::module_class))
          add_part_class(part, call);
      }
    if (!made) return;
    for (const Ref argument : arguments_of(made))
      for (const Source& source : program_.module_sources(argument))
        if (const CallRef given = program_.as_call(source.ref))
          if (std::string model = model_built_by(program_, given); !model.empty())
            catalogue_.insert(std::move(model));
  }

  void add_part_class(ClassRef part, const CallRef& made) {
    Models inside(program_);
    inside.depth_ = depth_;
    inside.add_parts(part, made);
    if (inside.catalogue_.size() != 1 || !inside.own_.empty()) own_.emplace(part.cls->name);
    catalogue_.merge(inside.catalogue_);
  }

  static std::vector<Ref> arguments_of(const CallRef& call) {
    std::vector<Ref> out;
    const auto& tree = call.module->tree();
    const Ref list = call.ref().child(Field::arguments);
    if (!list) return out;
    for (NodeId at = tree[list.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
      const Ref argument = call.ref().with(at);
      out.push_back(argument.kind() == Kind::keyword_argument ? argument.child(Field::value)
                                                              : argument);
    }
    return out;
  }

  const Program& program_;
  std::set<std::string> catalogue_;
  std::set<std::string> own_;
  bool unknown_ = false;
  int depth_ = 0;
};

void add_lightning_modules(const Program& program, Models& models) {
  for (const Module* module : program.modules())
    for (const Class& cls : module->classes()) {
      const ClassRef lightning{module, &cls};
      if (!program.derives_from(lightning, Api::lightning_module)) continue;
      CallRef made;
      for (const CallRef& call : program.calls_named(cls.name))
        if (program.class_of_call(call) == lightning) made = call;
      models.add_class(lightning, made);
    }
}

// accelerator.prepare(model, optimizer, loader): of its arguments only models are models.
void add_prepared(const Program& program, Models& models) {
  for (const CallRef& prepare : program.calls_named("prepare")) {
    if (!program.is_accelerator(prepare.receiver())) continue;
    for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i) {
      const std::string name = lowered(argument.text());
      if (name.find("model") != std::string::npos || name.find("net") != std::string::npos)
        models.add(argument);
    }
  }
}

}  // namespace

TrainedModel trained_model(const Program& program) {
  Models models(program);
  for (const Wrap& wrap : program.wraps()) models.add(wrap.module);
  if (program.wraps().empty()) {
    add_lightning_modules(program, models);
    add_prepared(program, models);
  }
  return models.only();
}

}  // namespace bench::diagnose
