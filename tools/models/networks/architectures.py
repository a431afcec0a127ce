"""Small models of many architectures, which sweep.py exports: random weights, all input sizes dynamic, each run with
three combinations of sizes."""
import functools

from .catalog import Model, classifier, own
from .inputs import Floats, Mask, Tokens

from . import nets

WORDS = 120  # size of the vocabularies


def of(kind, config, wrap, **options):
    """A transformers model, given by the names of its model and config classes, with the signature of the wrapper
    `wrap`."""
    import transformers
    return wrap(getattr(transformers, kind)(getattr(transformers, config)(attn_implementation="eager", **options)))


TEXT_SIZES = ({"batch": 1, "sequence": 9}, {"batch": 3, "sequence": 16}, {"batch": 2, "sequence": 33})
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=WORDS)


def encoder(label, kind, config, **options):
    wrap = lambda model: nets.Encoder(model, "input_ids", "attention_mask")
    return Model(label, functools.partial(of, kind, config, wrap, **(SMALL | options)),
                 {"tokens": Tokens(("batch", "sequence"), WORDS), "mask": Mask(("batch", "sequence"))}, TEXT_SIZES)


def decoder(label, kind, config, **options):
    """A decoder without a key-value cache: returns the logits of all positions."""
    wrap = lambda model: nets.Logits(model, "input_ids", "attention_mask")
    return Model(label, functools.partial(of, kind, config, wrap, **options),
                 {"tokens": Tokens(("batch", "sequence"), WORDS), "mask": Mask(("batch", "sequence"))}, TEXT_SIZES)


CACHE_SIZES = ({"batch": 1, "sequence": 1, "past": 12}, {"batch": 2, "sequence": 5, "past": 3},
               {"batch": 3, "sequence": 2, "past": 9})


def cached(label, kind, config, heads=2, size=8, **options):
    """A decoder with the keys and values of earlier tokens as inputs and outputs."""
    past = {f"past_{layer}_{part}": Floats(("batch", heads, "past", size)) for layer in range(2)
            for part in ("key", "value")}
    return Model(label, functools.partial(of, kind, config, nets.Decoder, **options),
                 {"tokens": Tokens(("batch", "sequence"), WORDS), "mask": Mask(("batch", "past+sequence")), **past},
                 CACHE_SIZES)


def translator(label, kind, config, **options):
    """Encoder and decoder in one graph."""
    wrap = lambda model: nets.Logits(model, "input_ids", "attention_mask", "decoder_input_ids")
    return Model(label, functools.partial(of, kind, config, wrap, **options),
                 {"tokens": Tokens(("batch", "source"), WORDS), "mask": Mask(("batch", "source")),
                  "target": Tokens(("batch", "target"), WORDS)},
                 ({"batch": 1, "source": 9, "target": 4}, {"batch": 3, "source": 16, "target": 7},
                  {"batch": 2, "source": 5, "target": 11}))


def squares(*sides):
    return tuple({"batch": batch, "height": height, "width": width} for batch, (height, width) in
                 zip((1, 2, 3), sides))


ANY_SIDES = squares((64, 64), (96, 64), (64, 128))


def vision(label, kind, config, sizes=ANY_SIDES, side=None, names=("pixel_values",), output=nets.Encoder, **options):
    """An image model for images of any size, or only of `side` × `side` if the architecture fixes the size."""
    wrap = lambda model: output(model, *names)
    shape = ("batch", 3, side or "height", side or "width")
    if side:
        sizes = ({"batch": 1}, {"batch": 2}, {"batch": 3})
    return Model(label, functools.partial(of, kind, config, wrap, **options), {"image": Floats(shape)}, sizes)


def speech(label, kind, config, **options):
    wrap = lambda model: nets.Encoder(model, "input_values")
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                 conv_dim=(16, 16, 16), conv_kernel=(10, 3, 2), conv_stride=(5, 2, 2), num_feat_extract_layers=3,
                 num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return Model(label, functools.partial(of, kind, config, wrap, **(small | options)),
                 {"wave": Floats(("batch", "samples"))},
                 ({"batch": 1, "samples": 1600}, {"batch": 2, "samples": 2111}, {"batch": 3, "samples": 3200}))


