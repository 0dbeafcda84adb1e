// Instances: clusters belong to them, and tokens and API keys are issued for them.
import { html } from '../lib/html.js'
import { resource } from '../lib/api.js'
import { copyField, copyId } from '../lib/copy.js'
import { field, input, namePattern, nameTitle, select } from '../lib/fields.js'
import { LiveList } from '../lib/watch.js'
import { create, eventsOf, objectActions, protectButton, yamlView } from '../lib/objects.js'
import { go, link } from '../lib/router.js'
import { protectionBadge, stateBadge, stateOf, timeline } from '../lib/status.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { button, empty, facts, heading, listView, liveIndicator, missingObject, tabOf, tabs } from '../lib/widgets.js'
import { newCluster } from './clusters.js'

const plural = 'messaginginstances'
const credentialsOf = i => [i.spec.auth?.apikey && 'API keys', 'access tokens'].filter(Boolean).join(' and ')

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const instances = new LiveList(resource(ctx.org, plural), ctx.signal)
  const clusters = new LiveList(resource(ctx.org, 'messagingclusters'), ctx.signal)
  const clusterCount = i => clusters.items.filter(c => c.spec.instanceName === i.metadata.name).length
  const addButton = () => button('New instance', {
    kind: 'primary',
    icon: 'plus',
    permission: 'cloud.messaginginstances.create',
    onclick: () => newInstance(ctx.org),
  })
  const columns = [
    { title: 'Name', text: i => i.metadata.name },
    { title: 'State', text: i => stateOf(i)[1], cell: stateBadge, width: '150px' },
    { title: 'Type', text: i => i.spec.type, width: '120px' },
    { title: 'Availability', text: i => i.spec.availabilityMode, width: '120px', wideOnly: true },
    { title: 'Accepts', text: credentialsOf, width: 'minmax(0,1fr)' },
    { title: 'Clusters', text: clusterCount, width: '80px', num: true, wideOnly: true },
    {
      title: 'Age',
      text: i => i.metadata.creationTimestamp,
      cell: i => ago(i.metadata.creationTimestamp),
      width: '96px',
      wideOnly: true,
    },
  ]
  const instanceTable = rows => table({
    rows,
    columns,
    noun: rows.length === 1 ? 'instance' : 'instances',
    label: 'Instances',
    href: i => link(ctx.org, 'instances', [i.metadata.name]),
  })
  const noInstances = () => empty({
    icon: 'instances',
    title: 'No instance yet',
    text: 'Create an instance first: clusters belong to an instance, and API keys are valid for one.',
    action: addButton(),
    command: `kubectl get messaginginstances -n ${ctx.org}`,
  })
  return () => html`
    ${heading({
      title: 'Instances',
      badge: liveIndicator(instances),
      sub: 'Clusters belong to an instance. Tokens and API keys are issued for an instance.',
      actions: addButton(),
    })}
    ${listView(instances, 'instances', 'cloud.messaginginstances.list', rows =>
      rows.length ? instanceTable(rows) : noInstances())}`
}

const types = ['standard', 'dedicated', 'serverless', 'byoc', 'byoc-pro', 'free']

async function newInstance(org) {
  const nameOptions = { required: true, autofocus: true, pattern: namePattern, title: nameTitle }
  const created = await create({
    title: 'New instance',
    org,
    plural,
    values: { name: '', type: 'standard', mode: 'zonal', keys: true },
    view: (v, ctl) => html`
      ${field('Name', input(v, 'name', ctl, nameOptions))}
      <div class="fields">
        ${field('Type', select(v, 'type', ctl, types.map(t => [t])))}
        ${field('Availability', select(v, 'mode', ctl, [['zonal'], ['regional']]))}
      </div>
      <label class="check">
        <input type="checkbox" .checked=${v.keys} @change=${e => { v.keys = e.target.checked }}>
        Accept API keys <small>access tokens are always accepted</small>
      </label>`,
    build: v => ({
      metadata: { name: v.name },
      spec: { type: v.type, availabilityMode: v.mode, auth: v.keys ? { apikey: {} } : { oauth2: {} } },
    }),
  })
  if (created) go(link(org, 'instances', [created.metadata.name]))
}

