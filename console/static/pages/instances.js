// Instances: what clusters belong to, and what decides how callers prove who they are.
import { html } from '../lib/html.js'
import { patch, resource } from '../lib/api.js'
import { LiveList } from '../lib/watch.js'
import { go, link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { ago, button, copyField, copyId, denied, empty, facts, field, heading, listed, liveMark, loading, state, stateOf, tabOf, tabs, timeline } from '../lib/widgets.js'
import { create, eventsOf, input, isProtected, namePattern, nameTitle, protectedBy, protection, select, usualActions, yamlView } from '../lib/objects.js'
import { newCluster } from './clusters.js'

const plural = 'messaginginstances'
const accepts = i => [i.spec.auth?.apikey && 'API keys', 'access tokens'].filter(Boolean).join(' and ')

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const instances = new LiveList(resource(ctx.org, plural), ctx.signal)
  const clusters = new LiveList(resource(ctx.org, 'messagingclusters'), ctx.signal)
  const mine = i => clusters.items.filter(c => c.spec.instanceName === i.metadata.name)
  const add = () => newInstance(ctx.org)
  return () => html`
    ${heading({
      title: 'Instances', badge: liveMark(instances), sub: 'An instance holds clusters, and is what tokens and API keys are made for.',
      actions: button('New instance', { kind: 'primary', icon: 'plus', permission: 'cloud.messaginginstances.create', onclick: add }),
    })}
    ${listed(instances, 'instances', 'cloud.messaginginstances.list', rows => rows.length ? table({
      rows, noun: rows.length === 1 ? 'instance' : 'instances', label: 'Instances', href: i => link(ctx.org, 'instances', [i.metadata.name]),
      columns: [
        { title: 'Name', text: i => i.metadata.name },
        { title: 'State', text: i => stateOf(i)[1], cell: state, width: '150px' },
        { title: 'Type', text: i => i.spec.type, width: '120px' },
        { title: 'Availability', text: i => i.spec.availabilityMode, width: '120px', wide: true },
        { title: 'Accepts', text: accepts, width: 'minmax(0,1fr)' },
        { title: 'Clusters', text: i => mine(i).length, width: '80px', num: true, wide: true },
        { title: 'Age', text: i => i.metadata.creationTimestamp, cell: i => ago(i.metadata.creationTimestamp), width: '96px', wide: true },
      ],
    }) : empty({
      icon: 'instances', title: 'No instance yet', text: 'An instance is the first thing to make: clusters belong to one, and API keys are good for one.',
      action: button('New instance', { kind: 'primary', icon: 'plus', permission: 'cloud.messaginginstances.create', onclick: add }), command: `kubectl get messaginginstances -n ${ctx.org}`,
    }))}`
}

async function newInstance(org) {
  const made = await create({
    title: 'New instance', org, plural, values: { name: '', type: 'standard', mode: 'zonal', keys: true },
    view: (v, ctl) => html`
      ${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: namePattern, title: nameTitle }))}
      <div class="fields">${field('Type', select(v, 'type', ctl, ['standard', 'dedicated', 'serverless', 'byoc', 'byoc-pro', 'free'].map(x => [x])))}${field('Availability', select(v, 'mode', ctl, [['zonal'], ['regional']]))}</div>
      <label class="check"><input type="checkbox" .checked=${v.keys} @change=${e => { v.keys = e.target.checked }}> Accept API keys <small>access tokens are accepted anyway</small></label>`,
    build: v => ({ metadata: { name: v.name }, spec: { type: v.type, availabilityMode: v.mode, auth: v.keys ? { apikey: {} } : { oauth2: {} } } }),
  })
  if (made) go(link(org, 'instances', [made.metadata.name]))
}

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const clusters = new LiveList(resource(ctx.org, 'messagingclusters'), ctx.signal, { selector: `spec.instanceName=${name}` })
  const events = eventsOf(ctx)
  const views = [['overview', 'Overview'], ['yaml', 'YAML']]
  const crumbs = [['Instances', link(ctx.org, 'instances')]]
  return () => {
    const i = found.items[0]
    if (!i) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this instance', found.error, 'cloud.messaginginstances.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'instances', title: 'There is no such instance', text: 'It may have been deleted.', href: link(ctx.org, 'instances'), more: 'All instances' })}`
    }
    i.path = resource(ctx.org, plural, name)
    const many = clusters.items.length
    return html`
      ${heading({
        title: name, crumbs, badge: html`${state(i)}${protection(i)}`,
        actions: usualActions(i, plural, 'instances', {
          before: button(isProtected(i) ? 'Unprotect' : 'Protect', { icon: 'lock', permission: 'cloud.messaginginstances.update', onclick: () => patch(i.path, { metadata: { annotations: { [protectedBy]: isProtected(i) ? null : 'true' } } }) }),
          removal: {
            query: many ? '?propagationPolicy=Foreground' : '',
            text: many ? html`<p>Its ${many === 1 ? 'cluster goes' : `${many} clusters go`} with it, and so do their topics, messages and schemas: ${clusters.items.map(c => html`<code>${c.metadata.name}</code> `)}</p><p>It cannot be undone.</p>` : 'The API keys that are good for it alone go with it. It cannot be undone.',
          },
        }),
      })}
      ${tabs(views)}
      ${tabOf(views) === 'yaml' ? yamlView(i) : html`<div class="grid">
        <div class="c7 stack">
          <section class="card"><h2>Tokens</h2>${i.status?.auth ? html`<div class="endpoints">
            <div><span class="muted">Issuer</span>${copyField(i.status.auth.oauth2?.issuerURL ?? '')}</div><div><span class="muted">Audience</span>${copyField(i.status.auth.oauth2?.audience ?? '')}</div></div>` : html`<p class="muted">Known in a moment.</p>`}</section>
          <section class="card"><header><h2>Clusters</h2><span class="actions">${button('New cluster', { icon: 'plus', permission: 'cloud.messagingclusters.create', onclick: () => newCluster(ctx.org, name) })}</span></header>
            ${many ? html`<div class="rows-list">${clusters.items.map(c => html`<div><a href=${link(ctx.org, 'clusters', [c.metadata.name])}>${c.metadata.name}</a><span class="spacer"></span>${state(c)}</div>`)}</div>` : html`<p class="muted">No cluster yet.</p>`}</section>
          <section class="card"><h2>Specification</h2>${facts([['Type', i.spec.type], ['Availability', i.spec.availabilityMode], ['Accepts', accepts(i)], ['Pool', i.spec.poolRef?.name], i.spec.auth?.oauth2 && ['Token lifetime', `${i.spec.auth.oauth2.tokenLifetimeSeconds} s`], ['Created', ago(i.metadata.creationTimestamp)], ['UID', copyId(i.metadata.uid)]])}</section>
        </div>
        <section class="card c5"><h2>Timeline</h2>${timeline(i, events(i))}</section></div>`}`
  }
}
