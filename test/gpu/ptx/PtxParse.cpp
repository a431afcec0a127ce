#include "test/gpu/ptx/PtxRun.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace burin::test::ptx {
namespace {

std::string trimmed(const std::string &text) {
  size_t from = text.find_first_not_of(" \t\r\n"), to = text.find_last_not_of(" \t\r\n");
  return from == text.npos ? "" : text.substr(from, to - from + 1);
}

/// "a, {b, c}, [d]" at the commas outside of brackets.
std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    depth += c == '{' || c == '(' || c == '[';
    depth -= c == '}' || c == ')' || c == ']';
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty())
    parts.push_back(trimmed(part));
  return parts;
}

/// Comments, and the lines that say what the text is for, become empty lines.
std::string withoutComments(const std::string &text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line); all += "\n") {
    bool isAbout = line.starts_with(".version") || line.starts_with(".target") || line.starts_with(".address_size");
    all += isAbout ? "" : line.substr(0, line.find("//"));
  }
  return all;
}

size_t numberAfter(const std::string &text, const std::string &word) {
  size_t at = text.find(word);
  return at == text.npos ? 0 : std::stoul(text.substr(at + word.size()));
}

class Parser {
public:
  explicit Parser(const std::string &text) : input(withoutComments(text)) {}

  Program parse() {
    // Calls may come before the functions that they name.
    for (std::string text = statement(); !text.empty(); text = statement())
      topLevel(text);
    for (auto &[function, instruction, name] : calls) {
      if (name == kSetCondition && isConditionDeclared) {
        program.functions[function].code[instruction].run = setCondition;
        continue;
      }
      auto callee = std::ranges::find_if(program.functions, [&](const Function &f) { return f.name == name; });
      if (callee == program.functions.end())
        fail("no function " + name);
      program.functions[function].code[instruction].callee = uint32_t(callee - program.functions.begin());
    }
    return std::move(program);
  }

private:
  [[noreturn]] void fail(const std::string &what) {
    throw std::runtime_error("PTX line " + std::to_string(line) + ": " + what);
  }

  /// Up to a semicolon, a brace that begins or ends a block, or a label's colon; "" at the end.
  std::string statement() {
    std::string text;
    bool isHeader = false;
    for (char c; input.get(c);) {
      line += c == '\n';
      if (text.empty() && (c == '{' || c == '}'))
        return std::string(1, c);
      if (c == '{' && isHeader) {
        input.unget();
        return trimmed(text);
      }
      if (c == ';' || (c == ':' && text.starts_with("$")))
        return trimmed(text) + (c == ':' ? ":" : "");
      if (!text.empty() || !std::isspace(static_cast<unsigned char>(c)))
        text += c;
      isHeader |= text.ends_with(".entry") || text.ends_with(".func");
    }
    return trimmed(text);
  }

  void topLevel(const std::string &text) {
    if (text.find(".entry") != text.npos || text.starts_with(".func") || text.starts_with(".visible .func"))
      function(text);
    else if (text.find(".shared") != text.npos)
      shared(text);
    else if (text.starts_with(".extern .func " + std::string(kSetCondition)))
      isConditionDeclared = true;
    else
      fail("not known: " + text);
  }

  void shared(const std::string &text) {
    size_t align = std::max<size_t>(numberAfter(text, ".align "), 1), bracket = text.find('[');
    size_t name = text.find_last_of(" \t", bracket) + 1;
    if (text.find(".extern") != text.npos) { // the launch gives it
      pool = text.substr(name, bracket - name);
      return;
    }
    const size_t begin = (sharedEnd + align - 1) / align * align, size = std::stoul(text.substr(bracket + 1));
    sharedAt[text.substr(name, bracket - name)] = {begin, size};
    sharedEnd = begin + size;
    if (sharedEnd > kSharedBytes)
      fail("too many variables in shared memory");
  }

  void function(const std::string &header) {
    std::string next = statement();
    if (next != "{") // a declaration; its definition follows
      return again(next);
    Function &f = program.functions.emplace_back();
    f.isKernel = header.find(".entry") != header.npos;
    f.threads = int(numberAfter(header, ".reqntid "));
    registers.clear(), slots.clear(), labels.clear(), branches.clear(), maps.clear();
    readHeader(f, header);
    for (int depth = 1; depth;) {
      std::string text = statement();
      if (text.empty())
        fail("the function does not end");
      depth += (text == "{") - (text == "}");
      if (text != "{" && text != "}")
        inFunction(f, text);
    }
    for (auto &[instruction, label] : branches) {
      if (!labels.count(label))
        fail("no label " + label);
      f.code[instruction].target = labels[label];
    }
    f.registers = uint32_t(registers.size());
    f.slots = uint32_t(slots.size());
  }

