#include "scenarios/pitfalls/idle_pooler.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/words.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;

namespace {

// BERT, RoBERTa and their kin have one; DistilBERT, DeBERTa and ModernBERT have none.
bool names_model_with_pooler(std::string_view name) {
  return says_any(name, {"bert"}) && !says_any(name, {"distil", "deberta", "modern", "mobile",
                                                      "squeeze", "sentence", "colbert"});
}

bool makes_pooler(const Program& program, const CallRef& call) {
  const std::string path = call.module->qualified(call.call->function);
  if (!path.starts_with("transformers.") || call.keyword("add_pooling_layer")) return false;
  for (const std::string_view cls : {"BertModel", "RobertaModel", "XLMRobertaModel"})
    if (path == "transformers." + std::string(cls) + ".from_pretrained") return true;
  if (path != "transformers.AutoModel.from_pretrained") return false;
  const Ref given = call.argument(0, "pretrained_model_name_or_path");
  const auto name = given ? program.evaluate(given) : diagnose::Value{};
  return name.is_string() && names_model_with_pooler(name.string);
}

}  // namespace

std::vector<CallRef> encoders_with_idle_pooler(const Program& program, ClassRef cls) {
  std::vector<CallRef> out;
  const std::string_view text = cls.module->text(cls.cls->node);
  if (!holds_any(text, {"last_hidden_state", ")[0]", "outputs[0]", "output[0]", "out[0]"}) ||
      holds_any(text, {"pooler", "[1]", "return_dict", "no_grad"}) ||
      program.mentions("requires_grad"))
    return out;
  for (const CallRef& call : program.calls_named("from_pretrained"))
    if (program.enclosing_class(call.ref()) == cls && makes_pooler(program, call))
      out.push_back(call);
  return out;
}

}  // namespace bench::pitfalls
