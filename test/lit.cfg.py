# lit: *.mlir and *.test files whose RUN lines use burin-opt, burin, burin-run, FileCheck, not, split-file.
import os
import lit.formats

config.name = "burin"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.burinBuild, "test")

tools = [os.path.join(config.burinBuild, "bin"), os.path.join(config.test_exec_root, "bin"), config.llvmTools]
config.environment["PATH"] = os.pathsep.join(tools + [os.environ["PATH"]])
for name in ("BURIN_TARGET", "BURIN_LONG_TESTS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")

config.substitutions.append(("%burin_build", config.burinBuild))
config.substitutions.append(("%exits", f"bash {config.test_source_root}/exits.sh"))

# Features for REQUIRES and UNSUPPORTED: the CPU's vector extensions (avx2, avx512f, …) and the sanitizers.
with open("/proc/cpuinfo") as cpuinfo:
    flags = next((line for line in cpuinfo if line.startswith(("flags", "Features"))), ":")
config.available_features.update(flags.partition(":")[2].split())
config.available_features.update(filter(None, config.sanitizers.split(",")))
