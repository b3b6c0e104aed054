#!/usr/bin/env python3
"""Writes ../tokenizer_golden.json: small vocabularies and what the reference libraries make of many strings with them.

Byte-pair families come from the PyPI package tokenizers (pre-tokenizers put together as in the published tokenizer.json files), the
score-based model from the package sentencepiece. Run: python3 make_tokenizer_golden.py TRAINING_TEXT
"""
import io
import json
import pathlib
import random
import sys

import sentencepiece
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent

TEXTS = [
    "", " ", "  ", "   x", "Hello world", " Hello", "trailing  ", "\n", "\n\n", "a\nb\n\nc", "\r\n", " \r\n \n", "\t", "\ttabbed\t\ttext", "x \n y",
    "don't I'm we've they'll he'd it's", "DON'T I'M WE'VE THEY'LL", "'s 'T 'lL 'x ''", "3.14159", "1234567890", "1,000,000.00", "a1b22c333d4444",
    "½ ² ③ Ⅷ ٣٤٥", "naïve café", "cafe\u0301 A\u030a", "Привет, мир", "שלום עולם", "こんにちは世界", "안녕하세요", "हिन्दी भाषा", "😀👩‍👩‍👧", "🇫🇷🏳️‍🌈",
    "for (int i=0;i<n;++i){x[i]+=y[i]*2;}", "def f(x):\n    return x**2\n", "https://example.com/a?b=c&d=e#f", "a\u00a0b\u3000c\u2028d\u0085e",
    "\u180e\u200b\ufeffx", "$€£ <=> ^~|`", "...!!!???", "!\n", "?!\r\n\r\nx", "\u0000\u0001\u001f\u007f", "ſ 'ſ 'K", "ǅ ﬁ ß", "e\u0301\u0302\u0303",
    "the the the then there", "_under_score __x__", "#hash @at", " \u00a0 x", "1 2  3   4", "x\u2009y",
]
ALPHABET = list("abcXYZ019 '.,!?-_\n\r\t  \"()") + ["é", "ß", "я", "ش", "世", "界", "ん", "한", "ा", "\u0301", "½", "Ⅷ", "٣", "😀", "\u200d", "\u00a0", "\u3000",
                                                  "\u2028", "\u0085", "€", "'s", "'LL", "the", "ing", "  ", "\r\n", "12", "345"]

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def texts():
    rng = random.Random(7)
    return TEXTS + ["".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 24))) for _ in range(250)]


def families():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    plain_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def split(digits):
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CL100K % digits), "isolated"), plain_bytes])

    yield "gpt-2", byte_level, None, False
    yield "smollm", pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]), None, False
    yield "llama-bpe", split(r"\p{N}{1,3}"), None, True
    yield "qwen2", split(r"\p{N}"), normalizers.NFC(), False


def byte_pairs(training):
    for name, pre, normalizer, ignore_merges in families():
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer = pre
        if normalizer:
            tokenizer.normalizer = normalizer
        trainer = trainers.BpeTrainer(vocab_size=560, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        tokenizer.train_from_iterator(training + [t * 3 for t in TEXTS], trainer)
        model = json.loads(tokenizer.to_str())["model"]
        vocab = sorted(model["vocab"], key=model["vocab"].get)
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
        if ignore_merges:  # words that no merges lead to, which are tokens nevertheless
            vocab += ["Ġsovereign", "zyx"]
            model["vocab"] = {t: i for i, t in enumerate(vocab)}
            whole = json.loads(tokenizer.to_str())
            whole["model"]["vocab"] = model["vocab"]
            tokenizer = Tokenizer.from_str(json.dumps(whole))
        extra = ["zyx sovereign zyxz"] if ignore_merges else []
        yield {"model": "gpt2", "pre": name, "tokens": vocab, "merges": merges,
               "cases": [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts() + extra]}


def by_score(training):
    for prefix in (True, False):
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(training), model_writer=out, vocab_size=460, model_type="bpe", byte_fallback=True, character_coverage=0.9995,
            add_dummy_prefix=prefix, remove_extra_whitespaces=False, normalization_rule_name="identity", minloglevel=2, num_threads=1)
        sp = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
        types = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 5 if sp.is_unused(i) else 1 for i in range(len(sp))]
        yield {"model": "llama", "add_space_prefix": prefix, "tokens": [sp.id_to_piece(i) for i in range(len(sp))],
               "scores": [sp.get_score(i) for i in range(len(sp))], "types": types,
               "cases": [{"text": t, "ids": sp.encode(t), "decoded": sp.decode(sp.encode(t))} for t in texts() if "\0" not in t and "\u2581" not in t]}


def main():
    training = [line for line in pathlib.Path(sys.argv[1]).read_text().split("\n") if line.strip()]
    out = [*byte_pairs(training), *by_score(training)]
    (HERE.parent / "tokenizer_golden.json").write_text("[\n" + ",\n".join(json.dumps(v, ensure_ascii=True, separators=(",", ":")) for v in out) + "\n]\n")
    print([(v["model"], v.get("pre"), len(v["tokens"]), len(v["cases"])) for v in out])


if __name__ == "__main__":
    main()
