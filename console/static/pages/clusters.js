// Clusters: where they answer, what they are made of, and what happened to them.
import { html, nothing } from '../lib/html.js'
import { get, group, patch, resource } from '../lib/api.js'
import { LiveList, poll } from '../lib/watch.js'
import { link, go, route } from '../lib/router.js'
import { table } from '../lib/table.js'
import { bytes, quantity, count } from '../lib/format.js'
import { update } from '../lib/store.js'
import { ago, badge, button, copyField, copyId, copyText, denied, empty, facts, field, heading, listed, liveMark, loading, state, stateOf, tabOf, tabs, timeline } from '../lib/widgets.js'
import { create, eventsOf, input, isProtected, nameTitle, protectedBy, protection, select, usualActions, yamlView } from '../lib/objects.js'
import { pages } from './index.js'

const plural = 'messagingclusters'
const service = c => c.status?.endpoints?.find(e => e.type === 'service')

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const clusters = new LiveList(resource(ctx.org, plural), ctx.signal)
  const add = () => newCluster(ctx.org)
  return () => html`
    ${heading({
      title: 'Clusters', badge: liveMark(clusters), sub: 'A cluster has its own topics, subscriptions and schemas, and shares nothing with the others.',
      actions: button('New cluster', { kind: 'primary', icon: 'plus', permission: 'cloud.messagingclusters.create', onclick: add }),
    })}
    ${listed(clusters, 'clusters', 'cloud.messagingclusters.list', rows => rows.length ? table({
      rows, noun: rows.length === 1 ? 'cluster' : 'clusters', label: 'Clusters', href: c => link(ctx.org, 'clusters', [c.metadata.name]),
      columns: [
        { title: 'Name', text: c => c.metadata.name, cell: c => html`${c.metadata.name}${c.spec.displayName ? html` <span class="muted">${c.spec.displayName}</span>` : nothing}` },
        { title: 'State', text: c => stateOf(c)[1], cell: state, width: '160px' },
        { title: 'Instance', text: c => c.spec.instanceName, width: '150px' },
        { title: 'Location', text: c => c.spec.location, width: '110px', wide: true },
        { title: 'HTTP service URL', text: c => service(c)?.pathURL ?? '', cell: c => service(c) ? copyField(service(c).pathURL, new URL(service(c).pathURL).pathname) : '–', width: 'minmax(0,1.6fr)', wide: true },
        { title: 'Age', text: c => c.metadata.creationTimestamp, cell: c => ago(c.metadata.creationTimestamp), width: '96px' },
      ],
    }) : empty({
      icon: 'clusters', title: 'No cluster yet', text: 'A cluster is where topics live. It belongs to an instance, is ready within seconds, and answers at an address of its own.',
      action: button('New cluster', { kind: 'primary', icon: 'plus', permission: 'cloud.messagingclusters.create', onclick: add }), command: `kubectl get messagingclusters -n ${ctx.org}`,
    }))}`
}

export async function newCluster(org, instance = '') {
  const [instances, members] = await Promise.all([
    get(resource(org, 'messaginginstances'), { background: true }).then(l => l.items, () => []),
    get(`${group}/poolmembers`, { background: true }).then(l => l.items, () => []),
  ])
  const places = [...new Set(members.map(m => m.spec.location))]
  const values = { name: '', displayName: '', instance: instance || instances[0]?.metadata.name || '', location: places[0] ?? 'local' }
  const made = await create({
    title: 'New cluster', org, plural, values,
    view: (v, ctl) => html`
      ${instances.length ? nothing : html`<p class="callout warn">There is no instance yet. Make one first: a cluster belongs to one.</p>`}
      ${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: '[a-z0-9]([a-z0-9\\-]*[a-z0-9])?', maxlength: 63, title: nameTitle }), `It becomes a part of the host name: ${v.name || '<name>'}.${org}.…`)}
      ${field('Display name', input(v, 'displayName', ctl, { maxlength: 253 }), 'For people; it can be changed later.')}
      <div class="fields">${field('Instance', select(v, 'instance', ctl, instances.map(i => [i.metadata.name])))}${field('Location', select(v, 'location', ctl, places.map(p => [p])))}</div>`,
    build: v => ({
      metadata: { name: v.name },
      spec: { instanceName: v.instance, location: v.location, ...(v.displayName && { displayName: v.displayName }), broker: { resourceSpec: { nodeType: 'shared' } }, storage: { resourceSpec: { nodeType: 'shared' } }, config: { protocols: { stream: {} } } },
    }),
  })
  if (made) go(link(org, 'clusters', [made.metadata.name]))
}