const views = [['overview', 'Overview'], ['yaml', 'YAML']]

function detail(ctx) {
  const { org, signal } = ctx
  const name = ctx.names[0]
  const instances = new LiveList(resource(org, plural), signal, { selector: `metadata.name=${name}` })
  const clusters = new LiveList(resource(org, 'messagingclusters'), signal, { selector: `spec.instanceName=${name}` })
  const events = eventsOf(ctx)
  const crumbs = [['Instances', link(org, 'instances')]]
  const missing = () => missingObject(instances, {
    title: name,
    crumbs,
    denied: 'this instance',
    permission: 'cloud.messaginginstances.describe',
    empty: {
      icon: 'instances',
      title: 'The instance does not exist',
      text: 'It may have been deleted.',
      href: link(org, 'instances'),
      more: 'All instances',
    },
  })
  return () => {
    const i = instances.items[0]
    if (!i) return missing()
    i.path = resource(org, plural, name)
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: html`${stateBadge(i)}${protectionBadge(i)}`,
        actions: objectActions(i, plural, 'instances', {
          before: protectButton(i, plural),
          removal: removal(clusters.items),
        }),
      })}
      ${tabs(views)}
      ${tabOf(views) === 'yaml' ? yamlView(i) : overview(org, i, clusters.items, events(i))}`
  }
}

/** Query and warning of the deletion. Foreground deletion deletes the clusters first. */
function removal(clusters) {
  if (!clusters.length) {
    return { text: 'API keys that are valid for this instance only are deleted with it. You cannot undo this.' }
  }
  const names = clusters.map(c => html`<code>${c.metadata.name}</code> `)
  return {
    query: '?propagationPolicy=Foreground',
    text: html`
      <p>
        ${clusters.length === 1 ? 'Its cluster is' : `Its ${clusters.length} clusters are`} deleted with it, and so are
        their topics, messages and schemas: ${names}
      </p>
      <p>You cannot undo this.</p>`,
  }
}

const tokenView = auth => auth
  ? html`
    <div class="endpoints">
      <div><span class="muted">Issuer</span>${copyField(auth.oauth2?.issuerURL ?? '')}</div>
      <div><span class="muted">Audience</span>${copyField(auth.oauth2?.audience ?? '')}</div>
    </div>`
  : html`<p class="muted">Not available yet.</p>`

const clusterList = (org, clusters) => clusters.length
  ? html`
    <div class="rows-list">${clusters.map(c => html`
      <div>
        <a href=${link(org, 'clusters', [c.metadata.name])}>${c.metadata.name}</a>
        <span class="spacer"></span>
        ${stateBadge(c)}
      </div>`)}</div>`
  : html`<p class="muted">No cluster yet.</p>`

const specification = i => facts([
  ['Type', i.spec.type],
  ['Availability', i.spec.availabilityMode],
  ['Accepts', credentialsOf(i)],
  ['Pool', i.spec.poolRef?.name],
  i.spec.auth?.oauth2 && ['Token lifetime', `${i.spec.auth.oauth2.tokenLifetimeSeconds} s`],
  ['Created', ago(i.metadata.creationTimestamp)],
  ['UID', copyId(i.metadata.uid)],
])

function overview(org, i, clusters, events) {
  const addCluster = button('New cluster', {
    icon: 'plus',
    permission: 'cloud.messagingclusters.create',
    onclick: () => newCluster(org, i.metadata.name),
  })
  return html`
    <div class="grid">
      <div class="c7 stack">
        <section class="card"><h2>Tokens</h2>${tokenView(i.status?.auth)}</section>
        <section class="card">
          <header><h2>Clusters</h2><span class="actions">${addCluster}</span></header>
          ${clusterList(org, clusters)}
        </section>
        <section class="card"><h2>Specification</h2>${specification(i)}</section>
      </div>
      <section class="card c5"><h2>Timeline</h2>${timeline(i, events)}</section>
    </div>`
}
