// Beam search: the most likely sentences under a table of the next word's probabilities. The loop ends when all of them
// have ended.
#include "three_ways.h"

const std::vector<std::string> words{".",    "the",    "a",     "old", "grey",   "cat", "dog",
                                     "sees", "chases", "hears", "and", "sleeps", "runs"};
constexpr int64_t count = 13, width = 4, longest = 12;

/// From log probabilities [word, next word]: the sentences [width, longest], their scores [width], and the number of
/// iterations. A sentence begins after "the", and ends with word 0 or after `longest` words.
Tensors search(const Tensor &table) {
  auto goesOn = [](const Tensor &i, const Tensor &, const Tensor &, const Tensor &, const Tensor &over) {
    return (i < longest) & !all(over);
  };
  auto step = [&](const Tensor &i, const Tensor &text, const Tensor &score, const Tensor &last, const Tensor &over) {
    // A finished sentence goes on with word 0 at no cost.
    Tensor stay = where(arange(count) == 0, 0.0, -1e30).to(f32);
    Tensor next = where(unsqueeze(over, {1}), unsqueeze(stay, {0}), take(table, last, 0));
    auto [best, at] = topk(reshape(unsqueeze(score, {1}) + next, {width * count}), width);
    Tensor beam = floor_divide(at, count), word = remainder(at, count);
    Tensor isHere = unsqueeze(arange(longest) == i, {0});
    return std::make_tuple(i + 1, where(isHere, unsqueeze(word, {1}), take(text, beam, 0)), best, word,
                           take(over, beam, 0) | (word == 0));
  };
  // At first all beams are equal, so only one of them counts.
  Tensor scores = where(arange(width) == 0, 0.0, -1e30).to(f32);
  auto [i, text, score, last, over] = while_loop(goesOn, step,
                                                 std::make_tuple(zeros({}, i64), zeros({width, longest}, i64), scores,
                                                                 full({width}, 1, i64), zeros({width}, boolean)));
  return {text, score, i};
}

int main() {
  manual_seed(4);
  ThreeWays run([](const Tensors &in) { return search(in[0]); }, {{f32, {count, count}}}, "beam_search");
  Tensor tables = log_softmax(randn({3, count, count}) * 3, 2);
  Tensors texts, scores;
  for (int i = 0; i < 3; ++i) {
    Tensors found = run({tables(i)});
    texts.push_back(found[0]);
    scores.push_back(found[1]);
    std::cout << std::exp(found[1](0).item()) << ": the";
    for (int64_t word : found[0](0).to_vector<int64_t>())
      std::cout << (word ? " " + words[size_t(word)] : "");
    std::cout << ", after " << found[2].item<int64_t>() << " words\n";
  }
  save_npy("tables.npy", tables);
  save_npy("sentences.npy", stack(texts, 0));
  save_npy("scores.npy", stack(scores, 0));
}
