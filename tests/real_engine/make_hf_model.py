#!/usr/bin/env python3
"""Writes the model of make_model.py as a folder that Hugging Face's libraries load.

config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
model.safetensors: the same vocabulary, the same weights and the same variants,
for servers and clients that do not read GGUF. `--no-weights` leaves out the
last file, for those that only count tokens or make weights of their own.

Only the Python standard library is used. The same options give the same files.
"""
import argparse
import array
import json
import pathlib
import struct
import sys

import make_model as gguf

CONTEXT = 32768                    # as the GGUF file has it
NAMES = {                          # of a layer's tensors
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


# --- tokenizer ---------------------------------------------------------------

def special(vocabulary, token):
    return {"id": vocabulary.tokens.index(token), "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True}


def tokenizer(vocabulary):
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [special(vocabulary, token) for token in gguf.SPECIALS],
        "pre_tokenizer": bytewise, "post_processor": bytewise, "decoder": bytewise,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(vocabulary.tokens)},
            "merges": vocabulary.merges,
        },
    }


def tokenizer_config(vocabulary):
    return {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False, "add_bos_token": False, "add_prefix_space": False,
        "eos_token": vocabulary.tokens[vocabulary.eos], "pad_token": vocabulary.tokens[vocabulary.pad],
        "chat_template": gguf.CHAT_TEMPLATE,
    }


# --- model -------------------------------------------------------------------

def config(vocabulary, width, layers, dtype):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": dtype,
        "vocab_size": len(vocabulary.tokens), "hidden_size": width, "intermediate_size": 2 * width,
        "num_hidden_layers": layers, "num_attention_heads": width // gguf.HEAD,
        "num_key_value_heads": gguf.kv_heads(width), "head_dim": gguf.HEAD, "hidden_act": "silu",
        "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
        "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False, "initializer_range": 0.02,
        "bos_token_id": None, "eos_token_id": vocabulary.eos, "pad_token_id": vocabulary.pad, "use_cache": True,
    }


def generation_config(vocabulary):
    return {"eos_token_id": vocabulary.eos, "pad_token_id": vocabulary.pad, "do_sample": True, "temperature": 1.0}


def name_of(tensor):
    parts = tensor.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{NAMES[parts[2]]}.weight"
    return WHOLE[parts[0]] + ".weight"


def converted(data, is_float, dtype):
    """The same numbers as little-endian floats, or as their upper halves."""
    count = len(data) // (4 if is_float else 2)
    floats = array.array("f", struct.unpack(f"<{count}{'f' if is_float else 'e'}", data))
    if sys.byteorder == "big":
        floats.byteswap()
    whole = floats.tobytes()
    if dtype == "float32":
        return whole
    upper = bytearray(len(whole) // 2)
    upper[0::2], upper[1::2] = whole[2::4], whole[3::4]
    return bytes(upper)


def write_safetensors(path, tensors, dtype):
    header, parts, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape, kind, data in tensors:
        parts.append(converted(data, kind == 0, dtype))
        end = offset + len(parts[-1])
        header[name_of(name)] = {"dtype": "F32" if dtype == "float32" else "BF16",
                                 "shape": list(reversed(shape)), "data_offsets": [offset, end]}
        offset = end
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for part in parts:
            file.write(part)


def main():
    parser = argparse.ArgumentParser(description="Write a tiny llama model as a Hugging Face folder.")
    parser.add_argument("-o", "--output", default="tiny-hf", metavar="DIR")
    parser.add_argument("--width", type=int, default=128, help="a multiple of 64 (default 128)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--variant", choices=["normal", "eos", "bytes"], default="normal", help="as make_model.py has it")
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--no-weights", action="store_true", help="write no model.safetensors")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.width % gguf.HEAD or args.width < gguf.HEAD or args.layers < 1:
        parser.error("--width must be a multiple of 64, --layers at least 1")
    vocabulary = gguf.Vocabulary()
    folder = pathlib.Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in [("config", config(vocabulary, args.width, args.layers, args.dtype)),
                          ("generation_config", generation_config(vocabulary)),
                          ("tokenizer", tokenizer(vocabulary)), ("tokenizer_config", tokenizer_config(vocabulary))]:
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if not args.no_weights:
        write_safetensors(folder / "model.safetensors",
                          gguf.tensors(vocabulary, args.width, args.layers, args.variant, args.seed), args.dtype)


if __name__ == "__main__":
    main()
