#include "diagnose/syntax/plain_parser.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr TSStateId kFirstState = 1;
constexpr std::size_t kMostReadings = 6;      // tree-sitter's own: it drops the worst of more
constexpr std::uint32_t kStepsPerLook = 128;  // at the clock
constexpr std::size_t kCharactersPerLook = 1U << 20;
// Entries of stacks that may be copied and compared: tree-sitter shares stacks, and is quicker
// then.
constexpr std::uint64_t kWorkPerByte = 8;
constexpr std::uint64_t kWorkOfAnyText = 1U << 20;
constexpr std::size_t kNone = ~std::size_t{0};

bool is_extra(std::uint32_t child) { return (child & PlainTree::kExtra) != 0; }

}  // namespace

PlainParser::PlainParser(const TSLanguage& language, ParseTables& tables, std::string_view text,
                         PlainTree& tree)
    : language_(language),
      tables_(tables),
      reader_(language, tables, text),
      tree_(tree),
      readings_(kMostReadings + 1),
      most_work_(kWorkOfAnyText + kWorkPerByte * text.size()) {
  tree_.pieces.clear();
  tree_.children.clear();
  tree_.root = PlainTree::kNoPiece;
  readings_.front().stack.push_back({PlainTree::kNoPiece, kFirstState, 0});
  count_ = 1;
}

// Each reading takes a token in turn, as in tree-sitter, so that they are compared at the same
// positions.
PlainParser::Outcome PlainParser::parse(std::chrono::microseconds limit) {
  using Clock = std::chrono::steady_clock;
  deadline_ = limit.count() == 0 ? Clock::time_point::max() : Clock::now() + limit;
  std::uint32_t last = 0;
  for (;;) {
    for (std::size_t at = 0; at < count_; ++at)
      while (readings_[at].goes_on) {
        if (!advance(at)) return is_late_ ? Outcome::timed_out : Outcome::not_plain;
        const std::uint32_t position = readings_[at].position;
        if (position > last || (at > 0 && position == last)) {
          last = position;
          break;
        }
      }
    if (count_ == 1 && readings_.front().goes_on) {  // nearly always
      is_crowded_ = false;
      if (readings_.front().joint.was_used()) readings_.front().joint = {};
      continue;
    }
    const bool is_alive = drop_stopped();
    if (!is_alive && tree_.root != PlainTree::kNoPiece) return Outcome::parsed;
    if (!is_alive || !condense()) return Outcome::not_plain;
  }
}

bool PlainParser::is_late() {
  // A token may be read behind a million lines of comment.
  const bool looks =
      ++steps_ % kStepsPerLook == 0 || reader_.characters_read() - looked_at_ > kCharactersPerLook;
  if (!looks) return is_late_;
  looked_at_ = reader_.characters_read();
  return is_late_ = std::chrono::steady_clock::now() > deadline_;
}

// Takes one token: reduces what it closes, then puts it on the stack. False to give up.
bool PlainParser::advance(std::size_t at) {
  if (!take_token(readings_[at])) return false;
  TSSymbol symbol = token_.symbol;
  for (;;) {
    if (is_late() || work_ > most_work_) return false;
    const auto entries = tables_.actions(readings_[at].stack.back().state, symbol).entries;
    std::size_t made = kNone;
    bool is_replaced = false;
    for (const TSParseActionEntry& entry : entries) {
      const TSParseAction& action = entry.action;
      if (action.type == TSParseActionTypeShift) {
        if (action.shift.repetition) continue;
        shift(readings_[at], symbol, action.shift.extra, action.shift.state);
        return true;
      }
      if (action.type == TSParseActionTypeAccept) return accept(readings_[at]);
      if (action.type != TSParseActionTypeReduce) return false;
      is_replaced = entries.size() == 1 && !may_merge(at, action);
      if (is_replaced)
        reduce_stack(readings_[at], action);
      else if (!reduce(at, action, made))
        return false;
    }
    if (is_replaced) continue;
    if (made != kNone) {
      std::swap(readings_[at], readings_[made]);
      erase(made);
      continue;
    }
    // Where no keyword fits it may be a name.
    const TSSymbol name = language_.keyword_capture_token;
    const TSStateId state = readings_[at].stack.back().state;
    if (token_.is_keyword && symbol != name && !tables_.actions(state, name).entries.empty()) {
      symbol = name;
      continue;
    }
    readings_[at].goes_on = false;
    return true;
  }
}

