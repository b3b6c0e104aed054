# shellcheck shell=bash
# For scripts that have set `root`: tern_build PRESET [cmake options] [-- targets]. Quiet where little is to do; shows the log where it fails.
tern_build() {
  local preset=$1 folder=${root:?}/build/$1 log notice status=0 targets=() options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
  [ $# -eq 0 ] || shift
  [ $# -eq 0 ] || targets=(--target "$@")
  mkdir -p "$folder"
  log=$folder/build.log
  # Configured once for these options; the build itself configures again when its files change. Presets are looked for in the current folder.
  if [ ! -e "$folder/build.ninja" ] || [ "${options[*]}" != "$(cat "$folder/options" 2>/dev/null)" ]; then
    (cd "$root" && cmake --preset "$preset" "${options[@]}") >"$log" 2>&1 || { cat "$log" >&2 && return 1; }
    echo "${options[*]}" >"$folder/options"
  fi
  if [ -t 2 ]; then
    NINJA_STATUS="$preset [%f/%t] " cmake --build "$folder" "${targets[@]}" | grep -v 'no work to do' >&2
    return "${PIPESTATUS[0]}"
  fi
  (sleep 3 && echo "building ($preset) …" >&2) &
  notice=$!
  cmake --build "$folder" "${targets[@]}" >"$log" 2>&1 || status=1
  kill $notice 2>/dev/null || true
  wait $notice 2>/dev/null || true
  [ $status = 0 ] || grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 100 >&2
  return $status
}
