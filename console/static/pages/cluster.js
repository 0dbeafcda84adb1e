// One cluster: its endpoints, its specification, its quotas, its history.
import { html, nothing } from '../lib/html.js'
import { get, resource } from '../lib/api.js'
import { copyField, copyId, copyText } from '../lib/copy.js'
import { LiveList, poll } from '../lib/watch.js'
import { eventsOf, objectActions, protectButton, yamlView } from '../lib/objects.js'
import { quotaPath, quotaView } from '../lib/quotas.js'
import { link, route } from '../lib/router.js'
import { protectionBadge, stateBadge, timeline } from '../lib/status.js'
import { update } from '../lib/store.js'
import { ago } from '../lib/timeago.js'
import { facts, heading, missingObject, tabOf, tabs } from '../lib/widgets.js'

const plural = 'messagingclusters'
const views = [['overview', 'Overview'], ['usage', 'Usage'], ['yaml', 'YAML']]

export function clusterDetail(ctx) {
  const { org, signal } = ctx
  const name = ctx.names[0]
  const clusters = new LiveList(resource(org, plural), signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  let quota = null
  poll(async () => {
    quota = await get(quotaPath(org, `cluster.${name}`), { background: true, signal })
    update()
  }, 5000, signal)
  const crumbs = [['Clusters', link(org, 'clusters')]]
  const missing = () => missingObject(clusters, {
    title: name,
    crumbs,
    denied: 'this cluster',
    permission: 'cloud.messagingclusters.describe',
    empty: {
      icon: 'clusters',
      title: 'The cluster does not exist',
      text: `It may have been deleted, or belong to another organization than ${org}.`,
      href: link(org, 'clusters'),
      more: 'All clusters',
    },
  })
  return () => {
    const c = clusters.items[0]
    if (!c) return missing()
    c.path = resource(org, plural, name)
    const parts = {
      overview: () => overview(c, events(c)),
      usage: () => quotaView(quota),
      yaml: () => yamlView(c),
    }
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: html`${stateBadge(c)}${protectionBadge(c)}`,
        sub: c.spec.displayName,
        actions: objectActions(c, plural, 'clusters', {
          before: html`
            <a class="button" href=${link(org, 'topics', [name])}>Topics</a>
            ${protectButton(c, plural)}`,
          removal: { text: 'Its topics, messages and schemas are deleted with it. You cannot undo this.' },
        }),
      })}
      ${tabs(views)}
      ${parts[tabOf(views)]()}`
  }
}

const deletion = ({ metadata: { deletionTimestamp, finalizers } }) => html`
  <div class="callout warn">
    <div>
      <b>The cluster is being deleted.</b> The deletion was requested ${ago(deletionTimestamp)}.
      It waits for the finalizers ${finalizers?.map(f => html`<code>${f}</code> `)}
    </div>
  </div>`

const endpointNames = {
  service: 'HTTP service',
  messages: 'Messages',
  admin: 'Administration',
  topics: 'Topic list',
  registry: 'Schema registry',
  stream: 'Kafka',
}

const endpointList = (endpoints, key) => html`
  <div class="endpoints">${endpoints.map(e => html`
    <div><span class="muted">${endpointNames[e.type] ?? e.type}</span>${copyField(e[key])}</div>`)}</div>`

const endpointsView = endpoints => endpoints?.length
  ? html`
    ${endpointList(endpoints, 'pathURL')}
    <details class="more">
      <summary class="muted small">By host name, if it resolves</summary>
      ${endpointList(endpoints, 'url')}
    </details>`
  : html`<p class="muted">The endpoints appear when the cluster is running.</p>`

const specification = c => facts([
  ['Instance', html`<a href=${link(route.org, 'instances', [c.spec.instanceName])}>${c.spec.instanceName}</a>`],
  ['Location', c.spec.location],
  ['Release channel', c.spec.releaseChannel],
  ['Brokers', `${c.status?.broker?.readyReplicas ?? 0} of ${c.spec.broker?.replicas ?? '–'} ready`],
  ['Pool member', c.spec.poolMemberRef?.name],
  ['Protocols', Object.keys(c.spec.config?.protocols ?? {}).map(protocolName).join(', ') || 'HTTP only'],
  ['Created', ago(c.metadata.creationTimestamp)],
  ['Host name', copyText(c.spec.serviceEndpoints?.[0]?.dnsName ?? '–')],
  ['UID', copyId(c.metadata.uid)],
])

const protocolName = name => name === 'stream' ? 'Kafka' : name

const overview = (c, events) => html`
  <div class="grid">
    ${c.metadata.deletionTimestamp ? deletion(c) : nothing}
    <div class="c7 stack">
      <section class="card"><h2>Endpoints</h2>${endpointsView(c.status?.endpoints)}</section>
      <section class="card"><h2>Specification</h2>${specification(c)}</section>
    </div>
    <section class="card c5"><h2>Timeline</h2>${timeline(c, events)}</section>
  </div>`
