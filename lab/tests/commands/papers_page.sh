#!/bin/sh
# papers_page.sh BIN: chromium shows the page of `fishplate-lab papers` without errors, in the width of a screen and of a phone, light and
# dark; the filters hide entries, and every link has a target. Skipped if chromium is missing or cannot start.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
command -v chromium >/dev/null || exit 77
# The browser's helper processes may still write while the folder is removed.
trap 'rm -rf "$scratch" || rm -rf "$scratch" || :' EXIT
cd "$scratch"
"$BIN/fishplate-lab" papers --quick --only hoefler-2,liu-7.1 --html report.html >table 2>err || {
    cat table err
    fail "the run failed"
}
python3 - report.html <<'PY'
import sys
text = open(sys.argv[1]).read()
probe = """<script>window.onerror=m=>{document.title='ERROR '+m};
addEventListener('load',()=>{const shown=()=>document.querySelectorAll('article[data-paper]:not([hidden])').length,all=shown();
const box=document.querySelector('input[value=Liu04]');box.click();const fewer=shown();box.click();
const links=[...document.querySelectorAll('a[href]')],lost=links.filter(a=>{const h=a.getAttribute('href');
return h[0]!='#'||!document.getElementById(h.slice(1))});
const light=getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0,3).reduce((a,b)=>a+ +b,0)>384;
document.title='probe '+all+' '+fewer+' '+shown()+' '+(document.documentElement.scrollWidth<=innerWidth)+
' '+(links.length>0)+' '+lost.map(a=>a.outerHTML).join()+(light?'light':'dark')})</script>"""
open("probe.html", "w").write(text.replace("<body>", "<body>" + probe))
PY
# Width and height, chromium's preferredColorScheme (0: dark, 1: light), and the expected colours.
for view in 1200,900:1:light 500,900:1:light 500,900:0:dark; do
    size=${view%%:*} look=${view##*:} scheme=${view#*:}
    HOME=$scratch timeout 100 chromium --headless=new --no-sandbox --disable-gpu --window-size="$size" --blink-settings="preferredColorScheme=${scheme%:*}" --user-data-dir="$scratch/browser" \
        --enable-logging=stderr --virtual-time-budget=2000 --dump-dom "file://$scratch/probe.html" >dom 2>console || exit 77
    expect_line dom "<title>probe 4 2 4 true true $look</title>"
    if grep -q CONSOLE console; then
        cat console
        fail "the browser complains of the page"
    fi
done