// --- tokens

bool PlainParser::take_token(const Reading& reading) {
  const TSStateId state = reading.stack.back().state;
  if (token_at_ == reading.position && reader_.same(token_before_, reading.scanner) &&
      can_take_again(state))
    return true;
  const auto token = reader_.read(reading.position, state, reading.scanner);
  if (!token) return false;
  token_ = *token;
  token_at_ = reading.position;
  token_before_ = reading.scanner;
  token_piece_ = PlainTree::kNoPiece;
  return true;
}

// Whether the token that another reading has read here is the one that this state would read.
bool PlainParser::can_take_again(TSStateId state) {
  const ParseTables::Actions actions = tables_.actions(state, token_.symbol);
  const TSLexMode mode = language_.lex_modes[state];
  const TSLexMode read = language_.lex_modes[token_.state];
  const bool is_same_mode =
      mode.lex_state == read.lex_state && mode.external_lex_state == read.external_lex_state;
  if (mode.lex_state == static_cast<std::uint16_t>(-1)) return false;
  if (!actions.entries.empty() && is_same_mode &&
      (token_.symbol != language_.keyword_capture_token ||
       (!token_.is_keyword && token_.state == state)))
    return true;
  if (token_.begin == token_.end && token_.symbol != ts_builtin_sym_end) return false;
  return mode.external_lex_state == 0 && actions.reusable;
}

std::uint32_t PlainParser::token_piece(TSSymbol symbol) {
  if (symbol == token_.symbol && token_piece_ != PlainTree::kNoPiece) return token_piece_;
  const auto made = static_cast<std::uint32_t>(tree_.pieces.size());
  tree_.pieces.push_back({token_.begin, token_.end, 0, 0, symbol, 0});
  if (symbol == token_.symbol) token_piece_ = made;
  return made;
}

void PlainParser::shift(Reading& reading, TSSymbol symbol, bool is_extra, TSStateId state) {
  const std::uint32_t piece = token_piece(symbol);
  if (is_extra)
    reading.stack.push_back({piece | PlainTree::kExtra, reading.stack.back().state, symbol});
  else
    reading.stack.push_back({piece, state, symbol});
  reading.position = token_.end;
  reading.joint.has_shifted = true;
  if (token_.is_scanned) reading.scanner = token_.after;
}

// The end of the text: the root takes what stands around the module, comments and the end itself.
std::uint32_t PlainParser::new_root(const Reading& reading) {
  Piece root;
  root.first_child = static_cast<std::uint32_t>(tree_.children.size());
  for (auto entry = reading.stack.begin() + 1; entry != reading.stack.end(); ++entry) {
    if (is_extra(entry->child)) {
      tree_.children.push_back(entry->child);
      continue;
    }
    const Piece module = tree_.piece(entry->child);
    root.symbol = module.symbol;
    root.production = module.production;
    for (std::uint32_t at = 0; at < module.child_count; ++at)
      tree_.children.push_back(tree_.children[module.first_child + at]);
  }
  root.child_count = static_cast<std::uint32_t>(tree_.children.size()) - root.first_child;
  root.begin = tree_.piece(tree_.children[root.first_child]).begin;
  root.end = tree_.piece(tree_.children.back()).end;
  tree_.pieces.push_back(root);
  return static_cast<std::uint32_t>(tree_.pieces.size() - 1);
}

// Of two readings of the whole text the one with precedence stays. False to give up.
bool PlainParser::accept(Reading& reading) {
  reading.stack.push_back(
      {token_piece(token_.symbol) | PlainTree::kExtra, kFirstState, token_.symbol});
  reading.goes_on = false;
  const bool is_first = tree_.root == PlainTree::kNoPiece;
  if (!is_first && reading.precedence == root_precedence_) return false;
  if (is_first || reading.precedence > root_precedence_) {
    tree_.root = new_root(reading);
    root_precedence_ = reading.precedence;
  }
  return true;
}

// --- reductions

