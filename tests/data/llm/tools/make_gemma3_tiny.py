#!/usr/bin/env python3
"""Writes ../gemma3_tiny.gguf, a Gemma 3 of seven layers with random Q8_0 weights, and ../gemma3_tiny.json, what it says.

The evaluation is numpy's, in double precision on the decoded weights, and shares nothing with the project. Given a folder with
config.json, model.safetensors and reference.json of a tiny Gemma3ForCausalLM (logits by transformers), it is checked by that first.
Run: python3 make_gemma3_tiny.py [FOLDER]
"""
import json
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
GELU = np.sqrt(2 / np.pi)
TEMPLATE = (HERE.parent / "templates" / "turns_parts.jinja").read_text()


# ---- evaluation
def rms(x, w, eps):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * w


def turn(x, base, factor):
    """Rotary positions on halves; x [T, H, D]."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[0])[:, None] / factor * base ** (-np.arange(half) / half)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def attend(q, k, v, scale, window):
    tokens, heads = q.shape[:2]
    k, v = (np.repeat(x, heads // x.shape[1], 1) for x in (k, v))
    score = np.einsum("qhd,khd->hqk", q, k) * scale
    ahead = np.arange(tokens)[:, None] - np.arange(tokens)
    score[:, (ahead < 0) | (ahead >= (window or tokens))] = -np.inf
    p = np.exp(score - score.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(tokens, -1)


def logits(c, w, ids):
    """c: the numbers of the model; w: weights by GGUF's names, norms as what to multiply by."""
    x = w["token_embd"][ids] * np.sqrt(c["hidden"])
    for i in range(c["layers"]):
        p = {n.split(".", 2)[2]: t for n, t in w.items() if n.startswith(f"blk.{i}.")}
        whole = (i + 1) % c["period"] == 0
        n = rms(x, p["attn_norm"], c["eps"])
        q, k, v = ((n @ p["attn_" + s].T).reshape(len(ids), -1, c["head"]) for s in "qkv")
        base, factor = (c["base"], c["factor"]) if whole else (c["window_base"], 1)
        q, k = (turn(rms(t, p[f"attn_{s}_norm"], c["eps"]), base, factor) for t, s in ((q, "q"), (k, "k")))
        a = attend(q, k, v, c["scale"], None if whole else c["window"]) @ p["attn_output"].T
        x = x + rms(a, p["post_attention_norm"], c["eps"])
        n = rms(x, p["ffn_norm"], c["eps"])
        g = n @ p["ffn_gate"].T
        g = 0.5 * g * (1 + np.tanh(GELU * (g + 0.044715 * g**3))) * (n @ p["ffn_up"].T)
        x = x + rms(g @ p["ffn_down"].T, p["post_ffw_norm"], c["eps"])
    return rms(x, w["output_norm"], c["eps"]) @ w["token_embd"].T


# ---- transformers' own tiny model
NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
         "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def check_against(folder):
    config = json.loads((folder / "config.json").read_text())
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    weights = {}
    for name, t in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        value = np.frombuffer(raw[8 + size + begin:8 + size + end], "<f4").astype(np.float64).reshape(t["shape"])
        parts = name.removeprefix("model.").removesuffix(".weight").split(".")
        mine = {"embed_tokens": "token_embd", "norm": "output_norm"}.get(parts[0]) or f"blk.{parts[1]}." + NAMES[".".join(parts[2:])]
        weights[mine] = value + 1 if "norm" in mine else value
    rope = config["rope_parameters"]
    c = {"hidden": config["hidden_size"], "layers": config["num_hidden_layers"], "head": config["head_dim"], "eps": config["rms_norm_eps"],
         "period": config["layer_types"].index("full_attention") + 1, "window": config["sliding_window"], "scale": config["query_pre_attn_scalar"] ** -0.5,
         "base": rope["full_attention"]["rope_theta"], "factor": rope["full_attention"].get("factor", 1),
         "window_base": rope["sliding_attention"]["rope_theta"]}
    for s in json.loads((folder / "reference.json").read_text())["sequences"]:
        apart = np.abs(logits(c, weights, s["ids"])[:, :32] - np.array(s["first32"])).max()
        print(f"transformers' logits of {len(s['ids'])} tokens: within {apart:.1e}")
        assert apart < 1e-6


# ---- the file
def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value_of(v):
    if isinstance(v, bool):
        return struct.pack("<I?", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    kind = {str: 8, float: 6, int: 5}[type(v[0])]
    items = [text(x) if kind == 8 else struct.pack("<f" if kind == 6 else "<i", x) for x in v]
    return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(items)


def q8_0(x):
    """Rows to blocks of 32 codes behind a half scale; the bytes and what they decode to."""
    blocks = x.reshape(-1, 32)
    d = (np.abs(blocks).max(1) / 127).astype(np.float16)
    codes = np.clip(np.rint(blocks / d.astype(np.float64)[:, None]), -127, 127).astype(np.int8)
    raw = b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, codes))
    return raw, (codes * d.astype(np.float64)[:, None]).reshape(x.shape)


