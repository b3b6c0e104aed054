#!/usr/bin/env python3
"""Writes tests/data/ops/goldens.json: expectations of the ops, from NumPy in float64 and from formulas written here a second time,
in another form than the library's. Usage: ops_goldens.py OUT.json (needs numpy)."""
import json
import math
import sys

import numpy as np

rng = np.random.default_rng(7)
cases = []
INF = float("inf")


def enc(a, dtype):
    a = np.asarray(a)
    flat = a.reshape(-1).tolist()
    if dtype.startswith(("i", "u")) or dtype == "bool":
        data = [int(v) for v in flat]
    else:
        data = [("nan" if math.isnan(v) else "inf" if v == INF else "-inf" if v == -INF else v) for v in flat]
    return {"dtype": dtype, "shape": list(a.shape), "data": data}


def case(name, out, inputs, out_dtype="f32", tol=1e-12, loose=None):
    """loose: the bound for the decomposition, where its constants are f32."""
    cases.append({"name": name, "inputs": {k: enc(*v) for k, v in inputs.items()}, "out": enc(out, out_dtype),
                  "tol": tol, "loose": tol if loose is None else loose})


def randn(*shape):
    return np.round(rng.standard_normal(shape), 3)


# --- views and movers
x = randn(3, 12)
case("slice/step-3", x[:, 10:0:-3], {"x": (x, "f32")})
case("slice/past-front", x[1:, ::-2], {"x": (x, "f32")})
case("slice/empty", x[:, 2:7][:, 5:5], {"x": (x, "f32")})
case("slice/negative-bounds", x[:, -5:-1:2], {"x": (x, "f32")})
y = randn(2, 3, 4)
case("reverse", y[:, ::-1, ::-1], {"x": (y, "f32")})
case("transpose", y.transpose(2, 0, 1), {"x": (y, "f32")})
case("broadcast", np.broadcast_to(y[:, :1, :], (2, 3, 4)), {"x": (y[:, :1, :], "f32")})
case("concat", np.concatenate([y, y[:, :1], y[:, :0]], 1), {"a": (y, "f32"), "b": (y[:, :1], "f32"), "c": (y[:, :0], "f32")})
p = randn(2, 3)
wide = np.full((2, 5), 9.0)
wide[:, ::2] = p  # interior 1
padded = np.full((2 + 1, 5 + 2 - 1), 9.0)
padded[1:, 2:] = wide[:, :4]  # low 1,2; high 0,-1
case("pad", padded, {"x": (p, "f32")})
case("pad/i64", np.pad(np.array([2**53 + 1]), (1, 2), constant_values=2**62 + 1), {"x": (np.array([2**53 + 1]), "i64")}, "i64")

# --- reductions
r = randn(2, 3, 4)
r[1, 2, 3] = np.nan
case("reduce/sum", r.sum((0, 2)), {"x": (r, "f32")})
case("reduce/prod", r.prod(1, keepdims=True), {"x": (r, "f32")})
case("reduce/max", r.max(2), {"x": (r, "f32")})
case("reduce/min", r.min(), {"x": (r, "f32")})
case("mean", np.nan_to_num(r).mean((1, 2)), {"x": (np.nan_to_num(r), "f32")}, loose=1e-6)
big = rng.integers(-2**31, 2**31, (4, 5), dtype=np.int32)
with np.errstate(over="ignore"):
    case("reduce/sum-i32", big.sum(0, dtype=np.int32), {"x": (big, "i32")}, "i32")
    case("reduce/prod-i32", big.prod(1, dtype=np.int32), {"x": (big, "i32")}, "i32")
u = np.array([[2**63 + 5, 3, 2**63 - 1]], dtype=np.uint64)
case("reduce/max-u64", u.astype(np.int64).reshape(1, 3)[:, 0], {"x": (u.astype(np.int64), "u64")}, "u64")
case("reduce/empty-max", np.full((2,), -INF), {"x": (np.zeros((2, 0)), "f32")})
case("reduce/empty-min-i16", np.full((2,), 32767), {"x": (np.zeros((2, 0)), "i16")}, "i16")
case("reduce/empty-prod", np.ones((2,)), {"x": (np.zeros((2, 0)), "f32")})
flags = rng.integers(0, 2, (3, 4)).astype(bool)
case("reduce/any", flags.any(0), {"x": (flags, "bool")}, "bool")
case("reduce/all", flags.all(1), {"x": (flags, "bool")}, "bool")
t = np.array([[1, 5, 5, 2], [np.nan, 1, 9, np.nan], [3, 3, 3, 3], [-INF, -2, np.nan, INF]])
case("argmax", np.argmax(t, 1), {"x": (t, "f32")}, "i32")
case("argmin", np.argmin(t, 0)[None], {"x": (t, "f32")}, "i64")

