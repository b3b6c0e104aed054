#!/usr/bin/env python3
"""Gives WGSL files to a compiler of WebGPU: naga (package wgpu), or Tint (package wgpudawn, on Dawn's Null device).

usage: check_wgsl.py naga|tint FILE…
Exit codes: 0 all files are taken; 1 one is not, and standard output says where and why; 3 the compiler is not there, and standard
output says what is missing.
"""
import importlib
import os
import pathlib
import sys

PACKAGES = {"naga": "wgpu", "tint": "wgpudawn"}
# What the two call the feature, and the line that Tint wants for it and naga refuses.
FEATURE = {"naga": "subgroup", "tint": "subgroups"}
HEAD = {"naga": "", "tint": "enable subgroups;\n"}


def open_device(compiler):
    """The first device with subgroups; SystemExit 3 where there is none."""
    if compiler == "tint":
        os.environ["WGPU_BACKEND_TYPE"] = "Null"  # nothing is run
    try:
        gpu = importlib.import_module(PACKAGES[compiler]).gpu
        adapters = [gpu.request_adapter_sync()] if compiler == "tint" else gpu.enumerate_adapters_sync()
    except (ImportError, OSError, RuntimeError) as error:
        print(f"{sys.executable} has no {PACKAGES[compiler]} that works: {error}")
        sys.exit(3)
    for adapter in adapters:
        if FEATURE[compiler] in adapter.features:
            return adapter.request_device_sync(required_features=[FEATURE[compiler]])
    print(f"{PACKAGES[compiler]} finds no adapter with subgroups, not even one of software (Debian: mesa-vulkan-drivers)")
    return sys.exit(3)


def main(compiler, files):
    device = open_device(compiler)
    refused = 0
    for path in files:
        try:
            device.create_shader_module(code=HEAD[compiler] + pathlib.Path(path).read_text())
        except Exception as error:  # each package has classes of its own
            refused += 1
            print(f"{path}: {compiler} refuses it\n{error}\n")
    return 1 if refused else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in PACKAGES:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