  void again(const std::string &text) {
    if (!text.empty())
      topLevel(text);
  }

  /// ".visible .entry name(.param …)" or ".func (.param .b32 result) name(.param …)".
  void readHeader(Function &f, const std::string &header) {
    size_t begin = header.find(f.isKernel ? ".entry" : ".func") + (f.isKernel ? 6 : 5);
    std::string rest = trimmed(header.substr(begin));
    if (rest.starts_with("(")) {
      f.result = slot(lastWord(rest.substr(1, rest.find(')') - 1)));
      rest = trimmed(rest.substr(rest.find(')') + 1));
    }
    size_t open = rest.find('(');
    f.name = trimmed(rest.substr(0, open));
    if (open != rest.npos)
      for (const std::string &parameter : split(rest.substr(open + 1, rest.find(')') - open - 1))) {
        const std::string name = lastWord(parameter);
        const bool isMap = name.ends_with("[128]");
        f.isMap.push_back(isMap);
        f.parameters.push_back(slot(name.substr(0, name.find('['))));
        if (isMap)
          maps.insert({name.substr(0, name.find('[')), f.parameters.back()});
      }
  }
  static std::string lastWord(const std::string &text) {
    std::string t = trimmed(text);
    return t.substr(t.find_last_of(" \t") + 1);
  }

  uint32_t slot(const std::string &name) { return slots.try_emplace(name, uint32_t(slots.size())).first->second; }

  void inFunction(Function &f, const std::string &text) {
    if (text.ends_with(":")) {
      labels[text.substr(0, text.size() - 1)] = uint32_t(f.code.size());
    } else if (text.starts_with(".local")) {
      localName = text.substr(text.find("__"), text.find('[') - text.find("__"));
      f.localBytes = std::stoul(text.substr(text.find('[') + 1));
    } else if (text.starts_with(".shared")) {
      shared(text);
    } else if (!text.starts_with(".")) { // registers and parameters of calls are known by their use
      instruction(f, text);
    }
  }

  void instruction(Function &f, std::string text) {
    Instruction i;
    i.line = uint32_t(line);
    if (text.starts_with("@")) {
      i.isGuarded = true;
      i.unless = text[1] == '!';
      size_t end = text.find_first_of(" \t\n");
      i.guard = operand(text.substr(i.unless ? 2 : 1, end - (i.unless ? 2 : 1)));
      text = trimmed(text.substr(end));
    }
    size_t end = text.find_first_of(" \t\n");
    std::string name = text.substr(0, end);
    std::vector<std::string> operands = end == text.npos ? std::vector<std::string>() : split(text.substr(end));
    i.run = find(name, i);
    if (!i.run)
      fail("not known: " + text);
    f.usesPhases |= name.starts_with("mbarrier") || name.starts_with("wgmma") || name.starts_with("bar.warp");
    f.waitsFirst |= name == "griddepcontrol.wait" && !f.hasBegun;
    for (const char *first :
         {"ld.global", "ld.shared", "ld.local", "st.", "atom", "cp.", "mbarrier", "bra", "call", "bar"})
      f.hasBegun |= name.starts_with(first);
    if (name.starts_with("bra"))
      branches.emplace_back(f.code.size(), operands.at(0));
    else if (name.starts_with("call"))
      call(f, i, operands);
    else
      addOperands(i, name, operands);
    f.code.push_back(std::move(i));
  }

  void call(const Function &, Instruction &i, const std::vector<std::string> &operands) {
    auto inside = [](const std::string &text) { return text.substr(1, text.size() - 2); };
    const bool returns = operands.at(0).starts_with("(");
    i.target = returns ? slot(trimmed(inside(operands[0]))) : UINT32_MAX;
    calls.push_back({program.functions.size() - 1, program.functions.back().code.size(), operands.at(returns)});
    if (operands.size() > size_t(returns) + 1)
      for (const std::string &argument : split(inside(operands.back())))
        i.arguments.push_back(slot(argument));
  }

  /// What is written comes first; a store has its address there, and what it stores behind.
  void addOperands(Instruction &i, const std::string &name, const std::vector<std::string> &operands) {
    const bool isStore = name.starts_with("st."), writesNothing = name.starts_with("bar") || name.starts_with("cp.") ||
                                                                  name.starts_with("mbarrier.init") ||
                                                                  name.starts_with("wgmma.wait") ||
                                                                  name.starts_with("setmaxnreg");
    size_t next = 0;
    for (size_t n = 0; n < operands.size(); ++n) {
      const std::string &text = operands[n];
      const bool isTo = n == 0 && !isStore && !writesNothing;
      std::vector<std::string> parts = {text};
      if (name.starts_with("cp.async.bulk.tensor") && n == 1) // the map and the coordinates
        parts = inBrackets(text);
      else if (text.starts_with("{"))
        parts = split(text.substr(1, text.size() - 2));
      else if (isTo && text.find('|') != text.npos)
        parts = {text.substr(0, text.find('|')), text.substr(text.find('|') + 1)};
      for (const std::string &part : parts) {
        if (isTo) {
          i.to.push_back(operand(part));
        } else if (isStore && n > 0) {
          i.to.push_back(operand(part)); // the values
        } else {
          if (next < std::size(i.from))
            i.from[next++] = operand(part);
          else
            i.further.push_back(operand(part));
        }
      }
    }
    i.lanes = uint8_t(std::max<size_t>(i.to.size(), 1));
  }

