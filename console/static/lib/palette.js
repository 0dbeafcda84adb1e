// Jump anywhere: pages at once, objects as they are found.
import { html } from './html.js'
import { modal } from './dialog.js'
import { icon } from './icons.js'
import { get, resource } from './api.js'
import { clustersOf, dataPlane } from './clusters.js'
import { parseTopic } from './names.js'
import { taste } from './store.js'
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

const mostClusters = 5, mostNames = 20000

/** Topics and subjects, of the cluster that was looked at last and of a few others: add(place, list) as they are found. */
async function inClusters(org, add) {
  const last = taste.get('cluster', '')
  const clusters = (await clustersOf(org)).sort((a, b) => (b.metadata.name === last) - (a.metadata.name === last)).slice(0, mostClusters)
  await Promise.allSettled(clusters.flatMap((c, n) => {
    const at = dataPlane(c), asked = url => get(url, { audience: at.audience, background: true })
    return [
      asked(`${at.topics}/topics`).then(({ data }) => add(2 * n, data.filter(t => !t.is_internal).slice(0, mostNames).map(t => {
        const { tenant, namespace, topic } = parseTopic(t.topic_name)
        return { label: topic, kind: `Topic in ${at.name}, ${tenant}/${namespace}`, icon: 'topics', href: link(org, 'topics', [at.name, tenant, namespace, topic]) }
      }))),
      asked(`${at.registry}/subjects`).then(list => add(2 * n + 1, list.slice(0, mostNames).map(s => ({ label: s, kind: `Subject in ${at.name}`, icon: 'schemas', href: link(org, 'schemas', [at.name, s]) })))),
    ]
  }))
}

/** Those that match, by how well: is what was typed, begins with it, has it, is of such a kind. */
function best(list, words) {
  const ranks = [[], [], [], []], typed = words.join(' ')
  for (const i of list) {
    const label = i.label.toLowerCase()
    if (label === typed) ranks[0].push(i)
    else if (words.every(w => label.includes(w))) ranks[label.startsWith(words[0] ?? '') ? 1 : 2].push(i)
    else if (words.every(w => label.includes(w) || i.kind.toLowerCase().includes(w))) ranks[3].push(i)
  }
  return ranks.flat().slice(0, 12)
}

let open = false

export async function palette(pages) {
  if (open) return
  open = true
  // Lists keep their places however late they come, and what was picked stays picked.
  let q = '', picked = '', looking = 0
  const found = []
  const fixed = pages.map(p => ({ label: p.title, kind: 'Page', icon: p.id, href: link(route.org, p.id) }))
  await modal(ctl => {
    if (!ctl.asked) {
      ctl.asked = true
      const add = (place, list) => { found[place] = list; ctl.update() }
      for (const s of [...sources.map((f, place) => async org => add(place, await f(org))), org => inClusters(org, (n, list) => add(sources.length + n, list))]) {
        looking++
        s(route.org).catch(() => {}).finally(() => { looking--; ctl.update() })
      }
    }
    const words = q.toLowerCase().split(/\s+/).filter(Boolean)
    const hits = best(words.length ? fixed.concat(...found.filter(Boolean)) : fixed, words)
    const at = Math.max(0, hits.findIndex(i => i.href === picked))
    const pick = n => { picked = hits[n]?.href ?? ''; ctl.update() }
    const choose = i => { ctl.close(); if (i) go(i.href) }
    return html`<div class="palette" @keydown=${e => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { e.preventDefault(); pick((at + (e.key === 'ArrowDown' ? 1 : hits.length - 1)) % Math.max(1, hits.length)) }
      if (e.key === 'Enter') { e.preventDefault(); choose(hits[at]) }
    }}>
      <label class="filter">${icon('search')}<input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`p${at}`} aria-label="Jump to" placeholder="Page, object, topic or subject" autocomplete="off" spellcheck="false" @input=${e => { q = e.target.value; picked = ''; ctl.update() }}></label>
      <ul id="palette-list" role="listbox" aria-label="Results">${hits.map((i, n) => html`<li id=${`p${n}`} role="option" aria-selected=${n === at} @click=${() => choose(i)} @mousemove=${() => { if (at !== n) pick(n) }}>${icon(i.icon, 16)}<span>${i.label}</span><small>${i.kind}</small></li>`)}
      ${hits.length ? '' : html`<li class="none">${looking ? 'Looking…' : `Nothing is called “${q}”.`}</li>`}</ul></div>`
  }, { className: 'palette-box' })
  open = false
}