namespace {

// Where the children of a reduction lie on a stack. Extras on top stay there: they may belong to
// what follows.
struct Children {
  std::size_t first;
  std::size_t last;
};

template <class Stack>
Children children_on(const Stack& stack, std::uint8_t count) {
  std::size_t last = stack.size();
  if (count == 0) return {last, last};
  while (is_extra(stack[last - 1].child)) --last;
  std::size_t first = last;
  for (std::uint8_t left = count; left > 0;)
    if (!is_extra(stack[--first].child)) --left;
  return {first, last};
}

}  // namespace

TSStateId PlainParser::state_after(const Reading& reading, const TSParseAction& action) {
  const Children children = children_on(reading.stack, action.reduce.child_count);
  return tables_.at(reading.stack[children.first - 1].state, action.reduce.symbol);
}

std::uint32_t PlainParser::new_piece(const Reading& reading, std::size_t first, std::size_t last,
                                     const TSParseAction& action) {
  Piece piece{reading.position,     reading.position,           0, 0,
              action.reduce.symbol, action.reduce.production_id};
  piece.first_child = static_cast<std::uint32_t>(tree_.children.size());
  piece.child_count = static_cast<std::uint32_t>(last - first);
  for (std::size_t at = first; at < last; ++at) tree_.children.push_back(reading.stack[at].child);
  if (first != last) {
    piece.begin = tree_.piece(reading.stack[first].child).begin;
    piece.end = tree_.piece(reading.stack[last - 1].child).end;
  }
  tree_.pieces.push_back(piece);
  return static_cast<std::uint32_t>(tree_.pieces.size() - 1);
}

void PlainParser::reduce_stack(Reading& reading, const TSParseAction& action) {
  std::vector<Entry>& stack = reading.stack;
  const auto [first, last] = children_on(stack, action.reduce.child_count);
  const TSStateId state = tables_.at(stack[first - 1].state, action.reduce.symbol);
  const int precedence = action.reduce.dynamic_precedence;
  const bool stays = count_ == 1 && last - first == 1 && precedence == 0 &&
                     action.reduce.production_id == 0 &&
                     tables_.is_transparent(action.reduce.symbol);
  const std::uint32_t piece =
      stays ? stack[first].child | PlainTree::kShort : new_piece(reading, first, last, action);
  if (reading.joint.was_used()) note_parting(reading, first, state);
  if (first == last)
    stack.insert(stack.begin() + static_cast<std::ptrdiff_t>(first), Entry{piece, state, 0});
  else
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                stack.begin() + static_cast<std::ptrdiff_t>(last));
  stack[first].child = piece;
  stack[first].symbol = action.reduce.symbol;
  for (std::size_t at = first; at < stack.size(); ++at) stack[at].state = state;
  reading.precedence += precedence;
}

// The reduction as a reading of its own, while the one at hand goes on with another action. `made`
// is that reading, unless another has taken it in.
bool PlainParser::reduce(std::size_t at, const TSParseAction& action, std::size_t& made) {
  if (!copy(at)) return false;
  const std::size_t copied = count_ - 1;
  reduce_stack(readings_[copied], action);
  for (std::size_t other = 0; other < copied; ++other) {
    if (other == at) continue;
    const Merge merged = merge(other, copied);
    if (merged == Merge::unclear) return false;
    // The reading at hand ends, and the new one is joined to the other, behind which it goes on.
    if (merged != Merge::apart) return true;
  }
  made = copied;
  return true;
}

// --- readings beside each other

bool PlainParser::may_merge(std::size_t at, const TSParseAction& action) {
  if (count_ == 1) return false;
  const Reading& reading = readings_[at];
  const TSStateId state = state_after(reading, action);
  for (std::size_t other = 0; other < count_; ++other)
    if (other != at && readings_[other].goes_on && readings_[other].stack.back().state == state &&
        readings_[other].position == reading.position)
      return true;
  return false;
}

bool PlainParser::copy(std::size_t at) {
  if (count_ == readings_.size()) return false;
  Reading& made = readings_[count_++];
  const Reading& from = readings_[at];
  work_ += from.stack.size();
  for (const Parting& parting : from.joint.partings) work_ += parting.base.size();
  made.stack.assign(from.stack.begin(), from.stack.end());
  made.position = from.position;
  made.precedence = from.precedence;
  made.scanner = from.scanner;
  made.joint = from.joint;
  made.goes_on = true;
  return true;
}

