"""The models that `tools/dev models` compiles: constructor, inputs, and the sizes to run at."""
import dataclasses
import functools
from typing import Callable

from .inputs import Floats, Mask, Tokens


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    make: Callable  # returns the module, with the initial weights of its package
    inputs: dict  # Input by name
    sizes: tuple  # dictionaries {name: size}; the static variant uses the first, the dynamic variant all
    exporters: tuple = ("dynamo", "torchscript")  # of the static variant and of the dynamic variant
    tolerance: float = 1e-4  # against ONNX Runtime, relative to the largest value of an output
    everyStatic: bool = False  # one static variant per combination of sizes
    chooses: bool = False  # the outputs are rows selected and sorted by data (detection)
    spreads: bool = True  # replaces the package's initial weights, see weights.spread

    def variants(self):
        """Returns {name: (sizes to run at, exporter)}."""
        static, dynamic = self.exporters
        result = {"static": (self.sizes[:1], static)}
        for sizes in self.sizes[1:] if self.everyStatic else ():
            result["static-" + "-".join(map(str, sizes.values()))] = ((sizes,), static)
        return result | {"dynamic": (self.sizes, dynamic)}


BATCHES = ({"batch": 1}, {"batch": 3})


# ---- images

def vision(name, **options):
    import torchvision
    return torchvision.models.get_model(name, weights=None, **options)


def image(name, size=224, label=None, options={}, **facts):
    return Model(label or name.replace("_", "-"), functools.partial(vision, name, **options),
                 {"image": Floats(("batch", 3, size, size))}, BATCHES, **facts)


def own(name):
    from . import nets
    return getattr(nets, name)()


# ---- texts and sound

def classifier(kind):
    from . import nets
    import torch
    return nets.Classifier(getattr(torch.nn, kind))


def bert():
    from . import nets
    from transformers import BertConfig, BertModel
    return nets.Encoder(BertModel(BertConfig(attn_implementation="sdpa")), "input_ids", "attention_mask")


def t5():
    from . import nets
    from transformers import T5Config, T5EncoderModel
    return nets.Encoder(T5EncoderModel(T5Config()), "input_ids", "attention_mask")


def whisper():
    from . import nets
    from transformers import WhisperConfig, WhisperModel
    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
                           decoder_layers=1, decoder_attention_heads=6, decoder_ffn_dim=1536)
    return nets.Encoder(WhisperModel(config).get_encoder(), "input_features")


def gpt2():
    from . import nets
    from transformers import GPT2Config, GPT2LMHeadModel
    return nets.Decoder(GPT2LMHeadModel(GPT2Config(attn_implementation="eager")))


TEXT = ({"batch": 1, "sequence": 128}, {"batch": 3, "sequence": 50})
PAST = {f"past_{layer}_{part}": Floats(("batch", 12, "past", 64)) for layer in range(12) for part in ("key", "value")}

MODELS = [
    image("resnet18", exporters=("torchscript", "dynamo")),
    dataclasses.replace(image("resnet50"), everyStatic=True, sizes=tuple({"batch": n} for n in (1, 3, 16))),
    image("mobilenet_v2", exporters=("torchscript", "dynamo")),
    image("mobilenet_v3_large"),
    image("efficientnet_b0", exporters=("torchscript", "dynamo")),
    image("densenet121"),
    image("squeezenet1_1", exporters=("torchscript", "dynamo")),
    image("shufflenet_v2_x1_0"),
    image("vgg11", exporters=("torchscript", "dynamo")),
    image("inception_v3", 299, options={"init_weights": False, "transform_input": False, "aux_logits": False}),
    image("convnext_tiny", exporters=("torchscript", "dynamo")),
    image("vit_b_16"),
    image("swin_t", exporters=("torchscript", "dynamo")),
    Model("unet", functools.partial(own, "UNet"), {"image": Floats(("batch", 3, "height", "width"))},
          ({"batch": 1, "height": 256, "width": 256}, {"batch": 2, "height": 128, "width": 192})),
    Model("detector", functools.partial(own, "Detector"), {"image": Floats((1, 3, "height", "width"))},
          ({"height": 320, "width": 320}, {"height": 256, "width": 416}), ("torchscript", "dynamo"),
          chooses=True),
    Model("lstm", functools.partial(classifier, "LSTM"), {"tokens": Tokens(("batch", "sequence"), 5000)}, TEXT,
          ("torchscript", "torchscript")),
    Model("gru", functools.partial(classifier, "GRU"), {"tokens": Tokens(("batch", "sequence"), 5000)}, TEXT,
          ("torchscript", "torchscript")),
    Model("bert-base", bert, {"tokens": Tokens(("batch", "sequence"), 30522), "mask": Mask(("batch", "sequence"))},
          TEXT),
    Model("gpt2", gpt2, {"tokens": Tokens(("batch", "sequence"), 50257), "mask": Mask(("batch", "past+sequence")),
                         **PAST},
          ({"batch": 1, "sequence": 1, "past": 127}, {"batch": 2, "sequence": 7, "past": 20},
           {"batch": 1, "sequence": 64, "past": 0})),
    Model("t5-encoder", t5, {"tokens": Tokens(("batch", "sequence"), 32128), "mask": Mask(("batch", "sequence"))},
          TEXT, ("torchscript", "torchscript"), spreads=False),
    Model("whisper-encoder", whisper, {"features": Floats(("batch", 80, 3000))}, ({"batch": 1}, {"batch": 2})),
]


def find(name):
    return next(m for m in MODELS if m.name == name)


def labelOf(sizes):
    return "-".join(f"{name}{size}" for name, size in sizes.items())
