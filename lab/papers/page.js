/* Filters the entries of the page by paper and verdict. SPDX-License-Identifier: Apache-2.0 */
'use strict';
const boxes=[...document.querySelectorAll('.filters input')];
function filter(){
const on=new Set(boxes.filter(b=>b.checked).map(b=>b.value));
for(const a of document.querySelectorAll('article[data-paper]'))a.hidden=!(on.has(a.dataset.paper)&&on.has(a.dataset.verdict));
for(const s of document.querySelectorAll('section.chapter'))s.hidden=!s.querySelector('article:not([hidden])');
document.getElementById('shown').textContent=
document.querySelectorAll('article[data-paper]:not([hidden])').length}
for(const b of boxes)b.addEventListener('change',filter);filter();