def write(path, keys, tensors):
    """tensors: name -> (type, shape, bytes)."""
    out = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(keys))]
    out += [text(k) + value_of(v) for k, v in keys.items()]
    at, data = 0, []
    for name, (kind, shape, raw) in tensors.items():
        out.append(text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, at))
        raw += b"\0" * (-len(raw) % 32)
        data.append(raw)
        at += len(raw)
    head = b"".join(out)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"".join(data))


def vocabulary():
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    lines = ["\n", "\n\n", "\n\n\n", "\t", "\t\t"]
    spaces = ["\u2581" * n for n in range(2, 5)]
    tokens = special + lines + [f"<0x{i:02X}>" for i in range(256)] + spaces
    types = [3] * len(special) + [4] * len(lines) + [6] * 256 + [4] * len(spaces)
    pieces = ["\u2581t", "he", "\u2581the", "in", "er", "\u2581a", "on", "re"] + list("\u2581etaoinshrdlucmfwypvbgkjqxz.,HW")
    scores = [0.0] * len(tokens) + [-float(i) for i in range(len(pieces))]
    tokens += pieces
    types += [1] * len(pieces)
    return tokens, types, scores


def main():
    if len(sys.argv) > 1:
        check_against(pathlib.Path(sys.argv[1]))
    tokens, types, scores = vocabulary()
    c = {"hidden": 32, "layers": 7, "head": 16, "heads": 4, "ffn": 64, "eps": 1e-6, "period": 6, "window": 8, "scale": 16**-0.5,
         "base": 1e6, "factor": 4, "window_base": 1e4}
    keys = {"general.architecture": "gemma3", "general.name": "tiny gemma3", "gemma3.context_length": 512, "gemma3.embedding_length": 32,
            "gemma3.block_count": 7, "gemma3.feed_forward_length": 64, "gemma3.attention.head_count": 4, "gemma3.attention.head_count_kv": 1,
            "gemma3.attention.layer_norm_rms_epsilon": 1e-6, "gemma3.attention.key_length": 16, "gemma3.attention.value_length": 16,
            "gemma3.rope.freq_base": 1e6, "gemma3.rope.scaling.type": "linear", "gemma3.rope.scaling.factor": 4.0,
            "gemma3.attention.sliding_window": 8, "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type": types, "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1,
            "tokenizer.ggml.unknown_token_id": 3, "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_eos_token": False, "tokenizer.ggml.add_space_prefix": False, "tokenizer.chat_template": TEMPLATE}
    c["eps"] = float(np.float32(1e-6))  # as the file holds it
    rng = np.random.default_rng(22)
    tensors, weights = {}, {}

    def matrix(name, rows, columns, spread):
        raw, weights[name] = q8_0(rng.standard_normal((rows, columns)) * spread)
        tensors[name + ".weight"] = (8, (rows, columns), raw)

    def vector(name, n):
        x = (1 + 0.3 * rng.standard_normal(n)).astype(np.float32)
        weights[name] = x.astype(np.float64)
        tensors[name + ".weight"] = (0, (n,), x.tobytes())

    matrix("token_embd", len(tokens), 32, 0.3)
    vector("output_norm", 32)
    for i in range(7):
        for name, rows, columns in (("attn_q", 64, 32), ("attn_k", 16, 32), ("attn_v", 16, 32), ("attn_output", 32, 64), ("ffn_gate", 64, 32),
                                    ("ffn_up", 64, 32), ("ffn_down", 32, 64)):
            matrix(f"blk.{i}.{name}", rows, columns, columns**-0.5)
        for name, n in (("attn_norm", 32), ("ffn_norm", 32), ("post_attention_norm", 32), ("post_ffw_norm", 32), ("attn_q_norm", 16), ("attn_k_norm", 16)):
            vector(f"blk.{i}.{name}", n)
    write(HERE.parent / "gemma3_tiny.gguf", keys, tensors)
    ids = [2] + [int(x) for x in rng.integers(11, len(tokens), 40)]
    greedy, margin = [], []
    for _ in range(12):
        last = logits(c, weights, ids + greedy)[-1]
        best = np.sort(last)[::-1]
        margin.append(round(float(best[0] - best[1]), 6))
        if not greedy:
            first = last
        greedy.append(int(np.argmax(last)))
    golden = {"prompt_ids": ids, "greedy": greedy, "margin": margin, "logits_first16": [round(float(x), 7) for x in first[:16]],
              "logits_std": round(float(first.std()), 6)}
    (HERE.parent / "gemma3_tiny.json").write_text(json.dumps(golden) + "\n")
    print(golden["greedy"], min(margin), golden["logits_std"])


if __name__ == "__main__":
    main()
