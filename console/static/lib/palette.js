// Jump anywhere: pages at once, objects as they are found.
import { html } from './html.js'
import { modal } from './dialog.js'
import { icon } from './icons.js'
import { get, resource } from './api.js'
import { go, link, route } from './router.js'

/** What can be jumped to besides pages: f(org) gives [{label, kind, href, icon}]. */
export const sources = []
const kinds = [['messagingclusters', 'clusters', 'Cluster'], ['messaginginstances', 'instances', 'Instance'], ['serviceaccounts', 'accounts', 'Service account'], ['apikeys', 'keys', 'API key'], ['users', 'users', 'User'], ['rolebindings', 'roles', 'Role binding']]
for (const [plural, page, kind] of kinds) {
  sources.push(async org => {
    const list = await get(`${resource(org, plural)}?limit=500`, { background: true })
    return list.items.map(o => ({ label: o.metadata.name, kind, icon: page, href: link(org, page, [o.metadata.name]) }))
  })
}

let open = false

export async function palette(pages) {
  if (open) return
  open = true
  let q = '', at = 0, found = []
  const fixed = pages.map(p => ({ label: p.title, kind: 'Page', icon: p.id, href: link(route.org, p.id) }))
  await modal(ctl => {
    if (!ctl.asked) {
      ctl.asked = true
      for (const s of sources) s(route.org).then(list => { found.push(...list); ctl.update() }).catch(() => {})
    }
    const words = q.toLowerCase().split(/\s+/).filter(Boolean)
    const hits = [...fixed, ...(words.length ? found : [])].filter(i => words.every(w => `${i.label} ${i.kind}`.toLowerCase().includes(w))).slice(0, 12)
    at = Math.min(at, Math.max(0, hits.length - 1))
    const choose = i => { ctl.close(); if (i) go(i.href) }
    return html`<div class="palette" @keydown=${e => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { e.preventDefault(); at = (at + (e.key === 'ArrowDown' ? 1 : hits.length - 1)) % Math.max(1, hits.length); ctl.update() }
      if (e.key === 'Enter') { e.preventDefault(); choose(hits[at]) }
    }}>
      <label class="filter">${icon('search')}<input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`p${at}`} aria-label="Jump to" placeholder="Jump to a page or an object" autocomplete="off" spellcheck="false" @input=${e => { q = e.target.value; at = 0; ctl.update() }}></label>
      <ul id="palette-list" role="listbox" aria-label="Results">${hits.map((i, n) => html`<li id=${`p${n}`} role="option" aria-selected=${n === at} @click=${() => choose(i)} @mousemove=${() => { if (at !== n) { at = n; ctl.update() } }}>${icon(i.icon, 16)}<span>${i.label}</span><small>${i.kind}</small></li>`)}
      ${hits.length ? '' : html`<li class="none">Nothing is called “${q}”.</li>`}</ul></div>`
  }, { className: 'palette-box' })
  open = false
}
