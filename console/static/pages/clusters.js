// The list of clusters, and the form that creates one.
import { html, nothing } from '../lib/html.js'
import { apiRoot, get, resource } from '../lib/api.js'
import { copyField } from '../lib/copy.js'
import { field, input, select } from '../lib/fields.js'
import { LiveList } from '../lib/watch.js'
import { create } from '../lib/objects.js'
import { link, go } from '../lib/router.js'
import { stateBadge, stateOf } from '../lib/status.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { button, empty, heading, listView, liveIndicator } from '../lib/widgets.js'
import { clusterDetail } from './cluster.js'

const plural = 'messagingclusters'
const serviceURL = c => c.status?.endpoints?.find(e => e.type === 'service')?.pathURL

export default ctx => ctx.names[0] ? clusterDetail(ctx) : list(ctx)

const columns = [
  {
    title: 'Name',
    text: c => c.metadata.name,
    cell: ({ metadata: { name }, spec: { displayName } }) =>
      html`${name}${displayName ? html` <span class="muted">${displayName}</span>` : nothing}`,
  },
  { title: 'State', text: c => stateOf(c)[1], cell: stateBadge, width: '160px' },
  { title: 'Instance', text: c => c.spec.instanceName, width: '150px' },
  { title: 'Location', text: c => c.spec.location, width: '110px', wideOnly: true },
  {
    title: 'HTTP service URL',
    text: c => serviceURL(c) ?? '',
    cell: c => serviceURL(c) ? copyField(serviceURL(c), new URL(serviceURL(c)).pathname) : '–',
    width: 'minmax(0,1.6fr)',
    wideOnly: true,
  },
  {
    title: 'Age',
    text: c => c.metadata.creationTimestamp,
    cell: c => ago(c.metadata.creationTimestamp),
    width: '96px',
  },
]

function list(ctx) {
  const clusters = new LiveList(resource(ctx.org, plural), ctx.signal)
  const addButton = () => button('New cluster', {
    kind: 'primary',
    icon: 'plus',
    permission: 'cloud.messagingclusters.create',
    onclick: () => newCluster(ctx.org),
  })
  const clusterTable = rows => table({
    rows,
    columns,
    noun: rows.length === 1 ? 'cluster' : 'clusters',
    label: 'Clusters',
    href: c => link(ctx.org, 'clusters', [c.metadata.name]),
  })
  const noClusters = () => empty({
    icon: 'clusters',
    title: 'No cluster yet',
    text: 'Topics belong to a cluster. A cluster belongs to an instance, is ready within seconds, and has its own ' +
      'address.',
    action: addButton(),
    command: `kubectl get messagingclusters -n ${ctx.org}`,
  })
  return () => html`
    ${heading({
      title: 'Clusters',
      badge: liveIndicator(clusters),
      sub: 'Each cluster has its own topics, subscriptions and schemas. Clusters share no data.',
      actions: addButton(),
    })}
    ${listView(clusters, 'clusters', 'cloud.messagingclusters.list', rows =>
      rows.length ? clusterTable(rows) : noClusters())}`
}

/** Creates a cluster with a form, and opens its page. */
export async function newCluster(org, instance = '') {
  const items = path => get(path, { background: true }).then(l => l.items, () => [])
  const [instances, members] = await Promise.all([
    items(resource(org, 'messaginginstances')),
    items(`${apiRoot}/poolmembers`),
  ])
  const instanceNames = instances.map(i => i.metadata.name)
  const locations = [...new Set(members.map(m => m.spec.location))]
  const nameOptions = {
    required: true,
    autofocus: true,
    pattern: '[a-z0-9]([a-z0-9\\-]*[a-z0-9])?',
    maxlength: 63,
    title: 'Lowercase letters, digits and dashes; starts and ends with a letter or digit',
  }
  const created = await create({
    title: 'New cluster',
    org,
    plural,
    values: {
      name: '',
      displayName: '',
      instance: instance || instanceNames[0] || '',
      location: locations[0] ?? 'local',
    },
    view: (v, ctl) => html`
      ${instances.length ? nothing : html`<p class="callout warn">
        There is no instance yet. Create one first: a cluster belongs to an instance.
      </p>`}
      ${field('Name', input(v, 'name', ctl, nameOptions), `Part of the host name: ${v.name || '<name>'}.${org}.…`)}
      ${field('Display name', input(v, 'displayName', ctl, { maxlength: 253 }),
        'Shown next to the name. You can change it later.')}
      <div class="fields">
        ${field('Instance', select(v, 'instance', ctl, instanceNames.map(i => [i])))}
        ${field('Location', select(v, 'location', ctl, locations.map(l => [l])))}
      </div>`,
    build: v => ({
      metadata: { name: v.name },
      spec: {
        instanceName: v.instance,
        location: v.location,
        ...(v.displayName && { displayName: v.displayName }),
        broker: { resourceSpec: { nodeType: 'shared' } },
        storage: { resourceSpec: { nodeType: 'shared' } },
        config: { protocols: { stream: {} } },
      },
    }),
  })
  if (created) go(link(org, 'clusters', [created.metadata.name]))
}
