// Opcodes as in Python's pickletools, protocols 2 to 5.
#include "frontend/tensor/data/Pickle.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace burin::detail {

using Kind = PickleValue::Kind;

/// Functions that may be called: those in state dicts. The user of the reader implements them.
static constexpr std::string_view kFunctions[] = {"torch._utils._rebuild_tensor_v2",
                                                  "torch._utils._rebuild_tensor_v3",
                                                  "torch._utils._rebuild_parameter",
                                                  "torch.Size",
                                                  "torch.device",
                                                  "collections.OrderedDict"};

class PickleReader {
public:
  PickleReader(Pickle &pickle, std::span<const std::byte> bytes) : pickle(pickle), bytes(bytes) {}

  void read() {
    while (true) {
      const uint8_t code = number<uint8_t>();
      if (code == '.')
        break;
      if (!readNumber(code) && !readText(code) && !readContainer(code) && !readMemo(code) && !readObject(code))
        throw PickleError("it has the pickle opcode " + std::to_string(code) + ", which state dicts do not need");
    }
    pickle.result = pop();
  }

private:
  Pickle &pickle;
  std::span<const std::byte> bytes;
  size_t at = 0;
  std::vector<PickleValue *> stack;
  std::vector<size_t> marks; // heights of the stack
  std::unordered_map<uint64_t, PickleValue *> memo;

  // ---- bytes

  std::span<const std::byte> take(uint64_t count) {
    if (count > bytes.size() - at)
      throw PickleError("its pickle is cut off");
    at += count;
    return bytes.subspan(at - count, count);
  }
  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string takeText(uint64_t count) {
    auto part = take(count);
    return {reinterpret_cast<const char *>(part.data()), part.size()};
  }
  std::string line() {
    std::string text;
    for (char c; (c = number<char>()) != '\n';)
      text += c;
    return text;
  }

  // ---- the stack

