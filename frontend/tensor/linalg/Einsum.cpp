// einsum: sums of products over named indices, by reductions and products of two operands at a time.
#include "frontend/tensor/composed/Composed.h"
#include <algorithm>
#include <map>

namespace burin {

using namespace detail;

namespace {

[[noreturn]] void fail(const std::string &what) { throw Error(inScope(Location()), "einsum", what); }

using Ints = std::vector<int64_t>;
using Labels = std::vector<int>; // a letter per dimension; negative for dimensions of an ellipsis

struct Term {
  Tensor x;
  Labels labels;

  int64_t axisOf(int label) const {
    auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? -1 : at - labels.begin();
  }
  bool has(int label) const { return axisOf(label) >= 0; }
  void sumOver(int64_t axis) {
    DType dtype = x.dtype();
    x = reduce_sum(x, axis).to(dtype);
    labels.erase(labels.begin() + axis);
  }
};

/// The labels of one term; an ellipsis stands for `extra` dimensions, -1 is the last of them.
Labels parse(std::string_view text, int64_t extra) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ')
      continue;
    if (text.substr(i, 3) == "...") {
      for (int64_t d = extra; d > 0; --d)
        labels.push_back(int(-d));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      fail("the equation has an unexpected \"" + std::string(text.substr(i, 1)) + "\"");
    }
  }
  return labels;
}

/// Replaces a label that occurs twice in a term by the diagonal.
void takeDiagonals(Term &term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = term.labels.size(); --j > i;)
      if (term.labels[i] == term.labels[j]) {
        const Shape &shape = term.x.shape();
        if (shape[i] != shape[j])
          fail("one letter stands for the sizes " + shape[i].str() + " and " + shape[j].str() + " of " +
               str(term.x.spec()));
        Tensor isDiagonal = iota(shape, DType::i64, int64_t(i)) == iota(shape, DType::i64, int64_t(j));
        term.x = burin::where(isDiagonal, term.x, 0);
        term.sumOver(int64_t(j));
      }
}

Labels operator+(Labels a, const Labels &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Term multiply(Term a, Term b, const Labels &needed) {
  auto isNeeded = [&](int label) { return std::find(needed.begin(), needed.end(), label) != needed.end(); };
  for (int label : a.labels) // sizes of 1 broadcast
    if (b.has(label)) {
      bool isOneA = a.x.shape()[size_t(a.axisOf(label))] == Dim(1),
           isOneB = b.x.shape()[size_t(b.axisOf(label))] == Dim(1);
      if (isOneA != isOneB)
        (isOneA ? a : b).sumOver((isOneA ? a : b).axisOf(label));
    }
  for (auto [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (size_t i = one->labels.size(); i-- > 0;)
      if (!isNeeded(one->labels[i]) && !other->has(one->labels[i]))
        one->sumOver(int64_t(i));
  Ints batchA, batchB, sumA, sumB;
  Labels batch, freeA, freeB;
  for (int label : a.labels)
    if (!b.has(label)) {
      freeA.push_back(label);
    } else if (isNeeded(label)) {
      batch.push_back(label);
      batchA.push_back(a.axisOf(label));
      batchB.push_back(b.axisOf(label));
    } else {
      sumA.push_back(a.axisOf(label));
      sumB.push_back(b.axisOf(label));
    }
  for (int label : b.labels)
    if (!a.has(label))
      freeB.push_back(label);
  return {dot_general(a.x, b.x, batchA, batchB, sumA, sumB), batch + freeA + freeB};
}

} // namespace

/// Throws if one letter stands for different sizes of two inputs. Sizes of 1 broadcast.
static void requireEqualSizes(const std::string &equation, const std::vector<Term> &terms) {
  std::map<int, std::pair<Dim, Tensor>> known; // by letter: its size, and an input with it
  for (const Term &term : terms)
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const Dim &size = term.x.shape()[i];
      if (term.labels[i] < 0 || size == Dim(1))
        continue;
      auto [at, isNew] = known.try_emplace(term.labels[i], size, term.x);
      if (!isNew && !mayEqual(at->second.first, size))
        fail("the letter \"" + std::string(1, char(term.labels[i])) + "\" of \"" + equation +
             "\" stands for the sizes " + at->second.first.str() + " of " + str(at->second.second.spec()) + " and " +
             size.str() + " of " + str(term.x.spec()));
    }
}

Tensor einsum(const std::string &equation, const std::vector<Tensor> &operands, Location where) {
  LocationScope scope(inScope(where));
  size_t arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow), rest = left;
  std::vector<std::string_view> texts;
  for (;;) {
    size_t comma = rest.find(',');
    texts.push_back(rest.substr(0, comma));
    if (comma == rest.npos)
      break;
    rest = rest.substr(comma + 1);
  }
  if (texts.size() != operands.size())
    fail("the equation \"" + equation + "\" has " + std::to_string(texts.size()) + " terms");
  std::vector<Term> terms;
  int64_t most = 0; // largest number of dimensions of an ellipsis
  for (size_t i = 0; i < texts.size(); ++i) {
    bool hasEllipsis = texts[i].find("...") != texts[i].npos;
    int64_t extra = hasEllipsis ? operands[i].rank() - int64_t(parse(texts[i], 0).size()) : 0;
    terms.push_back({operands[i], parse(texts[i], extra)});
    most = std::max(most, extra);
    if (extra < 0 || int64_t(terms[i].labels.size()) != operands[i].rank())
      fail("the term \"" + std::string(texts[i]) + "\" does not fit its input " + str(operands[i].spec()));
    takeDiagonals(terms[i]);
  }
  requireEqualSizes(equation, terms);
  Labels result;
  if (arrow != equation.npos) {
    result = parse(std::string_view(equation).substr(arrow + 2), most);
  } else { // labels that occur once, sorted, after the ellipsis
    std::map<int, int> counts;
    for (std::string_view text : texts)
      for (int label : parse(text, 0))
        ++counts[label];
    result = most > 0 ? parse("...", most) : Labels();
    for (auto [label, count] : counts)
      if (count == 1)
        result.push_back(label);
  }
  Term all = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels needed = result;
    for (size_t later = i + 1; later < terms.size(); ++later)
      needed = needed + terms[later].labels;
    all = multiply(all, terms[i], needed);
  }
  for (size_t i = all.labels.size(); i-- > 0;)
    if (std::find(result.begin(), result.end(), all.labels[i]) == result.end())
      all.sumOver(int64_t(i));
  Ints perm;
  for (int label : result) {
    if (!all.has(label))
      fail("the result of \"" + equation + "\" has a label that no input has");
    perm.push_back(all.axisOf(label));
  }
  return perm.empty() ? all.x : transpose(all.x, perm);
}

} // namespace burin