def torchvision(name, sizes=ANY_SIDES, **options):
    def make():
        from torchvision.models import get_model
        return get_model(name, weights=None, **options)
    return Model("tv-" + name, make, {"image": Floats(("batch", 3, "height", "width"))}, sizes)


VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=64, patch_size=16)
LLAMA = dict(SMALL, num_key_value_heads=2, num_attention_heads=4, head_dim=8)
BART = dict(vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, pad_token_id=1, eos_token_id=2)
T5 = dict(vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
WHISPER = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=WORDS, max_source_positions=40, num_mel_bins=16,
               pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
GPT2 = dict(vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)


def textOfClip():
    return encoder("clip-text", "CLIPTextModel", "CLIPTextConfig", max_position_embeddings=64, eos_token_id=2,
                   bos_token_id=1, pad_token_id=0)


def whisper():
    wrap = lambda model: nets.Logits(model, "input_features", "decoder_input_ids")
    return Model("whisper", functools.partial(of, "WhisperForConditionalGeneration", "WhisperConfig", wrap, **WHISPER),
                 {"features": Floats(("batch", 16, 80)), "target": Tokens(("batch", "target"), WORDS)},
                 ({"batch": 1, "target": 4}, {"batch": 3, "target": 7}, {"batch": 2, "target": 11}))


def spectrogram():
    wrap = lambda model: nets.Encoder(model, "input_values")
    options = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_length=64,
                   num_mel_bins=32)
    return Model("ast", functools.partial(of, "ASTModel", "ASTConfig", wrap, **options),
                 {"values": Floats(("batch", 64, 32))}, ({"batch": 1}, {"batch": 2}, {"batch": 3}))


