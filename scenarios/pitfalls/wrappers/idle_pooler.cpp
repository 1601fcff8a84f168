#include "scenarios/pitfalls/wrappers/idle_pooler.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Def;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// BERT, RoBERTa and their kin have one; DistilBERT, DeBERTa and ModernBERT have none.
bool names_model_with_pooler(std::string_view name) {
  return says_any(name, {"bert"}) && !says_any(name, {"distil", "deberta", "modern", "mobile",
                                                      "squeeze", "sentence", "colbert"});
}

// class BertModel(nn.Module) of the file itself, which takes the name.
bool is_class_of_file(const diagnose::Module& module, std::string_view name) {
  const auto& tree = module.tree();
  const auto& classes = module.classes();
  return std::any_of(classes.begin(), classes.end(), [&](const diagnose::Class& cls) {
    return cls.name == name && tree[tree[cls.node].parent].kind == Kind::module;
  });
}

// transformers.BertModel.from_pretrained for BertModel.from_pretrained below `from transformers
// import *`.
std::string path_of_model(const CallRef& call) {
  const std::string path(call.call->path);
  const std::string name(call.receiver().text());
  const auto& stars = call.module->nodes_of(Kind::wildcard_import);
  const bool is_starred = std::any_of(stars.begin(), stars.end(), [&](NodeId star) {
    const auto& tree = call.module->tree();
    return tree.text(tree[star].parent).starts_with("from transformers import");
  });
  if (path.starts_with("transformers.") || !is_starred || name.empty() ||
      is_class_of_file(*call.module, name))
    return path;
  return "transformers." + name + ".from_pretrained";
}

bool makes_pooler(const Program& program, const CallRef& call) {
  const std::string path = path_of_model(call);
  if (!path.starts_with("transformers.") || call.keyword("add_pooling_layer")) return false;
  for (const std::string_view cls : {"BertModel", "RobertaModel", "XLMRobertaModel"})
    if (path == "transformers." + std::string(cls) + ".from_pretrained") return true;
  if (path != "transformers.AutoModel.from_pretrained") return false;
  const Ref given = call.argument(0, "pretrained_model_name_or_path");
  const auto name = given ? program.evaluate(given) : diagnose::Value{};
  return name.is_string() && names_model_with_pooler(name.string);
}

// self.bert in self.bert = BertModel.from_pretrained(...). What only goes into it, as .encoder or
// get_peft_model() of the call, may have no pooler, or one that is frozen.
Ref kept_as(const CallRef& call) {
  const auto& tree = call.module->tree();
  const NodeId parent = tree[call.call->node].parent;
  if (tree[parent].kind != Kind::assignment) return {};
  const Ref target = call.ref().with(parent).child(Field::left);
  return target.text().starts_with("self.") ? target : Ref{};
}

// freeze(self.bert): what a function does with it is not known.
bool is_handed_over(std::string_view text, std::string_view name) {
  for (const char* before : {"(", ", ", "="})
    for (const char* after : {")", ","})
      if (facts::contains(text, before + std::string(name) + after)) return true;
  return false;
}

// out.last_hidden_state and out[0], which leave what the pooler gives.
bool takes_states_alone(Ref output) {
  const auto& tree = output.module->tree();
  const Ref use = output.with(tree[output.node].parent);
  if (use.kind() == Kind::attribute) {
    const std::string_view name = use.child(Field::attribute).text();
    return name == "last_hidden_state" || name == "hidden_states" || name == "attentions";
  }
  return use.kind() == Kind::subscript && use.child(Field::value) == output &&
         use.child(Field::subscript).text() == "0";
}

// out = self.bert(x), of which all lines until the name is given anew take the states.
bool is_asked_for_states_alone(FunctionRef function, Ref name) {
  const auto& module = *name.module;
  const auto& tree = module.tree();
  NodeId end = tree[function.function->node].last;
  for (const auto index : module.defs_of(name.text(), false)) {
    const Def& def = module.defs()[index];
    if (def.target > name.node && def.target < end)
      end = def.value == kNoNode ? def.target : std::max(def.target, tree[def.value].last);
  }
  for (NodeId id = name.node + 1; id < end; ++id) {
    if (tree[id].kind != Kind::identifier || tree.text(id) != name.text()) continue;
    const bool is_other = tree[id].field == Field::left || tree[id].field == Field::attribute;
    if (!is_other && !takes_states_alone(name.with(id))) return false;
  }
  return true;
}

bool gives_states_alone(const Program& program, const CallRef& forward) {
  if (takes_states_alone(forward.ref())) return true;
  const auto& tree = forward.module->tree();
  const Ref parent = forward.ref().with(tree[forward.call->node].parent);
  const Ref name = parent.kind() == Kind::assignment ? parent.child(Field::left) : Ref{};
  const auto function = program.enclosing_function(forward.ref());
  return name && name.kind() == Kind::identifier && function &&
         is_asked_for_states_alone(function, name);
}

// The class calls the encoder, and nothing but its states is used.
bool uses_states_alone(const Program& program, ClassRef cls, Ref encoder) {
  bool any = false;
  for (const diagnose::Call& made : cls.module->calls()) {
    const CallRef call{cls.module, &made};
    if (!cls.module->tree().contains(cls.cls->node, made.node) ||
        cls.module->text(made.function) != encoder.text())
      continue;
    if (program.under_no_grad(call.ref()) || !gives_states_alone(program, call)) return false;
    any = true;
  }
  return any;
}

// p.requires_grad = False and net.requires_grad_(False); not a filter of what an optimizer is
// given.
bool may_freeze(const Program& program) {
  if (program.mentions("requires_grad_") || program.mentions("setattr")) return true;
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
    return !module->defs_of("requires_grad", true).empty();
  });
}

}  // namespace

std::vector<CallRef> encoders_with_idle_pooler(const Program& program, ClassRef cls) {
  std::vector<CallRef> out;
  const std::string_view text = cls.module->text(cls.cls->node);
  if (holds_any(text, {"return_dict", "no_grad", "inference_mode"})) return out;
  for (const std::string_view word : {"freeze", "peft", "pooler"})
    if (program.mentions(word)) return out;
  if (may_freeze(program)) return out;
  for (const CallRef& call : program.calls_named("from_pretrained")) {
    if (!(program.enclosing_class(call.ref()) == cls) || !makes_pooler(program, call)) continue;
    const Ref encoder = kept_as(call);
    if (encoder && !is_handed_over(text, encoder.text()) &&
        uses_states_alone(program, cls, encoder))
      out.push_back(call);
  }
  return out;
}

}  // namespace bench::pitfalls
