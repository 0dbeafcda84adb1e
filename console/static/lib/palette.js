// The palette that opens a page, an object, a topic or a subject by its name.
import { html } from './html.js'
import { modal } from './dialog.js'
import { icon } from './icons.js'
import { get, resource } from './api.js'
import { clustersOf, dataPlane } from './clusters.js'
import { parseTopic } from './names.js'
import { preferences } from './store.js'
import { go, link, route } from './router.js'

const kinds = [
  ['messagingclusters', 'clusters', 'Cluster'],
  ['messaginginstances', 'instances', 'Instance'],
  ['serviceaccounts', 'accounts', 'Service account'],
  ['apikeys', 'keys', 'API key'],
  ['users', 'users', 'User'],
  ['rolebindings', 'roles', 'Role binding'],
]

async function objects(org, [plural, page, kind]) {
  const list = await get(`${resource(org, plural)}?limit=500`, { background: true })
  return list.items.map(({ metadata: { name } }) => ({ label: name, kind, icon: page, href: link(org, page, [name]) }))
}

const maxClusters = 5
const maxNames = 20000

/**
 * Loads topics and subjects of the cluster that was opened last and of a few others, and
 * calls add(position, entries) for every list.
 */
async function clusterNames(org, add) {
  const last = preferences.get('cluster', '')
  const clusters = await clustersOf(org)
  clusters.sort((a, b) => (b.metadata.name === last) - (a.metadata.name === last))
  await Promise.allSettled(clusters.slice(0, maxClusters).flatMap((cluster, n) => {
    const plane = dataPlane(cluster)
    const load = url => get(url, { audience: plane.audience, background: true })
    const topicEntry = t => {
      const { tenant, namespace, topic } = parseTopic(t.topic_name)
      const href = link(org, 'topics', [plane.name, tenant, namespace, topic])
      return { label: topic, kind: `Topic in ${plane.name}, ${tenant}/${namespace}`, icon: 'topics', href }
    }
    const subjectEntry = subject => {
      const href = link(org, 'schemas', [plane.name, subject])
      return { label: subject, kind: `Subject in ${plane.name}`, icon: 'schemas', href }
    }
    return [
      load(`${plane.topics}/topics`).then(({ data }) =>
        add(2 * n, data.filter(t => !t.is_internal).slice(0, maxNames).map(topicEntry))),
      load(`${plane.registry}/subjects`).then(list =>
        add(2 * n + 1, list.slice(0, maxNames).map(subjectEntry))),
    ]
  }))
}

/** The best matches: equal to the text, starting with it, containing it, of a matching kind. */
function bestMatches(list, words) {
  const ranks = [[], [], [], []]
  const text = words.join(' ')
  for (const entry of list) {
    const label = entry.label.toLowerCase()
    const kind = entry.kind.toLowerCase()
    if (label === text) ranks[0].push(entry)
    else if (words.every(w => label.includes(w))) ranks[label.startsWith(words[0] ?? '') ? 1 : 2].push(entry)
    else if (words.every(w => label.includes(w) || kind.includes(w))) ranks[3].push(entry)
  }
  return ranks.flat().slice(0, 12)
}

let open = false

export async function palette(pages) {
  if (open) return
  open = true
  let text = ''
  let selected = '' // by its URL, so that the selection survives lists that arrive late
  let pending = 0
  let started = false
  const lists = [] // every list has a fixed position, whenever it arrives
  const pageEntries = pages.map(p => ({ label: p.title, kind: 'Page', icon: p.id, href: link(route.org, p.id) }))

  const load = ctl => {
    const add = (position, list) => {
      lists[position] = list
      ctl.update()
    }
    const requests = [
      ...kinds.map(async (kind, position) => add(position, await objects(route.org, kind))),
      clusterNames(route.org, (n, list) => add(kinds.length + n, list)),
    ]
    pending = requests.length
    for (const request of requests) {
      request.catch(() => {}).finally(() => {
        pending--
        ctl.update()
      })
    }
  }

  await modal(ctl => {
    if (!started) {
      started = true
      load(ctl)
    }
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    const matches = bestMatches(words.length ? pageEntries.concat(...lists.filter(Boolean)) : pageEntries, words)
    const index = Math.max(0, matches.findIndex(m => m.href === selected))
    const select = n => {
      selected = matches[n]?.href ?? ''
      ctl.update()
    }
    const choose = match => {
      ctl.close()
      if (match) go(match.href)
    }
    const onkeydown = e => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
        e.preventDefault()
        const step = e.key === 'ArrowDown' ? 1 : matches.length - 1
        select((index + step) % Math.max(1, matches.length))
      }
      if (e.key === 'Enter') {
        e.preventDefault()
        choose(matches[index])
      }
    }
    const oninput = e => {
      text = e.target.value
      selected = ''
      ctl.update()
    }
    const option = (match, n) => html`
      <li id=${`p${n}`} role="option" aria-selected=${n === index} @click=${() => choose(match)}
        @mousemove=${() => { if (index !== n) select(n) }}>
        ${icon(match.icon, 16)}<span>${match.label}</span><small>${match.kind}</small>
      </li>`
    const noMatch = () => html`<li class="none">${pending ? 'Searching…' : `No result for “${text}”.`}</li>`
    return html`
      <div class="palette" @keydown=${onkeydown}>
        <label class="filter">
          ${icon('search')}
          <input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Jump to"
            aria-activedescendant=${`p${index}`} placeholder="Page, object, topic or subject" autocomplete="off"
            spellcheck="false" @input=${oninput}>
        </label>
        <ul id="palette-list" role="listbox" aria-label="Results">
          ${matches.map(option)}
          ${matches.length ? '' : noMatch()}
        </ul>
      </div>`
  }, { className: 'palette-box' })
  open = false
}
