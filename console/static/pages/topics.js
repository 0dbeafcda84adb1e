// The topics of a cluster, by tenant and namespace. The list works with ten thousand topics.
import { html, nothing } from '../lib/html.js'
import { clusterPage } from '../lib/clusterpage.js'
import { poll } from '../lib/watch.js'
import { loader, loaderView } from '../lib/loader.js'
import { parseTopic } from '../lib/names.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { bytes, count, short } from '../lib/format.js'
import { update } from '../lib/store.js'
import { badge, button, empty, heading, loading } from '../lib/widgets.js'
import { newNamespace, newTopic } from './newtopic.js'
import { topicDetail } from './topic.js'

export default clusterPage('topics', 'Topics', ctx => ctx.names.length > 3 ? topicDetail(ctx) : list(ctx))

const maxStats = 40 // topics whose numbers are loaded; a cluster may have a million topics
const maxWithStats = 2000 // longer lists have no numbers
const maxTenants = 300

const byTopic = (a, b) => a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : 0

/** Loads the topics, the tenants, their namespaces, and the numbers of the topics that visible() returns. */
function topicData({ client, signal }, visible) {
  const topics = loader(async o => {
    const response = await client.get(`${client.topics}/topics`, o)
    return response.data.map(t => ({
      ...parseTopic(t.topic_name),
      partitions: t.partitions_count,
      internal: t.is_internal,
      listName: t.topic_name,
    })).sort(byTopic)
  })
  const tenants = loader(o => client.get(`${client.admin}/tenants`, o))
  const namespaces = new Map() // by tenant; namespaces without topics too
  const stats = new Map()

  const loadNamespaces = async tenant => {
    try {
      const url = `${client.admin}/namespaces/${encodeURIComponent(tenant)}`
      const list = await client.get(url, { background: true })
      namespaces.set(tenant, list.map(n => n.split('/')[1]))
    } catch { /* the namespaces of topics are known anyway */ }
    update()
  }
  const statsOf = (t, kind) =>
    client.get(client.topic(t.tenant, t.namespace, t.topic, kind), { background: true })
  const loadStatsOf = async t => {
    const partitioned = '/partitioned-stats?perPartition=false'
    const kinds = t.partitions > 1 ? [partitioned] : ['/stats', partitioned] // one partition may be either
    for (const kind of kinds) {
      try {
        stats.set(t.listName, await statsOf(t, kind))
        return
      } catch { /* the next kind is tried */ }
    }
    stats.set(t.listName, null)
  }
  const loadStats = async () => {
    const list = visible().slice(0, maxStats)
    for (let i = 0; i < list.length && !signal.aborted; i += 4) {
      await Promise.all(list.slice(i, i + 4).map(loadStatsOf))
    }
    data.version++
    update()
  }
  const load = async o => {
    await Promise.all([topics.reload(o), tenants.reload(o)])
    if (topics.data?.length > maxWithStats) return
    await Promise.all((tenants.data ?? []).slice(0, 20).map(loadNamespaces))
    await loadStats()
  }
  const data = { topics, tenants, namespaces, stats, version: 0, loadNamespaces, loadStats, load }
  return data
}

/** Tenants with their namespaces and the number of topics in each. */
function countTopics({ topics, tenants, namespaces }) {
  const out = new Map()
  for (const tenant of (tenants.data ?? []).slice(0, maxTenants)) {
    out.set(tenant, new Map((namespaces.get(tenant) ?? []).map(n => [n, 0])))
  }
  for (const { tenant, namespace } of topics.data ?? []) {
    if (!out.has(tenant)) out.set(tenant, new Map())
    const counts = out.get(tenant)
    counts.set(namespace, (counts.get(namespace) ?? 0) + 1)
  }
  return [...out].sort()
}

const sum = counts => [...counts.values()].reduce((a, b) => a + b, 0)
const backlogOf = s => Object.values(s?.subscriptions ?? {}).reduce((n, sub) => n + sub.msgBacklog, 0)