# --- products
a, b = randn(2, 3, 5), randn(2, 5, 4)
case("matmul/batch", a @ b, {"a": (a, "f32"), "b": (b, "f32")})
case("matmul/one-matrix", a @ b[0], {"a": (a, "f32"), "b": (b[0], "f32")})
case("matmul/leading", np.matmul(a[:, None], b[None]), {"a": (a[:, None], "f32"), "b": (b[None], "f32")})
case("matmul/vector", a @ b[0][:, 0], {"a": (a, "f32"), "b": (b[0][:, 0], "f32")})
c, d = randn(3, 2, 5, 4), randn(5, 6, 3, 4)
case("dot_general", np.einsum("zykm,knzm->zyn", c, d), {"a": (c, "f32"), "b": (d, "f32")})
i8 = rng.integers(-128, 128, (3, 7)), rng.integers(0, 256, (4, 7))
case("dot_general/i8-u8", i8[0] @ i8[1].T, {"a": (i8[0], "i8"), "b": (i8[1], "u8")}, "i32")
case("linear", a @ b[0][:, :2] + np.array([1.0, -2.0]),
     {"x": (a, "f32"), "w": (b[0][:, :2].T, "f32"), "bias": (np.array([1.0, -2.0]), "f32")})

# --- rows
table, ids = randn(6, 3), np.array([[5, 0], [2, 2]])
case("gather", table[ids], {"data": (table, "f32"), "index": (ids, "i32")})
cube = randn(2, 4, 3)
case("gather/axis1", np.take(cube, [3, 0], 1), {"data": (cube, "f32"), "index": ([3, 0], "i64")})
outside = table[np.array([1, 0, 0])]
outside[1:] = 0
case("gather/outside", outside, {"data": (table, "f32"), "index": ([1, -1, 6], "i32")})
stored = table.copy()
stored[[4, 1]] = [[0.1, 0.2, 0.3], [7, 8, 70000]]
with np.errstate(over="ignore"):
    stored[[4, 1]] = stored[[4, 1]].astype(np.float16)
case("store_rows", stored,
    {"state": (table, "f16"), "index": ([4, -1, 1, 6], "i32"),
     "src": ([[0.1, 0.2, 0.3], [1, 1, 1], [7, 8, 70000], [2, 2, 2]], "f32")}, "f16")

# --- norms
s = randn(2, 3, 4) * 3
e = np.exp(s)  # small numbers: no need to shift
case("softmax", e / e.sum(1, keepdims=True), {"x": (s, "f32")})
case("log_softmax", s - np.log(e.sum(-1, keepdims=True)), {"x": (s, "f32")})
sh = s + 800
case("softmax/large", e / e.sum(-1, keepdims=True), {"x": (sh, "f32")}, tol=1e-11)
w, bias = randn(4), randn(4)
case("rms_norm", s / np.sqrt((s**2).mean(-1, keepdims=True) + 1e-3) * w, {"x": (s, "f32"), "w": (w, "f32")}, loose=1e-7)
case("rms_norm/plain", s / np.sqrt((s**2).mean(-1, keepdims=True) + 1e-3), {"x": (s, "f32")}, loose=1e-7)
far = s + 40000
case("layer_norm", (far - far.mean(-1, keepdims=True)) / np.sqrt(far.var(-1, keepdims=True) + 1e-5) * w + bias,
     {"x": (far, "f32"), "w": (w, "f32"), "bias": (bias, "f32")}, tol=1e-9, loose=1e-7)


