/* The page of `fishplate why`: the findings, and a drawing of which rank waits for which. SPDX-License-Identifier: Apache-2.0 */
const WIDTH=1000,NODES_MAX=40,ALONE_MAX=16,FINDINGS_MAX=12;
const isStuck=r=>r.state==='waits'&&r.steady&&!r.live;
const style=r=>isStuck(r)?'stuck':r.state==='waits'?'waits':r.state==='runs'?'runs':'other';
const activity=r=>r.call===undefined?(r.state==='runs'?'computes':r.state):(r.call||'an MPI call')+(r.at?` at ${r.at}`:'');
function rankNames(ranks){
const runs=[];
for(const r of ranks)if(runs.length&&runs.at(-1)[1]===r-1)runs.at(-1)[1]=r;else runs.push([r,r]);
const text=(ranks.length>1?'ranks ':'rank ')+runs.map(([a,b])=>a===b?a:`${a}-${b}`).join(', ');
return text.length>32?`${ranks.length} ranks, ${ranks[0]} to ${ranks.at(-1)}`:text}
/* Ranks in the same state at the same place are one node, so that thousands of ranks stay readable. */
function makeNodes(d){
const nodes=new Map();
for(const r of d.ranks){
const key=d.size<=ALONE_MAX?r.rank:`${style(r)} ${activity(r)}`;
if(!nodes.has(key))nodes.set(key,{style:style(r),text:activity(r),ranks:[],to:new Map()});
nodes.get(key).ranks.push(r.rank)}
return[...nodes.values()]}
function addEdges(d,nodes){
const nodeOf=new Map(nodes.flatMap(n=>n.ranks.map(r=>[r,n])));
const add=(from,to)=>{
const n=nodeOf.get(from),other=nodeOf.get(to);
if(other)n.to.set(other,(n.to.get(other)||0)+1)};
for(const r of d.ranks)if(isStuck(r))add(r.rank,r.waits_for);else for(const i of r.items||[])add(r.rank,i.peer);
for(const c of d.collectives)for(const r of c.waiting)if(!isStuck(d.ranks[r]))for(const m of c.missing.slice(0,NODES_MAX))add(r,m)}
/* From border to border, bent to the left, so that mutual waits are two lines. */
function edge(a,b,count){
const kind=a.style==='stuck'?'edge bad':'edge',at=n=>n.toFixed(0);
if(a===b)return html`<path class="${kind}" marker-end="url(#tip)" d="M ${at(a.x-6)} ${at(a.y-24)} c -40 -60 40 -60 12 -4"/>`;
const dx=b.x-a.x,dy=b.y-a.y,length=Math.hypot(dx,dy),ux=dx/length,uy=dy/length;
const reach=Math.min(114/Math.max(Math.abs(ux),1e-6),28/Math.max(Math.abs(uy),1e-6));
const mx=(a.x+b.x)/2,my=(a.y+b.y)/2,cx=mx+uy*length*.13,cy=my-ux*length*.13;
return html`<path class="${kind}" marker-end="url(#tip)" d="M ${at(a.x+ux*reach+uy*8)} ${at(a.y+uy*reach-ux*8)} Q ${at(cx)} ${at(cy)} ${
at(b.x-ux*(reach+4)+uy*8)} ${at(b.y-uy*(reach+4)-ux*8)}"/>${
count>1&&html`<text class="what count" x="${at((cx+mx)/2)}" y="${at((cy+my)/2)}">${count}</text>`}
`}
const node=n=>html`<rect class="${n.style}" x="${n.x-110}" y="${n.y-24}" width="220" height="48" rx="9"/><text text-anchor="middle" x="${
n.x}" y="${n.y-4}">${rankNames(n.ranks)}</text><text class="what" text-anchor="middle" x="${n.x}" y="${n.y+13}">${
n.text.length>36?n.text.slice(0,36)+'...':n.text}</text>
`;
function drawing(d){
const nodes=makeNodes(d),n=nodes.length;
if(n>NODES_MAX)return html`<p>The ranks do ${n} different things: too many for a drawing.</p>`;
addEdges(d,nodes);
const rx=n===1?0:(WIDTH/2-130)*(n===2?.7:1),ry=n<=2?0:Math.max(150,14*n);
nodes.forEach((one,i)=>{
const angle=2*Math.PI*i/n-(n<=2?Math.PI:Math.PI/2);
one.x=Math.round(WIDTH/2+rx*Math.cos(angle));
one.y=Math.round(ry+70+ry*Math.sin(angle))});
return html`<div class="draw" tabindex="0"><svg viewBox="0 0 ${WIDTH} ${2*ry+140}" role="img" aria-label="who waits for whom">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M 0 0 L 8 4 L 0 8 z" class="tip"/></marker></defs>
${nodes.map(a=>[...a.to].map(([b,count])=>edge(a,b,count)))}${nodes.map(node)}</svg></div>
`}
function render(d){
const title=d.hangs?'The job hangs':'Who waits for whom',more=d.findings.length-FINDINGS_MAX;
document.title=title;
return html`<h1>${title}</h1>
<p>Job ${d.job}, ${plural(d.size,'rank')}, ${d.ranks.filter(r=>r.state==='waits').length} of them wait in MPI. Red: cannot go on. Yellow: waits. Green: computes.</p>
${drawing(d)}${d.findings.slice(0,FINDINGS_MAX).map(f=>html`<pre>${f.text}</pre>
`)}${more>0&&html`<p>... and ${more} findings more; --json has all.</p>`}`}