TRANSFORMERS = [
    # text encoders
    encoder("bert", "BertModel", "BertConfig"),
    encoder("roberta", "RobertaModel", "RobertaConfig", pad_token_id=1),
    encoder("distilbert", "DistilBertModel", "DistilBertConfig", dim=32, hidden_dim=48, n_layers=2, n_heads=4),
    encoder("albert", "AlbertModel", "AlbertConfig", embedding_size=16),
    encoder("electra", "ElectraModel", "ElectraConfig", embedding_size=16),
    encoder("mpnet", "MPNetModel", "MPNetConfig"),
    encoder("deberta-v2", "DebertaV2Model", "DebertaV2Config", relative_attention=True, position_buckets=16,
            pos_att_type=["p2c", "c2p"]),
    encoder("mobilebert", "MobileBertModel", "MobileBertConfig", embedding_size=16, intra_bottleneck_size=16),
    encoder("modernbert", "ModernBertModel", "ModernBertConfig", pad_token_id=0, local_attention=8),
    encoder("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", embedding_size=32),
    encoder("t5-encoder-small", "T5EncoderModel", "T5Config", **T5),
    textOfClip(),
    # decoders
    decoder("gpt2-small", "GPT2LMHeadModel", "GPT2Config", **GPT2),
    decoder("opt", "OPTForCausalLM", "OPTConfig", **SMALL, ffn_dim=48, word_embed_proj_dim=32, pad_token_id=1),
    decoder("bloom", "BloomForCausalLM", "BloomConfig", vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4),
    decoder("gpt-neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL),
    decoder("gptj", "GPTJForCausalLM", "GPTJConfig", **GPT2, rotary_dim=4),
    decoder("falcon", "FalconForCausalLM", "FalconConfig", **SMALL),
    decoder("phi", "PhiForCausalLM", "PhiConfig", **SMALL),
    decoder("mamba", "MambaForCausalLM", "MambaConfig", vocab_size=WORDS, hidden_size=32, state_size=8,
            num_hidden_layers=2, use_cache=False),
    decoder("mamba2", "Mamba2ForCausalLM", "Mamba2Config", vocab_size=WORDS, hidden_size=32, state_size=8,
            num_hidden_layers=2, num_heads=8, head_dim=8, n_groups=2, chunk_size=8, use_cache=False),
    # decoders with key-value caches
    cached("gpt2-cache", "GPT2LMHeadModel", "GPT2Config", heads=4, **GPT2),
    cached("llama-cache", "LlamaForCausalLM", "LlamaConfig", **LLAMA),
    cached("qwen3-cache", "Qwen3ForCausalLM", "Qwen3Config", **LLAMA),
    cached("mistral-cache", "MistralForCausalLM", "MistralConfig", **LLAMA, sliding_window=8),
    cached("gemma-cache", "GemmaForCausalLM", "GemmaConfig", **LLAMA),
    cached("phi3-cache", "Phi3ForCausalLM", "Phi3Config", **LLAMA, pad_token_id=0),
    # encoder-decoder models
    translator("t5", "T5ForConditionalGeneration", "T5Config", **T5, decoder_start_token_id=0),
    translator("bart", "BartForConditionalGeneration", "BartConfig", **BART),
    translator("marian", "MarianMTModel", "MarianConfig", **BART, decoder_start_token_id=1),
    translator("pegasus", "PegasusForConditionalGeneration", "PegasusConfig", **BART),
    # images
    vision("vit", "ViTModel", "ViTConfig", side=64, **VIT),
    vision("deit", "DeiTModel", "DeiTConfig", side=64, **VIT),
    vision("beit", "BeitModel", "BeitConfig", side=64, **VIT, use_relative_position_bias=True),
    vision("dinov2", "Dinov2Model", "Dinov2Config", **VIT),
    vision("clip-vision", "CLIPVisionModel", "CLIPVisionConfig", side=64, **VIT),
    vision("siglip-vision", "SiglipVisionModel", "SiglipVisionConfig", side=64, **VIT),
    vision("swin", "SwinModel", "SwinConfig", image_size=64, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4),
    vision("convnext", "ConvNextModel", "ConvNextConfig", hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 2, 1)),
    vision("segformer", "SegformerModel", "SegformerConfig", hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 1, 1),
           num_attention_heads=(1, 2, 3, 4)),
    vision("mobilevit", "MobileViTModel", "MobileViTConfig", image_size=64, hidden_sizes=(24, 32, 40),
           neck_hidden_sizes=(8, 16, 16, 24, 32, 40, 48)),
    vision("poolformer", "PoolFormerModel", "PoolFormerConfig", hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 1, 1)),
    vision("resnet", "ResNetModel", "ResNetConfig", embedding_size=8, hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 1, 1)),
    # speech
    speech("wav2vec2", "Wav2Vec2Model", "Wav2Vec2Config"),
    speech("hubert", "HubertModel", "HubertConfig"),
    speech("wavlm", "WavLMModel", "WavLMConfig"),
    spectrogram(),
    whisper(),
]

LARGE_SIDES = squares((160, 160), (192, 160), (160, 224))

TORCHVISION = [
    torchvision("alexnet", LARGE_SIDES),
    torchvision("vgg11_bn"),
    torchvision("resnet18"),
    torchvision("resnext50_32x4d"),
    torchvision("wide_resnet50_2"),
    torchvision("densenet121"),
    torchvision("squeezenet1_1"),
    torchvision("googlenet", aux_logits=False, init_weights=False),
    torchvision("inception_v3", LARGE_SIDES, aux_logits=False, init_weights=False, transform_input=False),
    torchvision("mobilenet_v2"),
    torchvision("mobilenet_v3_small"),
    torchvision("mnasnet0_5"),
    torchvision("shufflenet_v2_x0_5"),
    torchvision("efficientnet_b0"),
    torchvision("regnet_y_400mf"),
    torchvision("convnext_tiny"),
    torchvision("swin_t"),
    torchvision("lraspp_mobilenet_v3_large", weights_backbone=None),
    torchvision("fcn_resnet50", weights_backbone=None),
]

OWN = [
    Model("sweep-unet", functools.partial(own, "UNet"), {"image": Floats(("batch", 3, "height", "width"))}, ANY_SIDES),
    *(Model("sweep-" + kind.lower(), functools.partial(classifier, kind), {"tokens": Tokens(("batch", "sequence"), 5000)},
            TEXT_SIZES) for kind in ("LSTM", "GRU")),
]

MODELS = TRANSFORMERS + TORCHVISION + OWN