void PlainParser::erase(std::size_t at) {
  const auto begin = readings_.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(at), begin + static_cast<std::ptrdiff_t>(at) + 1,
              begin + static_cast<std::ptrdiff_t>(count_));
  --count_;
}

// The same tokens in the same tree, made twice. With a list of its own: trees may be deep.
bool PlainParser::is_twin(std::uint32_t a, std::uint32_t b) const {
  PlainTree::Pairs left = {{a, b}};
  while (!left.empty()) {
    const auto [one, other] = left.back();
    left.pop_back();
    if (one == other) continue;
    ++work_;
    const Piece& first = tree_.piece(one);
    const Piece& second = tree_.piece(other);
    if (is_extra(one) != is_extra(other) || first.symbol != second.symbol ||
        first.production != second.production || first.begin != second.begin ||
        first.end != second.end || first.child_count != second.child_count)
      return false;
    tree_.add_children(first, second, left);
  }
  return true;
}

// tree-sitter keeps one stack for both above what is the same on top, until a reduction reaches
// below it.
PlainParser::Merge PlainParser::join(Reading& a, Reading& b) {
  if (a.joint.group != 0 && a.joint.group == b.joint.group) return Merge::joined;
  const auto awaits = [](const Joint& one, const Joint& other) {
    return one.group != 0 && one.group == other.parted_group;
  };
  if (awaits(a.joint, b.joint) || awaits(b.joint, a.joint)) return Merge::apart;
  if (a.joint.group != 0 || b.joint.group != 0) return Merge::unclear;
  std::size_t one = a.stack.size();
  std::size_t other = b.stack.size();
  while (one > 2 && other > 2 && a.stack[one - 2].state == b.stack[other - 2].state) {
    if (!is_twin(a.stack[one - 1].child, b.stack[other - 1].child)) return Merge::unclear;
    --one;
    --other;
  }
  ++groups_;
  a.joint = {groups_, one};
  b.joint = {groups_, other};
  return Merge::joined;
}

// Notes the reduction that parts joined readings, and those upon its result before the next token:
// after each tree-sitter joins the readings again where they are in the same state.
void PlainParser::note_parting(Reading& reading, std::size_t level, TSStateId state) {
  Joint& joint = reading.joint;
  const bool parts = level < joint.size;
  if (parts) {
    joint.parted_group = joint.group;
    joint.group = 0;
    joint.size = 0;
    joint.partings.clear();
    joint.has_shifted = false;
  }
  if (joint.parted_group == 0 || joint.has_shifted) return;
  if (!parts && level > joint.partings.back().base.size()) return;
  constexpr std::uint64_t kKept = 4;  // it takes memory too
  work_ += kKept * level;
  const auto base = reading.stack.begin();
  joint.partings.push_back({{base, base + static_cast<std::ptrdiff_t>(level)}, state});
}

// Whether tree-sitter came to have two trees upon the same base in one stack.
std::optional<bool> PlainParser::was_one_stack(const Joint& a, const Joint& b) {
  if (!a.was_used() && !b.was_used()) return false;
  if (a.parted_group == 0 || a.parted_group != b.parted_group) return std::nullopt;
  for (std::size_t at = 0; at < a.partings.size() && at < b.partings.size(); ++at) {
    if (a.partings[at].base == b.partings[at].base) return true;
    if (a.partings[at].state != b.partings[at].state) return false;
  }
  return std::nullopt;
}

// Which of two trees comes first by its symbols and numbers of children: -1, 1, 0 for neither.
// Nothing where symbols were left out.
std::optional<int> PlainParser::compare(std::uint32_t a, std::uint32_t b) const {
  PlainTree::Pairs left = {{a, b}};
  while (!left.empty()) {
    const auto [one, other] = left.back();
    left.pop_back();
    if (one == other) continue;
    ++work_;
    if (((one | other) & PlainTree::kShort) != 0) return std::nullopt;
    const Piece& first = tree_.piece(one);
    const Piece& second = tree_.piece(other);
    if (first.symbol != second.symbol) return first.symbol < second.symbol ? -1 : 1;
    if (first.child_count != second.child_count)
      return first.child_count < second.child_count ? -1 : 1;
    tree_.add_children(first, second, left);
  }
  return 0;
}