function list(ctx) {
  const { client, org } = ctx
  const chosen = () => route.query.get('ns') ?? '' // a tenant, tenant/namespace, or "" for all
  let rows = []
  let rowsKey = {}
  /** The topics of the chosen namespace. The array stays the same until something changes. */
  const visible = () => {
    const all = data.topics.data
    const key = `${data.version} ${chosen()} ${route.query.get('internal')}`
    if (rowsKey.all !== all || rowsKey.key !== key) {
      rowsKey = { all, key }
      const within = t => !chosen() || chosen() === t.tenant || chosen() === `${t.tenant}/${t.namespace}`
      rows = (all ?? []).filter(t => within(t) && (!t.internal || route.query.has('internal')))
    }
    return rows
  }
  const data = topicData(ctx, visible)
  const { topics, stats } = data
  poll(() => data.load({ background: topics.state !== 'loading' }), 10000, ctx.signal)

  const choose = ns => {
    setQuery({ ns, q: '' })
    const tenant = ns.split('/')[0]
    if (tenant && !data.namespaces.has(tenant)) data.loadNamespaces(tenant)
    data.loadStats()
  }
  const branch = (ns, text, n, nested) => {
    const onclick = e => {
      e.preventDefault()
      choose(ns)
    }
    return html`
      <li class=${nested ? 'deep' : ''}>
        <a href=${link(org, 'topics', [client.name], { ns })} aria-current=${chosen() === ns ? 'true' : nothing}
          @click=${onclick}><span>${text}</span><small>${count(n)}</small></a>
      </li>`
  }
  const tree = () => {
    const all = countTopics(data)
    const open = chosen().split('/')[0]
    const nested = (tenant, counts) => [...counts].sort().slice(0, 500)
      .map(([namespace, n]) => branch(`${tenant}/${namespace}`, namespace, n, true))
    return html`
      <nav class="tree card" aria-label="Tenants and namespaces">
        <ul>
          ${branch('', 'All topics', topics.data?.length ?? 0)}
          ${all.map(([tenant, counts]) => html`
            ${branch(tenant, tenant, sum(counts))}
            ${all.length <= 5 || tenant === open ? nested(tenant, counts) : nothing}`)}
        </ul>
      </nav>`
  }
  const narrowTree = () => {
    const all = countTopics(data).flatMap(([t, counts]) => [...counts.keys()].sort().map(n => `${t}/${n}`))
    return html`
      <label class="inline-select only-narrow">
        <span class="visually-hidden">Namespace</span>
        <select aria-label="Namespace" @change=${e => choose(e.target.value)}>
          <option value="">All namespaces</option>
          ${all.map(ns => html`<option value=${ns} ?selected=${chosen() === ns}>${ns}</option>`)}
        </select>
      </label>`
  }

  const reload = () => data.load({ background: true })
  const addButton = () => button('New topic', {
    kind: 'primary',
    icon: 'plus',
    permission: 'messaging.topics.create',
    onclick: () => newTopic(ctx, chosen().includes('/') ? chosen() : 'public/default', reload),
  })
  const addNamespace = () => button('New namespace', {
    icon: 'plus',
    permission: 'messaging.namespaces.create',
    onclick: () => newNamespace(ctx, reload),
  })
  const internalOption = () => html`
    <label class="check small">
      <input type="checkbox" .checked=${route.query.has('internal')}
        @change=${e => setQuery({ internal: e.target.checked ? '1' : '' })}>
      internal topics
    </label>`

  const topicTable = (shown, all) => table({
    rows: shown,
    columns: columnsOf(stats, shown.length <= maxWithStats, !!chosen()),
    noun: shown.length === 1 ? 'topic' : 'topics',
    label: 'Topics',
    href: t => link(org, 'topics', [client.name, t.tenant, t.namespace, t.topic]),
    tools: html`${narrowTree()}${all.some(t => t.internal) ? internalOption() : nothing}`,
  })
  const noTopics = () => empty({
    icon: 'topics',
    title: 'No topic yet',
    text: 'A topic keeps messages in order until all its subscriptions have acknowledged them. You see only topics ' +
      'that your role can read.',
    action: addButton(),
    command: 'curl -X PUT -H "Authorization: Bearer $TOKEN" ' +
      `"$FRESHET_SERVER"${client.topic('public', 'default', 'orders')}`,
    href: link(org, 'reference'),
    more: 'API reference',
  })
  const emptyNamespace = () => html`
    ${narrowTree()}
    ${empty({
      icon: 'topics',
      title: `No topic in ${chosen()} yet`,
      text: 'The namespace exists and has no topic that you can see.',
      action: addButton(),
    })}`

  return () => html`
    ${heading({
      title: 'Topics',
      badge: ctx.picker,
      sub: 'Topics contain messages. A topic belongs to a namespace, and a namespace to a tenant.',
      actions: html`${addNamespace()}${addButton()}`,
    })}
    ${loaderView(topics, 'topics', 'messaging.topics.describe', all => {
      if (!all.length) return noTopics()
      const shown = visible()
      return html`
        <div class="beside">
          ${tree()}
          <div>${shown.length ? topicTable(shown, all) : emptyNamespace()}</div>
        </div>`
    }, loading(8))}`
}

function columnsOf(stats, withStats, hideNamespace) {
  const statsOf = t => stats.get(t.listName)
  const number = (title, value, format, width) => ({
    title,
    text: t => value(statsOf(t)) ?? 0,
    cell: t => statsOf(t) ? format(value(statsOf(t))) : '–',
    num: true,
    width,
    labeled: true,
  })
  const columns = [
    {
      title: 'Topic',
      text: t => t.topic,
      cell: t => html`${t.topic}${t.internal ? html` ${badge('', 'internal')}` : nothing}`,
    },
    {
      title: 'Namespace',
      text: t => `${t.tenant}/${t.namespace}`,
      cell: t => html`<span class="muted">${t.tenant}/</span>${t.namespace}`,
      width: 'minmax(0,.6fr)',
      wideOnly: hideNamespace,
    },
    { title: 'Partitions', text: t => t.partitions, num: true, width: '80px', wideOnly: true },
  ]
  if (!withStats) return columns
  return [
    ...columns,
    number('In', s => s?.msgRateIn, n => `${short(n)}/s`, '80px'),
    number('Backlog', backlogOf, count, '84px'),
    number('Stored', s => s?.storageSize, bytes, '90px'),
  ]
}
