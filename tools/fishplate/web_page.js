/* What the pages of `fishplate` share: markup, units, sections and tables. The page's own script defines render(data), which
 * returns the markup of the report. SPDX-License-Identifier: Apache-2.0 */
'use strict';
class Markup{constructor(text){this.text=text}}
const escapes={'&':'&amp;','<':'&lt;','>':'&gt;','"':'&quot;'};
/* Text is escaped; markup and lists of it are not. */
const textOf=v=>v instanceof Markup?v.text:Array.isArray(v)?v.map(textOf).join(''):v===undefined||v===null||v===false?'':
String(v).replace(/[&<>"]/g,c=>escapes[c]).replace(/[^\P{Cc}\n\t]/gu,' ');
const html=(parts,...values)=>new Markup(parts.reduce((all,part,i)=>all+textOf(values[i-1])+part));
const percent=(part,whole)=>whole>0?100*part/whole:0;
const plural=(n,what)=>`${n} ${what}${n===1?'':'s'}`;
function bytes(n){
let u=0;
for(;n>=1024&&u<6;u++)n/=1024;
return`${n.toFixed(Number.isInteger(n)?0:1)} ${['B','KiB','MiB','GiB','TiB','PiB','EiB'][u]}`}
const seconds=s=>s===0?'0':s<1e-3?`${(s*1e6).toFixed(1)} us`:s<1?`${(s*1e3).toFixed(2)} ms`:`${s.toFixed(3)} s`;
const section=(title,about,...body)=>html`<section>
<h2>${title}</h2><p>${about}</p>
${body}</section>
`;
/* A wide table scrolls horizontally under a fixed first column. */
const table=(names,rows)=>html`<div class="wide" tabindex="0"><table>
<tr>${names.map(n=>html`<th>${n}</th>`)}</tr>
${rows.map(r=>html`<tr>${r.map(c=>html`<td>${c}</td>`)}</tr>
`)}</table></div>
`;
function show(){
const body=render(JSON.parse(document.getElementById('data').textContent));
document.querySelector('main').innerHTML=body.text}
