/* The page of `fishplate prof`. The classes b0, b1 ... are the colours of kinds of functions. SPDX-License-Identifier: Apache-2.0 */
const kinds={p2p:'point to point',wait:'waiting',coll:'collective',rma:'one-sided',io:'files',other:'other MPI'};
const kindNumber=k=>Object.keys(kinds).indexOf(k);
const dash='-',fixed=(n,digits=1)=>`${n.toFixed(digits)} %`;
const bar=(style,share,title)=>html`<i class="${style}" style="width:${share.toFixed(2)}%" title="${title}"></i>`;
const label=(style,name)=>html`<span><i class="${style}"></i>${name}</span>`;
function verdict(d){
const missing=d.incomplete,each=d.recorded/d.records;
const items=d.verdict.map(v=>html`<li>${v.finding}${v.seconds>0&&html`<span class="cost"> It costs a rank ${seconds(v.seconds)}, ${
fixed(percent(v.seconds,each),0)} of its time.</span>`}</li>`);
return html`<section class="verdict ${missing?'broken':d.verdict[0].seconds>0?'costly':'fine'}">
<h2>${missing?'This run is incomplete':'Verdict'}</h2>${missing&&html`<p class="missing">${missing}</p>`}
<ol>
${items}</ol>
</section>
`}
function tiles(d){
const sent=d.peers.reduce((n,p)=>n+p.messages,0);
const list=[[seconds(d.recorded/d.records),'recorded, a rank'],[fixed(d.mpi_percent),'of it in MPI'],
[d.point_to_point.count,'messages sent'],[bytes(d.point_to_point.bytes),'in messages'],[d.collective.count,'collective calls'],
d.buffer_reuse.accesses&&[fixed(d.buffer_reuse.percent),'buffer reuse'],
sent&&[fixed(d.within_node.messages_percent),'of messages within a node']];
return html`<div class="tiles">
${list.map(t=>t&&html`<div class="tile"><b>${t[0]}</b><span>${t[1]}</span></div>
`)}</div>
`}
function run(d){
const hosts=new Map();
for(const r of d.ranks)hosts.set(r.host,(hosts.get(r.host)||0)+1);
const names=[...hosts].map(([host,n])=>`${host} (${plural(n,'rank')})`);
const facts=[['command',d.command||d.program],['date',d.date],['library',d.library],
['hosts',names.slice(0,16).join(', ')+(names.length>16?` and ${names.length-16} more`:'')],['between nodes',d.adapter],
['settings',d.settings.join(' ')||(d.library&&'all as they are by default')]];
return section('This run','What the figures were measured with.',html`<dl>
${facts.map(f=>f[1]&&html`<dt>${f[0]}</dt><dd>${f[1]}</dd>
`)}</dl>
`)}
/* With many ranks, bars of ranks at equal distances. */
function ranks(d){
const shown=Math.min(d.ranks.length,64);
const list=Array.from({length:shown},(_,i)=>d.ranks[Math.ceil(i*d.ranks.length/shown)]);
const bars=r=>{
const scale=Math.max(r.recorded,r.mpi),parts=[...Object.keys(kinds).map(k=>['b'+kindNumber(k),kinds[k],r.kinds[k]]),
['ba','the program itself',r.recorded-r.mpi]];
return parts.map(([style,name,part])=>scale>0&&part>0&&bar(style,percent(part,scale),
`rank ${r.rank} on ${r.host}, ${name}: ${seconds(part)}, ${fixed(percent(part,scale))}`))};
return section('Where time goes',
`A bar for each rank, as shares of its recorded time${d.threaded?'; the threads of a rank are added up':''}.`,
html`<div class="legend">${Object.keys(kinds).map(k=>d.ranks.some(r=>r.kinds[k]>0)&&label('b'+kindNumber(k),kinds[k]))}${
label('ba','the program itself')}</div>
<div class="chart rows">
${list.map(r=>html`<span>rank ${r.rank}</span><span class="line">${bars(r)}</span><span>${fixed(percent(r.mpi,r.recorded),0)}</span>
`)}</div>
<p>On the right: the share of its time that a rank spends in MPI.</p>
${shown<d.ranks.length&&html`<p>${shown} of ${d.ranks.length} ranks are shown.</p>`}`)}
function functions(d,title,about,names,chosen,row){
const list=d.functions.filter(chosen);
return list.length&&section(title,about,table(['function','calls',...names],list.map(f=>[f.name,f.calls,...row(f)])))}
const share=(d,f)=>percent(f.mean*d.records,d.mpi);
const collectives=d=>functions(d,'Collectives: waiting and moving',
'Calls of all ranks; mean time of a rank. Waiting ends when the last rank calls; moving is the rest of the call.',
['','waiting','moving','waited for rank'],f=>f.waiting!==undefined,f=>{
const waits=percent(f.waiting,f.waiting+f.moving);
return[html`<span class="bar two">${bar('b1',waits)}${bar('b2',100-waits)}</span>`,seconds(f.waiting),seconds(f.moving),
f.waiting>0?`${f.late_rank} (${fixed(f.late_percent,0)})`:dash]});
const all=d=>functions(d,'Functions','Calls of all ranks; time of a rank. Imbalance is max / mean - 1.',
['of MPI','min','mean','max','slowest rank','imbalance','longest call'],()=>true,f=>[f.startup?dash:
html`<span class="bar">${bar('b'+kindNumber(f.kind),Math.min(100,share(d,f)))}</span><span class="num">${fixed(share(d,f))}</span>`,
seconds(f.min),seconds(f.mean),seconds(f.max),f.slowest_rank,fixed(100*f.imbalance,0),seconds(f.longest_call)]);
const lines=d=>d.lines.length&&section('Lines that cost most',
'Lines of the program that call MPI; the time is that of a rank.',table(['line','function','calls','time of a rank'],
d.lines.map(l=>[l.line,l.function,l.calls,seconds(l.seconds)])));
const short=n=>n<1e4?n:n<1e7?(n/1e3).toFixed(0)+'k':(n/1e6).toFixed(0)+'M';
function sizeBars(d){
const p2p=new Map(d.point_to_point.by_power_of_two.map(b=>[b.from,b]));
const coll=new Map(d.collective.by_power_of_two.map(b=>[b.from,b])),used=[...p2p.keys(),...coll.keys()];
if(!used.length)return'';
const most=Math.max(...[...p2p.values(),...coll.values()].map(b=>b.count)),rows=[];
const one=(b,style,what)=>b&&bar(style,percent(b.count,most),`${what}: ${b.count}, ${bytes(b.bytes)} in all`);
for(let from=Math.min(...used);from<=Math.max(...used);from=from?2*from:1){
const p=p2p.get(from),c=coll.get(from);
rows.push(html`<span>${from?bytes(from):'empty'}</span><span class="pair">${one(p,'b0','messages')}${
one(c,'b2','collective calls')}</span><span>${short(p?p.count:0)} + ${short(c?c.count:0)}</span>
`)}
return html`<p></p><div class="legend">${label('b0','messages')}${label('b2','collective calls')}</div>
<div class="chart rows">
${rows}</div>
<p>A row holds the sizes from its label up to twice that.</p>`}
function sizes(d){
const row=(name,c)=>[name,c.below_2k,c['2k_to_16k'],c['16k_to_1m'],c.from_1m,c.count,bytes(c.bytes),bytes(c.count?c.bytes/c.count:0)];
const c=d.collective_share;
return section('Message sizes','A message counts at its sender, a collective call at each rank with the bytes of its send buffer, '+
'or of its receive buffer if it sends none.',
table(['','< 2 KiB','2 - 16 KiB','16 KiB - 1 MiB','>= 1 MiB','all','bytes','mean'],
[row('point to point',d.point_to_point),row('collective',d.collective)]),sizeBars(d),
d.collective.count>0&&html`<p>Collective calls are ${fixed(c.calls_percent)} of both, with ${fixed(c.bytes_percent)} of the bytes and ${
fixed(c.time_percent)} of the time in MPI.</p>`)}
const nonblocking=d=>functions(d,'Nonblocking calls','Communication that can overlap with computation; large messages gain most.',
['mean size'],f=>f.nonblocking,f=>[bytes(f.mean_size)]);
const waiting=d=>functions(d,'Waiting','Calls that complete, test or probe. Blocking calls wait too: their time is in the table of functions.',
['of MPI','a rank','a call','longest'],f=>f.kind==='wait',f=>[fixed(share(d,f)),seconds(f.mean),seconds(f.mean*d.records/f.calls),
seconds(f.longest_call)]);
const memory=({buffer_bytes:m})=>m.managed+m.gpu>0&&section('Memory','Bytes of the buffers that calls sent and received.',
html`<p>${bytes(m.host)} of host memory, ${bytes(m.managed)} of managed memory, ${bytes(m.gpu)} of GPU memory.</p>`);
const reuse=({buffer_reuse:u})=>u.accesses>0&&section('Buffer reuse',
'A buffer is reused if its address was used before. Networks register a buffer at its first use.',
html`<p>${fixed(u.percent,2)} of ${u.accesses} accesses; ${fixed(u.weighted_percent,2)} weighted by size.</p>${u.dropped>0&&
html`<p>${u.dropped} addresses found no room to be remembered: the true rate may be higher.</p>`}`);
/* The matrix of traffic, coloured by the logarithm of the bytes; with many ranks, consecutive ranks share a cell. */
function matrix(d){
const each=Math.ceil(d.size/64),n=Math.ceil(d.size/each),cells=new Map();
for(const p of d.carried.length?d.carried:d.peers){
const at=Math.floor(p.from/each)*n+Math.floor(p.to/each),c=cells.get(at)||{messages:0,bytes:0};
c.messages+=p.messages;
c.bytes+=p.bytes;
cells.set(at,c)}
const used=[...cells.values()].map(c=>c.bytes).filter(b=>b>0),least=used.reduce((a,b)=>Math.min(a,b),Infinity);
const most=used.reduce((a,b)=>Math.max(a,b),0);
const strength=b=>(b<=0?.15:most>least?.2+.8*Math.log(b/least)/Math.log(most/least):1).toFixed(2);
const name=i=>each===1?i:`${i*each}-${Math.min(d.size,(i+1)*each)-1}`;
const side=Math.min(40,560/n),every=side<9?8:side<22?4:1,steps=most>least?[0,1,2,3,4]:most>0?[0]:[];
const legend=steps.map(i=>[Math.floor(least*(most/least)**(i/4)),i>0&&i<4?'about ':'']);
const names=Array.from({length:n},(_,i)=>i).filter(i=>i%every===0).map(i=>html`<text x="${80+(i+.5)*side}" y="34" text-anchor="middle">${
name(i)}</text><text x="72" y="${44+(i+.5)*side}" text-anchor="end">${name(i)}</text>
`);
return html`<div class="legend">${legend.map(([b,about])=>html`<span><i class="bh" style="opacity:${strength(b)}"></i>${about}${
bytes(b)}</span>`)}</div>
<svg class="chart" width="${n*side+100}" height="${n*side+50}" viewBox="0 0 ${n*side+100} ${n*side+50}" role="img" aria-label="bytes from rank to rank">
<text x="80" y="14">to</text><text x="6" y="34">from</text>
${names}${[...cells].map(([at,c])=>c.messages>0&&html`<rect class="heat" fill-opacity="${strength(c.bytes)}" x="${80+at%n*side}" y="${
40+Math.floor(at/n)*side}" width="${side-1}" height="${side-1}" rx="2"><title>rank ${name(Math.floor(at/n))} to rank ${name(at%n)}: ${
c.messages} messages, ${bytes(c.bytes)}</title></rect>
`)}<rect class="frame" x="79" y="39" width="${n*side+1}" height="${n*side+1}"/>
</svg>
`}
const peers=d=>d.peers.length+d.carried.length>0&&section('Peers',d.carried.length?'Who sent how much to whom: all messages of the library, '+
'those of collectives among them. What ranks of a node do in memory they share is no message.':
'Who sent how much to whom, point to point.',matrix(d),html`<p>Point to point, within a node: ${
fixed(d.within_node.messages_percent)} of the messages, ${fixed(d.within_node.bytes_percent)} of the bytes.</p>${
d.outside.messages>0&&html`<p>${d.outside.messages} messages went to processes outside this job's world.</p>`}`);
function links(d){
const host=new Map(d.ranks.map(r=>[r.rank,r.host]));
const list=d.links.slice(0,Math.min(16,Math.max(8,d.slow_links)));
return list.length&&section('Slowest links','Messages of 32 KiB and more. Others are links of the same kind, with messages of '+
'similar size, between other nodes; times slower compares the fastest moments of both.',
table(['from','to','hosts','rail','messages','bytes','rate','of others','times slower',''],list.map(l=>[l.from,l.to,
`${host.get(l.from)||''} to ${host.get(l.to)||''}`,l.rail,l.messages,bytes(l.bytes),bytes(l.bytes_per_second)+'/s',
l.others_bytes_per_second>0?bytes(l.others_bytes_per_second)+'/s':dash,l.times_slower>=1?l.times_slower.toFixed(1):dash,
l.how+(l.slow?': slow':'')])),html`<p>${d.slow_links===0?'No link is much slower than others of its kind.':
d.slow_host&&`All ${d.slow_links} slow links lead to or from host ${d.slow_host}.`}</p>`)}
function render(d){
document.title=`${d.program}: MPI profile`;
return html`<h1>${d.program}</h1><p>${plural(d.size,'rank')} on ${plural(d.nodes,'node')}</p>
${[verdict,tiles,run,ranks,collectives,all,lines,sizes,nonblocking,waiting,memory,reuse,peers,links].map(part=>part(d)||'')}
<footer>Written by fishplate prof; <code>fishplate prof --help</code> explains how to read it.</footer>
`}
