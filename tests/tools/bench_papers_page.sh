#!/bin/sh
# bench_papers_page.sh BIN: a browser shows the page of `fishplate bench papers` without complaint, in the width of a screen and
# of a phone, and the filters hide what they should. Skipped where there is no chromium or it cannot start.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v chromium >/dev/null || exit 77
# The browser's helpers may still write while the folder goes away.
trap 'rm -rf "$scratch" || rm -rf "$scratch" || :' EXIT
cd "$scratch"
"$BIN/fishplate" bench papers --quick --only hoefler-2,liu-7.1 --html report.html >table 2>err || {
    cat table err
    fail "the run failed"
}
python3 - report.html <<'PY'
import sys
text = open(sys.argv[1]).read()
probe = """<script>window.onerror=m=>{document.title='ERROR '+m};
addEventListener('load',()=>{const shown=()=>document.querySelectorAll('article[data-paper]:not([hidden])').length,all=shown();
const box=document.querySelector('input[value=Liu04]');box.click();const fewer=shown();box.click();
document.title='probe '+all+' '+fewer+' '+shown()+' '+(document.documentElement.scrollWidth<=innerWidth)})</script>"""
open("probe.html", "w").write(text.replace("<body>", "<body>" + probe))
PY
for size in 1200,900 500,900; do
    HOME=$scratch timeout 100 chromium --headless=new --no-sandbox --disable-gpu --window-size=$size --user-data-dir="$scratch/browser" \
        --enable-logging=stderr --virtual-time-budget=2000 --dump-dom "file://$scratch/probe.html" >dom 2>console || exit 77
    expect_line dom '<title>probe 4 2 4 true</title>'
    if grep -q CONSOLE console; then
        cat console
        fail "the browser complains of the page"
    fi
done
