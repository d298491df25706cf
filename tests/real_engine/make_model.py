#!/usr/bin/env python3
"""Writes a tiny llama model with random weights as a GGUF file.

No model can be downloaded in CI, and speed does not depend on what the weights
say. So the weights are noise, and three tricks make the noise behave:

* One residual channel is constant: every embedding sets it and no layer writes
  to it. Output rows that read it with a large negative weight can never win,
  so bytes, fragments and specials stay silent and each token is a whole word.
* A second channel marks the first byte of a two-byte character (variant
  `bytes` only): after such a byte only a continuation byte can follow.
* Matrices hold 256 distinct values (the quantiles of a normal distribution),
  so that random bytes turn into half floats by table lookup, in no time.

Only the Python standard library is used. The same options give the same file.
"""
import argparse
import math
import random
import statistics
import struct

WORDS = """
a above act after against air almost along also am an and animal any are around as at baby bad bank be beat because
been began behind below better big black boat bone both box branch bridge bring brown busy but buy by call can care
case catch center chair change choose city clear close coast color common cool cost count course cross cut dark deep
differ distance doctor dog door down dream drink dry each earth easy edge eight energy enough evening every eye fact
family farm father feet field figure final fine finish first five flow fly food for forest forward free friend from
front full garden general get give glass gold grand gray green group had hand hard hat have he hear heat held her
high him his history home horse hot hour how hundred ice if in inch island it its join just kept knew lady land
large late law learn left less letter lie light line listen live look love made make many mark may mean meet middle
mile mind moment month more most mountain move music my near never next nine noon nose note now ocean of off often
old on once only or order our over page pair part pass pattern people person piece plain plant please poor possible
present problem pull put quiet rain reach ready reason remember rich right rise road room round run said same sat
saw school sea seat see seem serve seven shape ship shop should side silver since sister six skin sleep small snow
soft some song sound space special square star state step stone stop story strong study sugar sun surface tail talk
teach tell test that the their then these they thing this thought through tiny to together tone took touch track
train tree try two until upon use very voice walk want warm was wash water way week went west what wheel where while
who why wild wind wing wish with woman wood word work would year yes you your
""".split()

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
MERGES = 700                       # more than it takes to make one token of every word
LEADS = (0xC3, 0xC4, 0xC5)         # first bytes of two-byte Latin letters
CONTINUATIONS = range(0x80, 0xC0)
CONSTANT, AFTER_LEAD = 0, 1        # the two reserved residual channels
SILENT = -40.0                     # an output weight that no noise outweighs
EOS_PULL = 0.6                     # ends an answer after some 80 tokens
LEAD_PULL = 1.3                    # makes one token in ten a half letter


# --- tokenizer ---------------------------------------------------------------

def byte_alphabet():
    """The printable character that stands for each byte in a byte-level BPE."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def learn_merges(words, limit):
    """Plain BPE: join the most frequent pair, again and again."""
    merges = []
    while len(merges) < limit:
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [join(word, best) if best[0] in word else word for word in words]
    return merges


def join(word, pair):
    out = []
    for piece in word:
        if out and (out[-1], piece) == pair:
            out[-1] += piece
        else:
            out.append(piece)
    return out


class Vocabulary:
    def __init__(self):
        alphabet = byte_alphabet()
        space = alphabet[0x20]
        whole = {space + word for word in WORDS}
        merges = learn_merges([list(word) for word in sorted(whole)], MERGES)
        joined = list(dict.fromkeys(a + b for a, b in merges))
        self.tokens = [alphabet[b] for b in range(256)] + joined + SPECIALS   # token i < 256 is byte i
        self.types = [1] * (256 + len(joined)) + [3] * len(SPECIALS)          # 1 normal, 3 control
        self.merges = [a + " " + b for a, b in merges]
        self.words = {i for i, token in enumerate(self.tokens) if token in whole}
        self.eos = self.tokens.index("<|im_end|>")
        self.pad = self.tokens.index("<|endoftext|>")


# --- weights -----------------------------------------------------------------

HEAD = 64                          # width of one attention head; narrower ones make attention the bottleneck


def kv_heads(width):
    """Four query heads share a key-value head where the width allows it."""
    heads = width // HEAD
    return heads // 4 if heads % 4 == 0 else 1


class Noise:
    """Matrices of random half floats, as bytes, row after row."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.quantiles = [statistics.NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)]

    def matrix(self, rows, columns, deviation):
        halves = [struct.pack("<e", deviation * q) for q in self.quantiles]
        raw = self.random.randbytes(rows * columns)
        out = bytearray(2 * len(raw))
        out[0::2] = raw.translate(bytes(half[0] for half in halves))
        out[1::2] = raw.translate(bytes(half[1] for half in halves))
        return out


def set_weight(matrix, columns, row, column, value):
    struct.pack_into("<e", matrix, 2 * (row * columns + column), value)


def keep_reserved_channels(matrix, columns):
    """A layer's output matrix writes nothing to the reserved channels."""
    matrix[:2 * columns * 2] = bytes(2 * columns * 2)
    return matrix


def embeddings(noise, vocabulary, width):
    matrix = noise.matrix(len(vocabulary.tokens), width, 1.0)
    for token in range(len(vocabulary.tokens)):
        set_weight(matrix, width, token, CONSTANT, 4.0)
        set_weight(matrix, width, token, AFTER_LEAD, 8.0 if token in LEADS else 0.0)
    return matrix


