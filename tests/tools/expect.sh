# For the scripts that run programs as users do.
#   expect CODE TEXT COMMAND...: the command ends with CODE and says TEXT; what it says stays in the file `out`.
expect() {
  local code=$1 text=$2 found=0
  shift 2
  "$@" >out 2>&1 </dev/null || found=$?
  if [ "$found" -ne "$code" ] || { [ -n "$text" ] && ! grep -qF -- "$text" out; }; then
    echo "FAILED: $* ended with $found, expected $code and '$text'; it said:" >&2
    cat out >&2
    exit 1
  fi
}