const words = { service: 'HTTP service', messages: 'Messages', admin: 'Administration', topics: 'List of topics', registry: 'Schema registry', stream: 'Stream (Kafka)' }

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  let quota = null
  poll(async () => {
    quota = await get(`/api/v1/namespaces/${encodeURIComponent(ctx.org)}/resourcequotas/cluster.${encodeURIComponent(name)}`, { background: true, signal: ctx.signal })
    update()
  }, 5000, ctx.signal)
  const views = [['overview', 'Overview'], ['usage', 'Usage'], ['yaml', 'YAML']]
  const crumbs = [['Clusters', link(ctx.org, 'clusters')]]
  return () => {
    const c = found.items[0]
    if (!c) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this cluster', found.error, 'cloud.messagingclusters.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'clusters', title: 'There is no such cluster', text: `It may have been deleted, or belong to another organization than ${ctx.org}.`, href: link(ctx.org, 'clusters'), more: 'All clusters' })}`
    }
    c.path = resource(ctx.org, plural, name)
    return html`
      ${heading({
        title: name, crumbs, badge: html`${state(c)}${protection(c)}`, sub: c.spec.displayName,
        actions: usualActions(c, plural, 'clusters', {
          before: html`${pages.some(p => p.id === 'topics') ? html`<a class="button" href=${link(ctx.org, 'topics', [name])}>Topics</a>` : nothing}
            ${button(isProtected(c) ? 'Unprotect' : 'Protect', { icon: 'lock', permission: 'cloud.messagingclusters.update', onclick: () => patch(c.path, { metadata: { annotations: { [protectedBy]: isProtected(c) ? null : 'true' } } }) })}`,
          removal: { text: 'Its topics, their messages and its schemas are deleted with it. It cannot be undone.' },
        }),
      })}
      ${tabs(views)}
      ${{ overview: () => overview(c, events(c)), usage: () => usage(quota), yaml: () => yamlView(c) }[tabOf(views)]()}`
  }
}

const overview = (c, events) => html`<div class="grid">
  ${c.metadata.deletionTimestamp ? html`<div class="callout warn"><div><b>It is being deleted</b>, asked for ${ago(c.metadata.deletionTimestamp)}. It waits for ${c.metadata.finalizers?.map(f => html`<code>${f}</code> `)}</div></div>` : nothing}
  <div class="c7 stack">
    <section class="card"><h2>Endpoints</h2>
      ${c.status?.endpoints?.length ? html`<div class="endpoints">${c.status.endpoints.map(e => html`<div><span class="muted">${words[e.type] ?? e.type}</span>${copyField(e.pathURL)}</div>`)}</div>
        <details class="more"><summary class="muted small">The same by host name, where it resolves</summary><div class="endpoints">${c.status.endpoints.map(e => html`<div><span class="muted">${words[e.type] ?? e.type}</span>${copyField(e.url)}</div>`)}</div></details>` : html`<p class="muted">They are known once the cluster runs.</p>`}</section>
    <section class="card"><h2>Specification</h2>${facts([
      ['Instance', html`<a href=${link(route.org, 'instances', [c.spec.instanceName])}>${c.spec.instanceName}</a>`], ['Location', c.spec.location], ['Release channel', c.spec.releaseChannel],
      ['Brokers', `${c.status?.broker?.readyReplicas ?? 0} of ${c.spec.broker?.replicas ?? '–'} ready`], ['Pool member', c.spec.poolMemberRef?.name],
      ['Protocols', Object.keys(c.spec.config?.protocols ?? {}).join(', ') || 'HTTP only'], ['Created', ago(c.metadata.creationTimestamp)], ['Host name', copyText(c.spec.serviceEndpoints?.[0]?.dnsName ?? '–')], ['UID', copyId(c.metadata.uid)],
    ])}</section>
  </div>
  <section class="card c5"><h2>Timeline</h2>${timeline(c, events)}</section></div>`

const inBytes = /bytes/i
export const resourceWords = { clusters: 'Clusters', instances: 'Instances', topics: 'Topics', subscriptions: 'Subscriptions', subjects: 'Subjects', schemaBytes: 'Schemas', storedBytes: 'Stored messages', requestsPerSecond: 'Requests per second', bytesPerSecond: 'Traffic per second' }

/** Limits and usage as bars. */
export const usage = quota => quota ? html`<div class="grid">${Object.keys(quota.status.hard).sort().map(key => {
  const used = quantity(quota.status.used[key]), most = quantity(quota.status.hard[key])
  const part = Math.min(1, used / most), show = inBytes.test(key) ? bytes : count
  return html`<section class="card c4 stack tight"><div class="cluster"><h3>${resourceWords[key] ?? key}</h3><span class="spacer"></span>${part > 0.9 ? badge('bad', 'Nearly full') : part > 0.75 ? badge('warn', 'Filling') : nothing}</div>
    <div class="meter ${part > 0.9 ? 'bad' : part > 0.75 ? 'warn' : ''}" role="meter" aria-label=${resourceWords[key] ?? key} aria-valuenow=${used} aria-valuemin="0" aria-valuemax=${most}><i .style=${`width:${Math.max(part * 100, used > 0 ? 1 : 0)}%`}></i></div>
    <p class="small muted">${show(used)} of ${show(most)}</p></section>`
})}</div>` : loading(3)