// Which of two pieces between the same neighbours stays, where the grammar gives neither
// precedence. Nothing where it is not known.
std::optional<bool> PlainParser::is_second_preferred(const Reading& a, const Reading& b,
                                                     std::size_t level) const {
  constexpr std::size_t kFewReadings = 3;  // two and a copy
  const std::uint32_t one = a.stack[level].child;
  const std::uint32_t other = b.stack[level].child;
  const std::optional<int> order = compare(one, other);
  if (!order) return std::nullopt;
  const Piece& first = tree_.piece(one);
  const Piece& second = tree_.piece(other);
  if (first.symbol != second.symbol || first.child_count != second.child_count) return *order > 0;
  // Those that look alike are compared no further, unless one stack held both: the first stays.
  const std::optional<bool> was_one = was_one_stack(a.joint, b.joint);
  if (!was_one) return std::nullopt;
  if (*was_one) return *order > 0;
  const bool is_first_known = !is_crowded_ && count_ <= kFewReadings;
  return is_first_known ? std::optional(false) : std::nullopt;
}

bool PlainParser::is_shared(std::size_t level, std::size_t kept, std::size_t other) const {
  for (std::size_t at = 0; at < count_; ++at)
    if (at != kept && at != other && readings_[at].stack.size() > level &&
        readings_[at].stack[level] == readings_[kept].stack[level])
      return true;
  return false;
}

// Two readings that go on alike are one. tree-sitter also joins readings that are alike on top
// only, and parts them again below: here these stay apart. Of two that differ in one piece it
// keeps one by rules; all else is left to it.
PlainParser::Merge PlainParser::merge(std::size_t kept, std::size_t other) {
  Reading& a = readings_[kept];
  Reading& b = readings_[other];
  if (!a.goes_on || !b.goes_on || a.position != b.position ||
      a.stack.back().state != b.stack.back().state || !reader_.same(a.scanner, b.scanner))
    return Merge::apart;
  const std::size_t size = a.stack.size();
  work_ += size;
  if (size != b.stack.size()) return join(a, b);
  std::size_t level = 1;
  while (level < size && a.stack[level] == b.stack[level]) ++level;
  for (std::size_t above = level; above < size; ++above)
    if (a.stack[above].state != b.stack[above].state) return join(a, b);
  for (std::size_t above = level + 1; above < size; ++above)
    if (!is_twin(a.stack[above].child, b.stack[above].child)) return Merge::unclear;
  if (level < size && !is_twin(a.stack[level].child, b.stack[level].child)) {
    const Piece& first = tree_.piece(a.stack[level].child);
    const Piece& second = tree_.piece(b.stack[level].child);
    if (first.begin != second.begin || first.end != second.end || is_shared(level, kept, other))
      return Merge::unclear;
    std::optional<bool> is_second = b.precedence > a.precedence;
    if (a.precedence == b.precedence) is_second = is_second_preferred(a, b, level);
    if (!is_second) return Merge::unclear;
    if (*is_second) {
      std::swap(a.stack, b.stack);
      std::swap(a.precedence, b.precedence);
    }
  }
  erase(other);
  return Merge::merged;
}

// False when no reading goes on: an error in the text.
bool PlainParser::drop_stopped() {
  for (std::size_t at = count_; at-- > 0;)
    if (!readings_[at].goes_on) erase(at);
  return count_ > 0;
}

// Makes readings that meet one, and puts those with precedence first.
bool PlainParser::condense() {
  is_crowded_ = count_ > 2 || (is_crowded_ && count_ > 1);
  for (std::size_t at = 1; at < count_; ++at)
    for (std::size_t before = 0; before < at; ++before) {
      const Merge merged = merge(before, at);
      if (merged == Merge::unclear) return false;
      if (merged == Merge::merged) {
        --at;
        break;
      }
      if (merged == Merge::apart && readings_[at].precedence > readings_[before].precedence)
        std::swap(readings_[at], readings_[before]);
    }
  if (count_ == 1) readings_.front().joint = {};
  return count_ <= kMostReadings;
}

}  // namespace bench::diagnose
