"""A tiny model that can talk: a case model with a chat template, and a longer context where asked for."""
import pathlib
import struct

from program import SMALL, path

TEMPLATE = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}a:"


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def make(folder, template=TEMPLATE, context=None):
    """GGUF: magic, version, counts of tensors and keys (24 bytes), then the keys. The data behind them stays aligned where a whole
    number of 32 bytes comes in."""
    data = bytearray(pathlib.Path(path(SMALL)).read_bytes())
    if context is not None:
        at = data.index(b"llama.context_length") + len("llama.context_length") + 4
        data[at : at + 4] = struct.pack("<I", context)
    key = text("tokenizer.chat_template") + struct.pack("<I", 8)
    pad = -(len(key) + 8 + len(template.encode())) % 32
    if 0 < pad < 4:
        pad += 32
    entry = key + text(template + ("{#" + " " * (pad - 4) + "#}" if pad else ""))
    data[16:24] = struct.pack("<Q", struct.unpack("<Q", data[16:24])[0] + 1)
    made = pathlib.Path(folder) / "talks.gguf"
    made.write_bytes(bytes(data[:24]) + entry + bytes(data[24:]))
    return str(made)