  /// "[map, {x, y}]" as map, x, y.
  static std::vector<std::string> inBrackets(const std::string &text) {
    std::vector<std::string> parts = split(text.substr(1, text.size() - 2));
    const std::string coordinates = parts.at(1);
    parts.pop_back();
    for (const std::string &one : split(coordinates.substr(1, coordinates.size() - 2)))
      parts.push_back(one);
    return parts;
  }

  Operand operand(const std::string &text) {
    if (text.starts_with("[")) {
      std::string inside = trimmed(text.substr(1, text.size() - 2));
      size_t plus = inside.find_first_of("+-", 1);
      Operand base = operand(trimmed(inside.substr(0, plus)));
      if (plus != inside.npos)
        base.number += uint64_t(std::stoll(trimmed(inside.substr(plus + (inside[plus] == '+')))));
      return base;
    }
    using Kind = Operand::Kind;
    static const std::map<std::string, Kind> special = {{"%tid.x", Kind::ThreadIndex},
                                                        {"%ctaid.x", Kind::BlockIndex},
                                                        {"%ntid.x", Kind::ThreadCount},
                                                        {"%nctaid.x", Kind::BlockCount}};
    if (auto known = special.find(text); known != special.end())
      return {known->second, 0, 0};
    if (text.starts_with("%") || text == "tmp" || text == "_")
      return {Kind::Register, registers.try_emplace(text, uint32_t(registers.size())).first->second, 0};
    if (auto variable = sharedAt.find(text); variable != sharedAt.end())
      return sharedVariable(variable->second);
    if (auto map = maps.find(text); map != maps.end())
      return {Kind::MapAddress, map->second, 0};
    if (text == pool)
      return {Operand::Kind::Number, 0, reinterpret_cast<uint64_t>(sharedPool())};
    if (text == localName)
      return {Kind::Local, 0, 0};
    const bool isNumber = text.starts_with("-") || (text[0] >= '0' && text[0] <= '9');
    return isNumber ? number(text) : Operand{Kind::Number, slot(text), 0};
  }

  Operand sharedVariable(const Shared &variable) {
    std::vector<Shared> &used = program.functions.back().shared;
    if (std::ranges::none_of(used, [&](const Shared &other) { return other.begin == variable.begin; }))
      used.push_back(variable);
    size_t all = 0;
    for (const Shared &one : used)
      all += one.size;
    if (all > kMostOfKernel)
      fail("more shared memory than a kernel can have");
    return {Operand::Kind::Number, 0, reinterpret_cast<uint64_t>(sharedMemory()) + variable.begin};
  }

  Operand number(std::string text) {
    const bool isFloat = text.starts_with("0f") || text.starts_with("0d");
    if (text.ends_with("U"))
      text.pop_back();
    const bool isNegative = text.starts_with("-"), isHex = text.find("0x") != text.npos;
    std::string digits = text.substr(isNegative + (isFloat || isHex ? 2 : 0));
    uint64_t value = 0;
    auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, isFloat || isHex ? 16 : 10);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("not a number: " + text);
    return {Operand::Kind::Number, 0, isNegative ? -value : value};
  }

  struct Call {
    size_t function, instruction;
    std::string name;
  };
  std::istringstream input;
  size_t line = 1;
  Program program;
  std::map<std::string, Shared> sharedAt;
  std::string pool;
  size_t sharedEnd = 0;
  std::vector<Call> calls;
  // of the function
  std::map<std::string, uint32_t> registers, slots, labels, maps;
  std::vector<std::pair<size_t, std::string>> branches;
  std::string localName;

  /// The only function that the driver itself defines.
  static constexpr const char *kSetCondition = "cudaGraphSetConditional";
  bool isConditionDeclared = false;
};

} // namespace

const Function *Program::kernel(const std::string &name) const {
  for (const Function &f : functions)
    if (f.isKernel && f.name == name)
      return &f;
  return nullptr;
}

Program parse(const std::string &text) { return Parser(text).parse(); }

} // namespace burin::test::ptx