# --- rope, by complex numbers
def rope(x, pos, freq, halves, mscale=1.0):
    rot = 2 * len(freq)
    turned, rest = x[..., :rot], x[..., rot:]
    z = turned[..., : rot // 2] + 1j * turned[..., rot // 2:] if halves else turned[..., ::2] + 1j * turned[..., 1::2]
    z = z * mscale * np.exp(1j * pos[:, None, None] * freq)
    if halves:
        out = np.concatenate([z.real, z.imag], -1)
    else:
        out = np.stack([z.real, z.imag], -1).reshape(turned.shape)
    return np.concatenate([out, rest], -1)


def freqs(rot, base):
    return 1.0 / base ** (np.arange(0, rot, 2) / rot)


X, POS = randn(3, 2, 8), np.array([0, 5, 4001])
R = {"x": (X, "f32"), "position": (POS, "i32")}
# u32 angles: position * 2^-33 turns
case("rope/neighbour", rope(X, POS, freqs(8, 10000), False), R, loose=2e-5)
case("rope/halves-partial", rope(X, POS, freqs(6, 500), True), R, loose=2e-5)
case("rope/linear", rope(X, POS, freqs(8, 10000) / 4, True), R, loose=2e-5)
case("rope/negative", rope(X, -POS, freqs(8, 10000), True), {"x": (X, "f32"), "position": (-POS, "i64")}, loose=2e-5)
fac = np.array([1, 1.5, 2, 8.0])
case("rope/factors", rope(X, POS, freqs(8, 10000) / fac, True), {**R, "factors": (fac, "f32")}, loose=3e-4)


def llama3(f, factor, low, high, ctx):
    out = []
    for v in f:
        wl = 2 * math.pi / v
        if wl < ctx / high:
            out.append(v)
        elif wl > ctx / low:
            out.append(v / factor)
        else:
            smooth = (ctx / wl - low) / (high - low)
            out.append((1 - smooth) * v / factor + smooth * v)
    return np.array(out)


f3 = llama3(freqs(8, 50000), 8, 1, 4, 512)
case("rope/llama3", rope(X, POS, f3, True), R, loose=2e-5)


def yarn(rot, base, factor, ctx, fast=32, slow=1):
    corr = lambda turns: rot * math.log(ctx / (turns * 2 * math.pi)) / (2 * math.log(base))
    lo, hi = max(math.floor(corr(fast)), 0), min(math.ceil(corr(slow)), rot - 1)
    ramp = np.clip((np.arange(rot // 2) - lo) / max(hi - lo, 0.001), 0, 1)
    extrapolated = 1 - ramp
    f = freqs(rot, base)
    return f / factor * (1 - extrapolated) + f * extrapolated


case("rope/yarn", rope(X, POS, yarn(8, 10000, 4, 256), False, 0.1 * math.log(4) + 1), R, loose=2e-5)


# --- attention: dense matrices with masks
def attend(q, k, v, qpos, scale, causal, window, cap, mask=None, sinks=None):
    """q [Sq, Hq, D], k, v [Sk, Hk, *], mask [Hq, Sq, Sk] additive."""
    g = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, g, 1), np.repeat(v, g, 1)
    s = np.einsum("qhd,khd->hqk", q, k) * scale
    if cap:
        s = cap * np.tanh(s / cap)
    dist = qpos[:, None] - np.arange(k.shape[0])[None]
    if causal:
        s = np.where(dist[None] < 0, -INF, s)
    if window:
        s = np.where(dist[None] >= window, -INF, s)
    if mask is not None:
        s = s + mask
    if sinks is not None:
        s = np.concatenate([s, np.broadcast_to(sinks[:, None, None], s.shape[:2] + (1,))], -1)
    out = np.zeros((q.shape[1], q.shape[0], v.shape[2]))
    for h in range(q.shape[1]):
        for i in range(q.shape[0]):
            row = s[h, i]
            if np.all(np.isneginf(row)):
                continue
            w = np.exp(row - row.max())
            w /= w.sum()
            out[h, i] = w[: k.shape[0]] @ v[:, h]
    return out.transpose(1, 0, 2)


Q, K, V = randn(2, 4, 4, 6), randn(2, 5, 2, 6), randn(2, 5, 2, 3)
D = {"q": (Q, "f32"), "k": (K, "f32"), "v": (V, "f32")}
dense = lambda **kw: np.stack([attend(Q[b], K[b], V[b], np.arange(4) + kw["offset"], 0.375, kw["causal"], kw["window"], kw["cap"],
                                      None if kw.get("mask") is None else kw["mask"][b], kw.get("sinks")) for b in range(2)])
case("dense_attention/causal", dense(offset=1, causal=True, window=0, cap=0), D)
case("dense_attention/window-cap", dense(offset=1, causal=True, window=2, cap=1.5), D)
allowed = rng.integers(0, 2, (2, 1, 4, 5)).astype(bool)
allowed[1, 0, 2] = False  # this query sees nothing
additive = np.broadcast_to(np.where(allowed, 0.0, -INF), (2, 4, 4, 5))
case("dense_attention/bool-mask", dense(offset=0, causal=False, window=0, cap=0, mask=additive), {**D, "mask": (allowed, "bool")})
floats = randn(1, 4, 4, 5)
floats[0, 1, 3] = -INF
sinks = randn(4)
case("dense_attention/float-mask-sinks",
     dense(offset=1, causal=True, window=0, cap=0, mask=np.broadcast_to(floats, (2, 4, 4, 5)), sinks=sinks),
     {**D, "mask": (floats, "f32"), "sinks": (sinks, "f32")})
case("dense_attention/unseen", dense(offset=7, causal=True, window=3, cap=0), D)


def paged(name, causal, window, cap, use_mask, use_sinks, gap=0):
    page, slots, hq, hk, d, dv = 2, 16, 4, 2, 6, 3
    lengths, rows = [5, 3, 0], [2, 3, 1]  # keys and queries of each sequence; the last one has no keys
    pages = np.array([[3, 0, 6], [5, 1, -1], [-1, -1, -1]])
    ks, vs = randn(slots, hk, d), randn(slots, hk, dv)
    total = sum(rows) + gap  # tokens of no sequence at the end
    q, out, position = randn(total, hq, d), np.zeros((total, hq, dv)), np.zeros(total, dtype=int)
    mask, snk = randn(total, hq, 5), randn(hq)
    mask[0, 1, 3] = -INF
    start = [0]
    for n, r, table in zip(lengths, rows, pages):
        at = [table[j // page] * page + j % page for j in range(n)]
        t = slice(start[-1], start[-1] + r)
        position[t] = np.arange(r) + max(n - r, 0)
        if n:
            m = mask[t, :, :n].transpose(1, 0, 2) if use_mask else None
            out[t] = attend(q[t], ks[at], vs[at], position[t], 0.3, causal, window, cap, m, snk if use_sinks else None)
        start.append(start[-1] + r)
    ins = {"q": (q, "f32"), "k": (ks, "f32"), "v": (vs, "f32"), "row_start": (start, "i32"), "kv_length": (lengths, "i32"),
           "pages": (pages, "i32"), "position": (position, "i32")}
    if use_mask:
        ins["mask"] = (mask, "f32")
    if use_sinks:
        ins["sinks"] = (snk, "f32")
    case(name, out, ins)


paged("attention/causal", True, 0, 0, False, False, gap=1)
paged("attention/window-cap", True, 2, 0.7, False, False)
paged("attention/all", False, 0, 0, False, False)
paged("attention/mask-sinks", True, 0, 0, True, True)


# --- sampling
M32 = 0xFFFFFFFF


def philox(ctr, key):
    ctr, key = list(ctr), list(key)
    for _ in range(10):
        m0, m1 = 0xD2511F53 * ctr[0], 0xCD9E8D57 * ctr[2]
        ctr = [(m1 >> 32) ^ ctr[1] ^ key[0], m1 & M32, (m0 >> 32) ^ ctr[3] ^ key[1], m0 & M32]
        key = [(key[0] + 0x9E3779B9) & M32, (key[1] + 0xBB67AE85) & M32]
    return ctr


def choose(logits, setting, history, seed):
    temp, top_k, top_p, min_p, repeat, freq, presence, _ = setting
    logits = dict(enumerate(logits))
    for i in set(history):
        if i in logits:
            n = history.count(i)
            if repeat > 0:
                logits[i] = logits[i] / repeat if logits[i] > 0 else logits[i] * repeat
            logits[i] -= n * freq + presence
    live = sorted(((-l, i) for i, l in logits.items() if not math.isnan(l) and l != -INF))
    if not live:
        return -1
    if temp <= 0:
        return live[0][1]
    if top_k >= 1:
        live = live[: int(top_k)]
    if top_p < 1:
        probs = np.exp([live[0][0] - l for l, _ in live])
        probs /= probs.sum()
        live = live[: int(np.searchsorted(np.cumsum(probs), top_p - 1e-15)) + 1]
    if min_p > 0:
        best = -live[0][0]
        live = [c for c in live if -c[0] >= best + math.log(min_p)]
    best = -live[0][0]
    chosen = sorted((i, math.exp((-l - best) / temp)) for l, i in live)
    u = (philox([seed[2], seed[3], 0, 0], seed[:2])[0] >> 8) / 2**24
    cum = np.cumsum([w for _, w in chosen])
    return chosen[min(int(np.searchsorted(cum, u * cum[-1], side="right")), len(chosen) - 1)][0]


L, VOC, H = 64, 12, 5
logits = np.round(rng.standard_normal((L, VOC)) * 2, 2)
logits[3] = -INF
logits[4, :] = 1.0  # ties
logits[5, 2] = np.nan
logits[6, ::2] = -INF
settings = np.zeros((L, 8))
settings[:, 0] = rng.choice([0.0, 0.5, 1.0, 2.0], L, p=[0.15, 0.25, 0.4, 0.2])
settings[:, 1] = rng.choice([0, 1, 3, 50], L)
settings[:, 2] = rng.choice([1.0, 0.9, 0.5, 0.0], L)
settings[:, 3] = rng.choice([0.0, 0.05, 0.4], L)
settings[:, 4] = rng.choice([1.0, 1.3, 0.0], L)
settings[:, 5] = rng.choice([0.0, 0.3], L)
settings[:, 6] = rng.choice([0.0, 0.5], L)
history = rng.integers(-1, VOC + 2, (L, H))
seeds = rng.integers(0, 2**32, (L, 4))
ids = [choose(logits[i].tolist(), settings[i].tolist(), history[i].tolist(), seeds[i].tolist()) for i in range(L)]
case("sample", ids, {"logits": (logits, "f32"), "settings": (settings, "f32"), "history": (history, "i32"), "seeds": (seeds, "u32")}, "i32")

with open(sys.argv[1], "w") as f:
    f.write('{"format": 1, "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
