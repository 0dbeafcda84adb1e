// Topics of a cluster: by tenant and namespace, ten thousand of them without waiting.
import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/watch.js'
import { go, link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { bytes, count, short } from '../lib/format.js'
import { update } from '../lib/store.js'
import { toast } from '../lib/dialog.js'
import { badge, button, empty, field, heading, loading } from '../lib/widgets.js'
import { input } from '../lib/objects.js'
import { asked, form, onCluster, parseTopic, shownOr } from '../lib/plane.js'
import { detail } from './topic.js'

export default onCluster('topics', 'Topics', ctx => ctx.names.length > 3 ? detail(ctx) : list(ctx))

const mostStats = 40, mostTenants = 300

function list(ctx) {
  const { at, org } = ctx
  const topics = asked(async o => {
    const { data } = await at.get(`${at.topics}/topics`, o)
    return data.map(t => ({ ...parseTopic(t.topic_name), partitions: t.partitions_count, internal: t.is_internal, listName: t.topic_name })).sort((a, b) => a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : 0)
  })
  const tenants = asked(o => at.get(`${at.admin}/tenants`, o))
  const spaces = new Map() // tenant → its namespaces, those without topics too
  const stats = new Map()
  const chosen = () => route.query.get('ns') ?? ''
  let rows = [], rowsOf = null

  const load = async o => {
    await Promise.all([topics.again(o), tenants.again(o)])
    if (topics.data?.length > 2000) return
    await Promise.all((tenants.data ?? []).slice(0, 20).map(t => namespacesOf(t)))
    await statistics()
  }
  const namespacesOf = async t => {
    try { spaces.set(t, (await at.get(`${at.admin}/namespaces/${encodeURIComponent(t)}`, { background: true })).map(n => n.split('/')[1])) } catch { /* what has topics is known anyway */ }
    update()
  }
  // Numbers of the first topics that are shown; a cluster may have a million.
  const statistics = async () => {
    const wanted = shown().slice(0, mostStats)
    for (let i = 0; i < wanted.length && !ctx.signal.aborted; i += 4) {
      await Promise.all(wanted.slice(i, i + 4).map(async t => {
        try { stats.set(t.listName, await at.get(at.topic(t.tenant, t.namespace, t.topic, t.partitions > 1 ? '/partitioned-stats?perPartition=false' : '/stats'), { background: true })) } catch {
          try { stats.set(t.listName, await at.get(at.topic(t.tenant, t.namespace, t.topic, '/partitioned-stats?perPartition=false'), { background: true })) } catch { stats.set(t.listName, null) }
        }
      }))
    }
    rowsOf = null
    update()
  }
  poll(() => load({ background: topics.state !== 'loading' }), 10000, ctx.signal)

  const shown = () => {
    const key = chosen() + route.query.get('internal')
    if (rowsOf?.data !== topics.data || rowsOf?.key !== key) {
      rowsOf = { data: topics.data, key }
      rows = (topics.data ?? []).filter(t => (!chosen() || `${t.tenant}/${t.namespace}`.startsWith(chosen().includes('/') ? chosen() : chosen() + '/') && (!chosen().includes('/') || `${t.tenant}/${t.namespace}` === chosen())) && (!t.internal || route.query.has('internal')))
    }
    return rows
  }

  const counted = () => {
    const out = new Map((tenants.data ?? []).slice(0, mostTenants).map(t => [t, new Map((spaces.get(t) ?? []).map(n => [n, 0]))]))
    for (const t of topics.data ?? []) {
      if (!out.has(t.tenant)) out.set(t.tenant, new Map())
      const of = out.get(t.tenant)
      of.set(t.namespace, (of.get(t.namespace) ?? 0) + 1)
    }
    return [...out].sort()
  }
  const sum = of => [...of.values()].reduce((a, b) => a + b, 0)
  const choose = ns => { setQuery({ ns, q: '' }); const t = ns.split('/')[0]; if (t && !spaces.has(t)) namespacesOf(t); statistics() }
  const branch = (ns, text, n, deep) => html`<li class=${deep ? 'deep' : ''}><a href=${link(org, 'topics', [at.name], { ns })} aria-current=${chosen() === ns ? 'true' : nothing} @click=${e => { e.preventDefault(); choose(ns) }}><span>${text}</span><small>${count(n)}</small></a></li>`
  const tree = () => {
    const all = counted(), open = chosen().split('/')[0]
    return html`<nav class="tree card" aria-label="Tenants and namespaces"><ul>${branch('', 'All topics', topics.data?.length ?? 0)}
      ${all.map(([t, of]) => html`${branch(t, t, sum(of))}${all.length <= 5 || t === open ? [...of].sort().slice(0, 500).map(([n, k]) => branch(`${t}/${n}`, n, k, true)) : nothing}`)}</ul></nav>`
  }
  const narrowTree = () => html`<label class="inline-select only-narrow"><span class="visually-hidden">Namespace</span><select aria-label="Namespace" @change=${e => choose(e.target.value)}><option value="">All namespaces</option>
    ${counted().flatMap(([t, of]) => [...of.keys()].sort().map(n => html`<option value=${`${t}/${n}`} ?selected=${chosen() === `${t}/${n}`}>${t}/${n}</option>`))}</select></label>`

  const add = () => newTopic(ctx, chosen().includes('/') ? chosen() : 'public/default', () => load({ background: true }))
  const addButton = () => button('New topic', { kind: 'primary', icon: 'plus', permission: 'messaging.topics.create', onclick: add })
  const of = t => stats.get(t.listName)
  const backlog = s => Object.values(s?.subscriptions ?? {}).reduce((n, x) => n + x.msgBacklog, 0)

  return () => html`
    ${heading({
      title: 'Topics', badge: ctx.picker, sub: 'Messages live in topics, topics in namespaces, namespaces in tenants.',
      actions: html`${button('New namespace', { icon: 'plus', permission: 'messaging.namespaces.create', onclick: () => newNamespace(ctx, () => load({ background: true })) })}${addButton()}`,
    })}
    ${shownOr(topics, 'topics', 'messaging.topics.describe', all => {
      const list = shown()
      if (!all.length) return empty({ icon: 'topics', title: 'No topic yet', text: 'A topic keeps messages in order until everybody who subscribes has acknowledged them. You see only topics that your role can read.', action: addButton(), command: `curl -X PUT -H "Authorization: Bearer $TOKEN" "$BASE_URL"${at.topic('public', 'default', 'orders')}`, href: link(org, 'reference'), more: 'The API' })
      return html`<div class="beside">${tree()}<div>${list.length ? table({
        rows: list, noun: list.length === 1 ? 'topic' : 'topics', label: 'Topics', href: t => link(org, 'topics', [at.name, t.tenant, t.namespace, t.topic]),
        tools: html`${narrowTree()}${all.some(t => t.internal) ? html`<label class="check small"><input type="checkbox" .checked=${route.query.has('internal')} @change=${e => setQuery({ internal: e.target.checked ? '1' : '' })}> internal ones</label>` : nothing}`,
        columns: [
          { title: 'Topic', text: t => t.topic, cell: t => html`${t.topic}${t.internal ? html` ${badge('', 'internal')}` : nothing}` },
          { title: 'Namespace', text: t => `${t.tenant}/${t.namespace}`, cell: t => html`<span class="muted">${t.tenant}/</span>${t.namespace}`, width: 'minmax(0,.6fr)', wide: !!chosen() },
          { title: 'Partitions', text: t => t.partitions, num: true, width: '80px', wide: true },
          ...(list.length <= 2000 ? [
            { title: 'In', text: t => of(t)?.msgRateIn ?? 0, cell: t => of(t) ? `${short(of(t).msgRateIn)}/s` : '–', num: true, width: '80px', said: true },
            { title: 'Backlog', text: t => backlog(of(t)), cell: t => of(t) ? count(backlog(of(t))) : '–', num: true, width: '84px', said: true },
            { title: 'Stored', text: t => of(t)?.storageSize ?? 0, cell: t => of(t) ? bytes(of(t).storageSize) : '–', num: true, width: '90px', said: true },
          ] : []),
        ],
      }) : html`${narrowTree()}${empty({ icon: 'topics', title: `Nothing in ${chosen()} yet`, text: 'The namespace is there and has no topic that you may see.', action: addButton() })}`}</div></div>`
    }, loading(8))}`
}

export async function newTopic({ at, org }, ns, done) {
  const values = { ns, name: '', partitions: '0' }
  const made = await form({
    title: 'New topic', values,
    view: (v, ctl) => html`
      ${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, maxlength: 512, placeholder: 'orders' }))}
      <div class="fields">${field('Namespace', input(v, 'ns', ctl, { required: true, pattern: '[^\\/]+\\/[^\\/]+', title: 'tenant/namespace' }), 'tenant/namespace; it has to exist')}
      ${field('Partitions', input(v, 'partitions', ctl, { type: 'number', min: 0, max: 1024, required: true }), '0: without partitions. They can be added later, never taken away.')}</div>`,
    run: async v => {
      const [tenant, namespace] = v.ns.split('/')
      const n = Number(v.partitions)
      await at.call('PUT', at.topic(tenant, namespace, v.name, n ? '/partitions' : ''), n ? { body: String(n), contentType: 'application/json' } : {})
      toast(`${v.name} is created.`)
      return { tenant, namespace, topic: v.name }
    },
  })
  if (made) { done?.(); go(link(org, 'topics', [at.name, made.tenant, made.namespace, made.topic])) }
}

async function newNamespace({ at, org }, done) {
  const made = await form({
    title: 'New namespace', values: { tenant: 'public', namespace: '' },
    view: (v, ctl) => html`<div class="fields">${field('Tenant', input(v, 'tenant', ctl, { required: true, maxlength: 255 }), 'It is made too, when there is none and you may.')}${field('Namespace', input(v, 'namespace', ctl, { required: true, autofocus: true, maxlength: 255 }))}</div>`,
    run: async v => {
      const tenant = `${at.admin}/tenants/${encodeURIComponent(v.tenant)}`
      const known = await at.get(`${at.admin}/tenants`).catch(() => [])
      if (!known.includes(v.tenant)) await at.call('PUT', tenant, { body: { adminRoles: [], allowedClusters: [at.name] } }).catch(e => { if (e.status !== 409) throw e })
      await at.call('PUT', `${at.admin}/namespaces/${encodeURIComponent(v.tenant)}/${encodeURIComponent(v.namespace)}`)
      toast(`${v.tenant}/${v.namespace} is created.`)
      return `${v.tenant}/${v.namespace}`
    },
  })
  if (made) { done(); go(link(org, 'topics', [at.name], { ns: made })) }
}

