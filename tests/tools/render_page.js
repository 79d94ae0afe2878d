/* render_page.js PAGE: prints the report of a page of `fishplate` as a browser shows it, as well-formed XML.
 * SPDX-License-Identifier: Apache-2.0 */
const page=require('fs').readFileSync(process.argv[2],'utf8');
const between=(begin,end)=>page.slice(page.indexOf(begin)+begin.length,page.indexOf(end,page.indexOf(begin)));
const main={},data={textContent:between('id="data">','</script>')};
const document={getElementById:()=>data,querySelector:()=>main};
new Function('document',between('<script>','</script>'))(document);
console.log(`<html><head><title>${document.title.replace(/&/g,"&amp;").replace(/</g,"&lt;")}</title><style>${between('<style>','</style>')}</style></head><body><main>${
main.innerHTML}</main></body></html>`);
