/* The page of `fishplate check`: the matrix of bandwidths, in which a slow host shows as a dark cross. Colours run from slow (dark)
 * to fast (light) and suit readers with red-green colour blindness. SPDX-License-Identifier: Apache-2.0 */
const stops=[[68,1,84],[59,82,139],[33,145,140],[94,201,98],[253,231,37]];
function colour(share){
const at=4*Math.min(1,Math.max(0,share)),low=Math.min(3,Math.floor(at));
return`rgb(${stops[low].map((c,i)=>Math.round(c+(stops[low+1][i]-c)*(at-low))).join(',')})`}
function matrix(d){
const n=d.hosts.length,rate=d.bandwidth_bytes_per_second,most=rate.flat().reduce((a,b)=>Math.max(a,b),0);
const side=Math.max(4,Math.min(40,640/n)),left=150,top=130,gap=side>8?1:0,width=left+n*side+120;
const every=Math.ceil(n/64); /* with more than 64 hosts only every so many names */
const names=d.hosts.map(({host},a)=>a%every===0&&html`<text x="${left-6}" y="${top+(a+.5)*side+4}" text-anchor="end">${host}</text>
<text x="${left+(a+.5)*side}" y="${top-6}" transform="rotate(-60 ${left+(a+.5)*side} ${top-6})">${host}</text>
`);
const cells=rate.map((row,a)=>row.map((r,b)=>a!==b&&r>0&&html`<rect class="cell" x="${left+b*side}" y="${top+a*side}" width="${
side-gap}" height="${side-gap}" fill="${colour(r/most)}"><title>${d.hosts[a].host} - ${d.hosts[b].host}: ${
(r/1e6).toFixed(0)} MB/s, ${(d.latency_seconds[a][b]*1e6).toFixed(2)} us</title></rect>
`));
const scale=[0,1,2,3,4].map(i=>html`<rect x="${left+n*side+16}" y="${top+20*i}" width="16" height="16" fill="${colour(i/4)}"/><text x="${
left+n*side+38}" y="${top+20*i+12}">${(most*i/4e6).toFixed(0)}</text>
`);
return html`<svg width="${width}" viewBox="0 0 ${width} ${top+n*side+40}" role="img" aria-label="bandwidth between hosts">
${names}${cells}${scale}</svg>
`}
function render(d){
document.title='fishplate check';
return html`<h1>${plural(d.hosts.length,'host')}</h1>
${d.hosts.length>1&&section('Bandwidth between hosts, MB/s',d.path,matrix(d))}${section('Findings',d.findings.length?'':
'There is nothing to report.',d.findings.map(f=>html`<p>${f.severity==='warning'?'Warning':'Note'}: ${f.host&&f.host+': '}${f.what}. ${
f.todo}</p>
`))}`}
