#include "tools/common/Options.h"
#include "burin/runtime.h"
#include <charconv>
#include <cstdio>
#include <string_view>

namespace burin::run {
namespace {

constexpr const char *kHelp =
    R"(

  --input NAME=@FILE.npy   an input; NAME=NUMBER fills it; inputs not given are random
  --output NAME=@FILE.npy  write an output (default: a summary of each on stdout)
  --data NAME=@FILE.npy    one run per element of the array's first axis, with that element as the input; --repeat N
                           repeats all of them N times. Prints the outputs with one element after each run
  --function NAME          function of the artifact to run (default: the first)
  --state FILE             initial states (safetensors), instead of those in the artifact
  --save-state FILE        write the states after the last run, or before one that fails
  --dim NAME=SIZE          a symbolic size that no given input determines (default 1)
  --fix NAME=VALUE         burin run only: turns an ONNX input into a constant, @FILE or a number
  --seed N                 seed of the random inputs (default 0)
  --expect NAME=@FILE.npy  compare an output; exit code 1 if it differs
  --rtol X, --atol X       allowed |difference| <= atol + rtol * |expected| (default 1e-4, 1e-5)
  --device cuda:0          run on a GPU; `burin run` compiles graphs for it
  --threads N              1: one thread; default: the processor's, or BURIN_NUM_THREADS
  --repeat N               after a warm-up run, time N runs (default: 1 run, not timed)
  --profile                time of each step, on stderr
  --json                   results and figures as JSON on stdout
  --trust-weights          do not check the weights' checksum: faster start with large weights
  --help, --version

exit codes: 0 ok, 1 outputs differ, 2 usage, 3 bad model, 4 not for this machine, 5 internal error
)";

class Parser {
public:
  Parser(const std::string &program, const std::string &modelText, std::vector<std::string_view> args)
      : args(std::move(args)) {
    o.program = program;
    o.modelText = modelText;
  }

  Parsed run() {
    while (next < args.size() && !finished)
      one(args[next++]);
    if (!finished && o.model.empty())
      fail("no " + o.modelText + " given");
    return finished ? Parsed{std::nullopt, exitCode} : Parsed{std::move(o), kOk};
  }

private:
  std::vector<std::string_view> args;
  size_t next = 0;
  Options o;
  bool finished = false;
  int exitCode = kOk;

  void finish(int code) {
    finished = true;
    exitCode = code;
  }
  void fail(const std::string &what) {
    std::fprintf(stderr, "%s: %s\n  %s --help lists the options\n", o.program.c_str(), what.c_str(), o.program.c_str());
    finish(kUsage);
  }

  void one(std::string_view arg) {
    if (!arg.starts_with("-")) {
      if (!o.model.empty())
        return fail("more than one model: " + o.model + " and " + std::string(arg));
      o.model = arg;
      return;
    }
    std::optional<std::string_view> value; // of --option=value; name=value pairs are the following argument
    if (size_t equals = arg.find('='); equals != arg.npos) {
      value = arg.substr(equals + 1);
      arg = arg.substr(0, equals);
    }
    if (!flag(arg, value))
      valued(arg, value);
  }

  bool flag(std::string_view arg, const std::optional<std::string_view> &value) {
    bool *target = arg == "--profile"         ? &o.profile
                   : arg == "--json"          ? &o.json
                   : arg == "--trust-weights" ? &o.trustWeights
                                              : nullptr;
    bool help = arg == "--help" || arg == "-h", version = arg == "--version";
    if (!target && !help && !version)
      return false;
    if (value)
      fail(std::string(arg) + " takes no value");
    else if (target)
      *target = true;
    else {
      if (help)
        std::printf("usage: %s %s [options]\n%s", o.program.c_str(), o.modelText.c_str(), kHelp);
      else
        std::printf("%s\n", burin_runtime_get(BURIN_RUNTIME_VERSION)->library_version());
      finish(kOk);
    }
    return true;
  }

  void valued(std::string_view arg, std::optional<std::string_view> value) {
    Options::Named *named = arg == "--input"    ? &o.inputs
                            : arg == "--output" ? &o.outputs
                            : arg == "--expect" ? &o.expected
                            : arg == "--data"   ? &o.data
                                                : nullptr;
    std::string *text = arg == "--function"     ? &o.function
                        : arg == "--state"      ? &o.state
                        : arg == "--save-state" ? &o.saveState
                        : arg == "--device"     ? &o.device
                                                : nullptr;
    bool known = named || text || arg == "--dim" || (arg == "--fix" && o.program != "burin-run") || arg == "--seed" ||
                 arg == "--rtol" || arg == "--atol" || arg == "--threads" || arg == "--repeat";
    if (!known)
      return fail("unknown option " + std::string(arg));
    if (!value && next < args.size())
      value = args[next++];
    if (!value)
      return fail(std::string(arg) + " needs a value");
    if (text)
      return *text = *value, void();
    if (arg == "--fix")
      return o.fixed.emplace_back(*value), void();
    if (named || arg == "--dim")
      return pair(arg, *value, named);
    bool good = arg == "--seed"      ? number(*value, o.seed)
                : arg == "--rtol"    ? number(*value, o.rtol)
                : arg == "--atol"    ? number(*value, o.atol)
                : arg == "--threads" ? number(*value, o.threads) && o.threads >= 0
                                     : number(*value, o.repeat) && o.repeat >= 1;
    if (!good)
      fail(std::string(arg) + " got an impossible value: " + std::string(*value));
  }

  void pair(std::string_view arg, std::string_view value, Options::Named *named) {
    size_t equals = value.find('=');
    if (equals == 0 || equals == value.npos)
      return fail(std::string(arg) + " needs NAME=VALUE, got " + std::string(value));
    std::string name(value.substr(0, equals));
    value = value.substr(equals + 1);
    if (named) {
      if (arg != "--input" && !value.starts_with("@"))
        return fail(std::string(arg) + " needs NAME=@FILE.npy");
      named->emplace_back(name, value);
      return;
    }
    int64_t size = 0;
    if (!number(value, size) || size < 0)
      return fail("--dim " + name + " needs a size, got " + std::string(value));
    o.dims.emplace_back(name, size);
  }

  template <class T> static bool number(std::string_view text, T &out) {
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failure == std::errc() && end == text.data() + text.size();
  }
};

} // namespace

Parsed parseOptions(const std::string &program, const std::string &modelText, std::vector<std::string_view> args) {
  return Parser(program, modelText, std::move(args)).run();
}

} // namespace burin::run
