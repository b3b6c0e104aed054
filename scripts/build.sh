# shellcheck shell=bash
# For scripts that have set `root`: tern_build PRESET [cmake options] [-- targets]. Quiet where nothing is to do; shows the log where it fails.
tern_build() {
  local preset=$1 log targets=() options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
  [ $# -eq 0 ] || shift
  [ $# -eq 0 ] || targets=(--target "$@")
  mkdir -p "$root/build/$preset"
  log=$root/build/$preset/build.log
  (
    cd "${root:?}" || exit  # presets are looked for in the current folder
    if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then cat "$log" >&2 && exit 1; fi
    if [ "$(ninja -C "build/$preset" -n ${targets[@]:+"${targets[@]:1}"} 2>/dev/null | tail -n 1)" = "ninja: no work to do." ]; then exit 0; fi
    if [ -t 2 ]; then
      NINJA_STATUS="$preset [%f/%t] " cmake --build "build/$preset" "${targets[@]}" >&2
    else
      echo "building ($preset) …" >&2
      cmake --build "build/$preset" "${targets[@]}" >"$log" 2>&1 || { grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 100 >&2; exit 1; }
    fi
  )
}
