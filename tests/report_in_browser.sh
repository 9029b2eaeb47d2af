#!/usr/bin/env bash
# Opens a report full of hostile names in headless Chromium: nothing of them may run, nor even be refused by the page's
# policy, which would mean that it had become markup. By hand: needs chromium and a release build.
#   tests/report_in_browser.sh [REPORT.html...]      screenshots of these go beside them
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# browse PAGE FLAGS...: what the page says on its console.
browse() {
  local page=$1
  shift
  timeout 120 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000 \
    --enable-logging=stderr "$@" "file://$page" 2>&1 | grep -F ':CONSOLE' || true
}

GLE_REPORT_OUT=$work "$here/build/release/tests/tools/report_test" --gtest_filter='Report.HostileNamesStayText' >/dev/null
said=$(browse "$work/hostile.html" --dump-dom)
[ -z "$said" ] || { echo "FAILED: the page said: $said" >&2; exit 1; }

# The same page with markup of an attacker's: the policy must refuse all three, or the silence above proves nothing.
sed 's#<main>#<main><img src=x onerror=hacked()><script>hacked()</script>#' "$work/hostile.html" >"$work/control.html"
refused=$(browse "$work/control.html" --dump-dom | grep -c 'violates the following Content Security Policy')
[ "$refused" -ge 3 ] || { echo "FAILED: the policy refused $refused of 3" >&2; exit 1; }
echo "100 hostile names: no script ran; the policy refused $refused of 3 planted ones"

for page in "$@"; do
  page=$(realpath "$page")
  browse "$page" --window-size=1280,6000 --screenshot="${page%.html}-desktop.png"
  browse "$page" --window-size=1280,6000 --blink-settings=preferredColorScheme=0 --screenshot="${page%.html}-dark.png"
  printf '<body><iframe src="%s" width=390 height=8000></iframe>' "$page" >"$work/phone.html"
  browse "$work/phone.html" --window-size=420,8000 --screenshot="${page%.html}-phone.png"
done
