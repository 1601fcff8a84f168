#include "diagnose/model/accelerate.hpp"

#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <array>

namespace bench::diagnose {
namespace {

constexpr auto kOfOneObject = std::to_array<std::string_view>(
    {"prepare_model", "prepare_data_loader", "prepare_optimizer", "prepare_scheduler"});

std::string_view last_name(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

// self.acc for self.acc = Accelerator(): the last part of the name that the object is given.
std::string_view name_given_to(const CallRef& made) {
  const SyntaxTree& tree = made.module->tree();
  for (NodeId at = made.call->node; tree[at].parent != kNoNode; at = tree[at].parent) {
    const NodeId above = tree[at].parent;
    if (tree[above].kind == Kind::assignment && tree[at].field == Field::right)
      return last_name(tree.text(tree.child(above, Field::left)));
    if (tree[above].kind == Kind::block || tree[above].kind == Kind::expression_statement) break;
  }
  return {};
}

// FusedAdam of deepspeed.ops.adam and "adamw_deepspeed" say which optimizer, and nothing else.
bool names_engine(std::string_view text) {
  const std::string plain = lowered(text);
  const auto says = [&](std::string_view word) { return plain.find(word) != std::string::npos; };
  return (says("deepspeed") || says("fsdp") || says("fullyshard") || says("fully_shard")) &&
         !says("adam") && !says("lamb");
}

bool is_in_import(const SyntaxTree& tree, NodeId node) {
  return tree.ancestor(node, Kind::import_from) != kNoNode ||
         tree.ancestor(node, Kind::import_statement) != kNoNode;
}

bool uses_engine(const SyntaxTree& tree) {
  for (NodeId node = 0; node < tree.size(); ++node) {
    const Kind kind = tree[node].kind;
    if (kind != Kind::identifier && kind != Kind::string) continue;
    const std::string_view text = tree.text(node);
    if (!names_engine(text)) continue;
    // A text for people has spaces.
    if (kind == Kind::string && text.find_first_of(" \n\t") != std::string_view::npos) continue;
    if (!is_in_import(tree, node)) return true;
  }
  return false;
}

}  // namespace

bool is_prepare(std::string_view name) {
  return name == "prepare" ||
         std::find(kOfOneObject.begin(), kOfOneObject.end(), name) != kOfOneObject.end();
}

Ref prepared_by(const CallRef& prepare, std::size_t index) {
  if (prepare.call->name == "prepare") return prepare.positional(index);
  if (index > 0) return {};
  // prepare_data_loader(data_loader=loader)
  return prepare.argument(0, prepare.call->name.substr(std::string_view("prepare_").size()));
}

bool uses_another_engine(const Program& program) {
  return std::any_of(program.modules().begin(), program.modules().end(), [](const Module* module) {
    for (const std::string_view word :
         {"deepspeed", "DeepSpeed", "DEEPSPEED", "fsdp", "FSDP", "FullyShard", "fully_shard"})
      if (module->tree().holds(word)) return uses_engine(module->tree());
    return false;
  });
}

bool Program::is_accelerator(Ref object) const {
  if (!object) return false;
  if (lowered(object.text()).find("accel") != std::string::npos) return true;
  if (object.kind() != Kind::identifier && object.kind() != Kind::attribute) return false;
  return accelerator_names_.count(last_name(object.text())) != 0;
}

// Patient(...) of a class that derives from Accelerator, or PatientAccelerator(...) of a file that
// is not at hand, in a program that imports accelerate: it prepares and passes back as its base.
void Program::index_accelerators() {
  if (!imports("accelerate")) return;
  std::set<std::string_view> own;
  for (const Module* module : modules())
    for (const Class& cls : module->classes())
      if (derives_from({module, &cls}, Api::accelerator)) own.insert(cls.name);
  for (const Module* module : modules())
    for (const Call& call : module->calls()) {
      if (call.api != Api::none || call.function == kNoNode) continue;
      const std::string_view path = call.path;
      const std::string_view name = path.empty() ? call.name : last_name(path);
      if (!name.ends_with("Accelerator") && !own.contains(call.name) && !own.contains(name))
        continue;
      const CallRef made{module, &call};
      const ClassRef cls = class_of_call(made);
      const bool is_own = cls && derives_from(cls, Api::accelerator);
      const bool is_unseen =
          !cls && !path.empty() && !callee(made) && path.find("lightning") == std::string::npos;
      if (is_own || is_unseen) by_api_[static_cast<std::size_t>(Api::accelerator)].push_back(made);
    }
  for (const CallRef& made : calls(Api::accelerator))
    if (const std::string_view name = name_given_to(made); !name.empty())
      accelerator_names_.insert(name);
}

// MyTrainer(...) of a class that derives from the Trainer of transformers; of a file that is not at
// hand, by its name and by what it is given.
bool makes_hf_trainer(const Program& program, const CallRef& made) {
  if (!made || !made.call->name.ends_with("Trainer") || made.call->api != Api::none) return false;
  if (const ClassRef cls = program.class_of_call(made))
    return program.derives_from(cls, Api::hf_trainer);
  return !program.callee(made) && made.keyword("args") && made.keyword("train_dataset");
}

void Program::index_trainers() {
  if (!imports("transformers") && !imports("trl")) return;
  for (const Module* module : modules())
    for (const Call& call : module->calls())
      if (makes_hf_trainer(*this, {module, &call}))
        by_api_[static_cast<std::size_t>(Api::hf_trainer)].push_back({module, &call});
}

// accelerator.prepare_model(model) is prepare() of one object.
void Program::index_prepares() {
  std::vector<CallRef> found;
  for (const std::string_view name : kOfOneObject)
    for (const CallRef& call : calls_named(name))
      if (is_accelerator(call.receiver())) found.push_back(call);
  if (found.empty()) return;
  std::vector<CallRef>& all = calls_by_name("prepare");
  all.insert(all.end(), found.begin(), found.end());
  const auto place = [&](const CallRef& call) {
    return std::find(modules().begin(), modules().end(), call.module) - modules().begin();
  };
  std::stable_sort(all.begin(), all.end(), [&](const CallRef& a, const CallRef& b) {
    return std::pair(place(a), a.call->node) < std::pair(place(b), b.call->node);
  });
}

}  // namespace bench::diagnose