def output(noise, vocabulary, width, variant):
    matrix = noise.matrix(len(vocabulary.tokens), width, 2.0 / math.sqrt(width))
    for token in range(len(vocabulary.tokens)):
        constant, after_lead = reading(token, vocabulary, variant)
        set_weight(matrix, width, token, CONSTANT, constant)
        set_weight(matrix, width, token, AFTER_LEAD, after_lead)
    return matrix


def reading(token, vocabulary, variant):
    """How a token's output row reads the two reserved channels."""
    if token in vocabulary.words:
        return 0.0, SILENT
    if variant == "eos" and token == vocabulary.eos:
        return EOS_PULL, SILENT
    if variant == "bytes" and token in LEADS:
        return LEAD_PULL, SILENT
    if variant == "bytes" and token in CONTINUATIONS:
        return SILENT, -SILENT      # twice as strong after a lead: 8 against 4
    return SILENT, SILENT


def tensors(vocabulary, width, layers, variant, seed):
    """Yields (name, shape with the fastest dimension first, type, bytes)."""
    noise = Noise(seed)
    kv_width, hidden = HEAD * kv_heads(width), 2 * width
    inner = 1.0 / math.sqrt(width)
    ones = struct.pack("<f", 1.0) * width

    def half(name, rows, columns, matrix):
        return name, (columns, rows), 1, matrix

    def norm(name):
        return name, (width,), 0, ones

    yield half("token_embd.weight", len(vocabulary.tokens), width, embeddings(noise, vocabulary, width))
    for layer in range(layers):
        block = f"blk.{layer}."
        yield norm(block + "attn_norm.weight")
        # Queries larger than keys sharpen attention, so that the context matters and the text does not loop at once.
        yield half(block + "attn_q.weight", width, width, noise.matrix(width, width, 3 * inner))
        yield half(block + "attn_k.weight", kv_width, width, noise.matrix(kv_width, width, inner))
        yield half(block + "attn_v.weight", kv_width, width, noise.matrix(kv_width, width, inner))
        yield half(block + "attn_output.weight", width, width,
                   keep_reserved_channels(noise.matrix(width, width, inner), width))
        yield norm(block + "ffn_norm.weight")
        yield half(block + "ffn_gate.weight", hidden, width, noise.matrix(hidden, width, inner))
        yield half(block + "ffn_up.weight", hidden, width, noise.matrix(hidden, width, inner))
        yield half(block + "ffn_down.weight", width, hidden,
                   keep_reserved_channels(noise.matrix(width, hidden, inner), hidden))
    yield norm("output_norm.weight")
    yield half("output.weight", len(vocabulary.tokens), width, output(noise, vocabulary, width, variant))


# --- file --------------------------------------------------------------------

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
PACK = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


def text(value):
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def encode(kind, value):
    return text(value) if kind == STRING else struct.pack(PACK[kind], value)


def field(key, kind, value):
    if isinstance(value, list):
        items = b"".join(encode(kind, item) for item in value)
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + items
    return text(key) + struct.pack("<I", kind) + encode(kind, value)


def fields(vocabulary, width, layers, variant):
    return [
        field("general.architecture", STRING, "llama"),
        field("general.name", STRING, f"llmbench random {variant} {layers}x{width}"),
        field("general.file_type", UINT32, 1),
        field("llama.vocab_size", UINT32, len(vocabulary.tokens)),
        field("llama.context_length", UINT32, 32768),
        field("llama.embedding_length", UINT32, width),
        field("llama.block_count", UINT32, layers),
        field("llama.feed_forward_length", UINT32, 2 * width),
        field("llama.attention.head_count", UINT32, width // HEAD),
        field("llama.attention.head_count_kv", UINT32, kv_heads(width)),
        field("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        field("llama.rope.dimension_count", UINT32, HEAD),
        field("llama.rope.freq_base", FLOAT32, 10000.0),
        field("tokenizer.ggml.model", STRING, "gpt2"),
        field("tokenizer.ggml.pre", STRING, "gpt-2"),
        field("tokenizer.ggml.tokens", STRING, vocabulary.tokens),
        field("tokenizer.ggml.token_type", INT32, vocabulary.types),
        field("tokenizer.ggml.merges", STRING, vocabulary.merges),
        field("tokenizer.ggml.eos_token_id", UINT32, vocabulary.eos),
        field("tokenizer.ggml.padding_token_id", UINT32, vocabulary.pad),
        field("tokenizer.ggml.add_bos_token", BOOL, False),
        field("tokenizer.chat_template", STRING, CHAT_TEMPLATE),
    ]


def padding(size, unit=32):
    return bytes(-size % unit)


def write(path, metadata, parts):
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(parts), len(metadata)) + b"".join(metadata)
    offset = 0
    for name, shape, kind, data in parts:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += len(data) + len(padding(len(data)))
    with open(path, "wb") as file:
        file.write(head + padding(len(head)))
        for _, _, _, data in parts:
            file.write(data + padding(len(data)))


def main():
    parser = argparse.ArgumentParser(description="Write a tiny llama model with random weights as a GGUF file.")
    parser.add_argument("-o", "--output", default="tiny.gguf", metavar="FILE")
    parser.add_argument("--width", type=int, default=256, help="a multiple of 64 (default 256)")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--variant", choices=["normal", "eos", "bytes"], default="normal",
                        help="normal: whole words, never stops; eos: may stop; bytes: some letters take two tokens")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.width % HEAD or args.width < HEAD or args.layers < 1:
        parser.error("--width must be a multiple of 64, --layers at least 1")
    vocabulary = Vocabulary()
    write(args.output, fields(vocabulary, args.width, args.layers, args.variant),
          list(tensors(vocabulary, args.width, args.layers, args.variant, args.seed)))


if __name__ == "__main__":
    main()
