// How far one question about callers goes. Functions that call each other have more ways than can
// be looked at: what is not looked at is perhaps reached.
#pragma once

namespace bench::pitfalls::facts {

// Held by whatever follows calls on behalf of a question; questions within a question share what it
// may look at.
class Question {
 public:
  Question() {
    if (nested_++ == 0) left_ = kMostWays;
  }
  ~Question() { --nested_; }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  // One more call is followed; true where that is one too many.
  static bool is_exhausted() { return --left_ < 0; }

 private:
  static constexpr int kMostWays = 512;
  inline static thread_local int nested_ = 0;
  inline static thread_local int left_ = 0;
};

}  // namespace bench::pitfalls::facts