  PickleValue &push(Kind kind) {
    stack.push_back(&pickle.values.emplace_back());
    stack.back()->kind = kind;
    return *stack.back();
  }
  PickleValue *pop() {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()))
      throw PickleError("its pickle takes more values than there are");
    PickleValue *value = stack.back();
    stack.pop_back();
    return value;
  }
  PickleValue &top(Kind kind) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()) || stack.back()->kind != kind)
      throw PickleError("its pickle adds items to what cannot have any");
    return *stack.back();
  }
  /// The values above the last mark; pops them and the mark.
  std::vector<const PickleValue *> popToMark() {
    if (marks.empty())
      throw PickleError("its pickle lacks a mark");
    std::vector<const PickleValue *> items(stack.begin() + int64_t(marks.back()), stack.end());
    stack.resize(marks.back());
    marks.pop_back();
    return items;
  }

  // ---- opcodes, by the value that they make

  bool readNumber(uint8_t code) {
    auto integer = [&](int64_t value) {
      push(Kind::Int).integer = value;
      return true;
    };
    switch (code) {
    case 'N':
      push(Kind::None);
      return true;
    case 0x88:
    case 0x89:
      push(Kind::Bool).integer = code == 0x88;
      return true;
    case 'J':
      return integer(number<int32_t>());
    case 'K':
      return integer(number<uint8_t>());
    case 'M':
      return integer(number<uint16_t>());
    case 0x8a:
      return integer(longInteger());
    case 'G':
      push(Kind::Float).real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()));
      return true;
    default:
      return false;
    }
  }
  /// Little-endian two's complement of any length.
  int64_t longInteger() {
    auto digits = take(number<uint8_t>());
    if (digits.size() > 8)
      throw PickleError("it has an integer of more than 64 bits");
    uint64_t value = !digits.empty() && (uint8_t(digits.back()) & 0x80) ? ~uint64_t(0) : 0;
    for (size_t i = digits.size(); i-- > 0;)
      value = value << 8 | uint8_t(digits[i]);
    return int64_t(value);
  }

  bool readText(uint8_t code) {
    uint64_t length = 0;
    switch (code) {
    case 'X':
    case 'T':
    case 'B':
      length = number<uint32_t>();
      break;
    case 'U':
    case 'C':
    case 0x8c:
      length = number<uint8_t>();
      break;
    case 0x8d:
      length = number<uint64_t>();
      break;
    default:
      return false;
    }
    push(Kind::Text).text = takeText(length);
    return true;
  }

  bool readContainer(uint8_t code) {
    switch (code) {
    case '(':
      marks.push_back(stack.size());
      return true;
    case '}':
      push(Kind::Dict);
      return true;
    case ']':
      push(Kind::List);
      return true;
    case ')':
      push(Kind::Tuple);
      return true;
    case 't': {
      auto items = popToMark();
      push(Kind::Tuple).items = std::move(items);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<const PickleValue *> items(size_t(code - 0x84));
      for (size_t i = items.size(); i-- > 0;)
        items[i] = pop();
      push(Kind::Tuple).items = std::move(items);
      return true;
    }
    case 'a': {
      const PickleValue *item = pop();
      top(Kind::List).items.push_back(item);
      return true;
    }
    case 'e':
    case 'u': {
      auto items = popToMark();
      if (code == 'u' && items.size() % 2)
        throw PickleError("its pickle has a key without a value");
      auto &into = top(code == 'e' ? Kind::List : Kind::Dict).items;
      into.insert(into.end(), items.begin(), items.end());
      return true;
    }
    case 's': {
      const PickleValue *value = pop(), *key = pop();
      auto &into = top(Kind::Dict).items;
      into.push_back(key);
      into.push_back(value);
      return true;
    }
    default:
      return false;
    }
  }

  bool readMemo(uint8_t code) {
    auto remember = [&](uint64_t index) {
      PickleValue *value = pop();
      memo[index] = value;
      stack.push_back(value);
      return true;
    };
    auto recall = [&](uint64_t index) {
      auto found = memo.find(index);
      if (found == memo.end())
        throw PickleError("its pickle recalls a value that it has not made");
      stack.push_back(found->second);
      return true;
    };
    switch (code) {
    case 'q':
      return remember(number<uint8_t>());
    case 'r':
      return remember(number<uint32_t>());
    case 0x94:
      return remember(memo.size());
    case 'h':
      return recall(number<uint8_t>());
    case 'j':
      return recall(number<uint32_t>());
    case '0':
      pop();
      return true;
    case '1':
      popToMark();
      return true;
    case 0x80: // protocol
      take(1);
      return true;
    case 0x95: // length of a frame
      take(8);
      return true;
    default:
      return false;
    }
  }

  bool readObject(uint8_t code) {
    switch (code) {
    case 'c': {
      std::string module = line();
      push(Kind::Name).text = module + "." + line();
      return true;
    }
    case 0x93: {
      const PickleValue *name = pop(), *module = pop();
      push(Kind::Name).text = module->text + "." + name->text;
      return true;
    }
    case 'Q': {
      const PickleValue *identity = pop();
      push(Kind::Persistent).items = {identity};
      return true;
    }
    case 'R':
    case 0x81: { // a call, and an object of a class
      const PickleValue *arguments = pop(), *function = pop();
      call(*function, *arguments);
      return true;
    }
    case 'b': { // attributes of an OrderedDict: module versions, which are ignored
      pop();
      top(Kind::Dict);
      return true;
    }
    default:
      return false;
    }
  }

  void call(const PickleValue &function, const PickleValue &arguments) {
    if (function.kind != Kind::Name || arguments.kind != Kind::Tuple)
      throw PickleError("its pickle calls what is no function");
    if (std::ranges::find(kFunctions, function.text) == std::end(kFunctions))
      throw PickleError("it contains " + function.text.substr(0, 100) +
                        ", which is refused: to read it would mean to run Python code");
    if (function.text != "collections.OrderedDict") {
      push(Kind::Call).items = {&function, &arguments};
      return;
    }
    PickleValue &dict = push(Kind::Dict);
    if (arguments.items.empty())
      return;
    for (const PickleValue *pair : arguments.items[0]->items) { // list of pairs
      if (pair->items.size() != 2)
        throw PickleError("its pickle has an OrderedDict of other things than pairs");
      dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
    }
  }
};

Pickle::Pickle(std::span<const std::byte> bytes) { PickleReader(*this, bytes).read(); }

} // namespace burin::detail
