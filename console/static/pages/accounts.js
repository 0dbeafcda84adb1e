// Service accounts: what programs are to the server.
import { html, nothing } from '../lib/html.js'
import { call, resource } from '../lib/api.js'
import { LiveList } from '../lib/watch.js'
import { go, link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { can, missing } from '../lib/perms.js'
import { fromBase64 } from '../lib/format.js'
import { frame, modal, toast } from '../lib/dialog.js'
import { ago, badge, button, copyField, copyId, denied, download, empty, facts, failure, field, heading, listed, liveMark, loading, state, stateOf, tabOf, tabs, timeline } from '../lib/widgets.js'
import { create, eventsOf, input, namePattern, nameTitle, select, usualActions, yamlView } from '../lib/objects.js'
import { grantsOf, newBinding } from './roles.js'
import { wizard } from './keys.js'

const plural = 'serviceaccounts'
const adminNote = 'annotations.cloud.vendor.io/service-account-role'
const isAdmin = a => a.metadata.annotations?.[adminNote] === 'admin'

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const accounts = new LiveList(resource(ctx.org, plural), ctx.signal)
  const keys = new LiveList(resource(ctx.org, 'apikeys'), ctx.signal)
  const bindings = new LiveList(resource(ctx.org, 'rolebindings'), ctx.signal)
  const make = () => button('New service account', { kind: 'primary', icon: 'plus', permission: 'cloud.serviceaccounts.create', onclick: () => newAccount(ctx.org) })
  const roles = a => isAdmin(a) ? 'administrator' : [...new Set(grantsOf(bindings.items, 'ServiceAccount', a.metadata.name).map(b => b.spec.roleRef.name))].join(', ')
  return () => html`
    ${heading({ title: 'Service accounts', badge: liveMark(accounts), sub: 'A program signs in as a service account. What it may do is given by role bindings.', actions: make() })}
    ${listed(accounts, 'service accounts', 'cloud.serviceaccounts.list', rows => rows.length ? table({
      rows, noun: rows.length === 1 ? 'account' : 'accounts', label: 'Service accounts', href: a => link(ctx.org, 'accounts', [a.metadata.name]),
      columns: [
        { title: 'Name', text: a => a.metadata.name },
        { title: 'State', text: a => stateOf(a)[1], cell: state, width: '130px' },
        { title: 'Roles', text: roles, cell: a => isAdmin(a) ? badge('info', 'Administrator') : roles(a) || html`<span class="muted">none: it may do nothing</span>`, width: 'minmax(0,1.4fr)' },
        { title: 'Keys', text: a => keys.items.filter(k => k.spec.serviceAccountName === a.metadata.name).length, width: '70px', num: true, wide: true },
        { title: 'Age', text: a => a.metadata.creationTimestamp, cell: a => ago(a.metadata.creationTimestamp), width: '96px', wide: true },
      ],
    }) : empty({ icon: 'accounts', title: 'No service account yet', text: 'Make one for each program. It gets a credentials file, and can have API keys.', action: make(), command: `kubectl get serviceaccounts -n ${ctx.org}` }))}`
}

async function newAccount(org) {
  const made = await create({
    title: 'New service account', org, plural, values: { name: '', admin: '' },
    view: (v, ctl) => html`${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: namePattern, title: nameTitle }))}
      <div class="stack tight" role="radiogroup" aria-label="What it may do">
        <label class="choice"><input type="radio" name="admin" value="" .checked=${v.admin === ''} @change=${() => { v.admin = ''; ctl.update() }}><span><b>Nothing yet</b><p>Give it roles afterwards. This is what nearly every program needs.</p></span></label>
        <label class="choice"><input type="radio" name="admin" value="admin" .checked=${v.admin === 'admin'} @change=${() => { v.admin = 'admin'; ctl.update() }}><span><b>Administrator of the organization</b><p>It may do everything in ${org}, and make others. This can be chosen now and never later.</p></span></label></div>`,
    build: v => ({ metadata: { name: v.name, ...(v.admin && { annotations: { [adminNote]: 'admin' } }) } }),
  })
  if (made) go(link(org, 'accounts', [made.metadata.name]))
}

const saveCredentials = (org, name, data) => download(`${org}-${name}.json`, new TextDecoder().decode(fromBase64(data)))

/** New credentials; the old ones go on for a while. */
function rotate(org, name) {
  const v = { overlap: '86400' }
  let busy = false, error = null, made = null
  return modal(ctl => frame(ctl, `Rotate the credentials of ${name}`, html`<div class="stack">${failure(error)}
    ${made ? html`<p class="callout ok">The new credentials are good now. Save the file: give it to the program before the old ones end.</p>
      <button type="button" class="primary" @click=${() => saveCredentials(org, name, made.privateKeyData)}>Download the new file</button>`
      : html`<p>The account gets a new client ID and secret. Tokens that were asked for with the old ones end with them; API keys are not touched.</p>
      ${field('The old credentials go on for', select(v, 'overlap', ctl, [['0', 'not at all'], ['3600', 'an hour'], ['86400', 'a day'], ['604800', 'a week']]))}`}</div>`,
  made ? html`<button type="button" @click=${() => ctl.close()}>Close</button>` : html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button class="primary" ?disabled=${busy}>Rotate</button>`,
  { submit: async () => {
    if (made) return
    busy = true
    try {
      const { data } = await call('POST', resource(org, plural, name) + '/rotate', { body: { spec: { overlapSeconds: +v.overlap } } })
      made = data.status
      toast(`${name} has new credentials.`)
    } catch (e) { error = e }
    busy = false
    ctl.update()
  } }))
}

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const keys = new LiveList(resource(ctx.org, 'apikeys'), ctx.signal, { selector: `spec.serviceAccountName=${name}` })
  const bindings = new LiveList(resource(ctx.org, 'rolebindings'), ctx.signal)
  const placed = new LiveList(resource(ctx.org, 'serviceaccountbindings'), ctx.signal, { selector: `spec.serviceAccountName=${name}` })
  const events = eventsOf(ctx)
  const views = [['overview', 'Overview'], ['yaml', 'YAML']]
  const crumbs = [['Service accounts', link(ctx.org, 'accounts')]]
  return () => {
    const a = found.items[0]
    if (!a) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this account', found.error, 'cloud.serviceaccounts.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'accounts', title: 'There is no such account', text: 'It may have been deleted.', href: link(ctx.org, 'accounts'), more: 'All service accounts' })}`
    }
    a.path = resource(ctx.org, plural, name)
    return html`
      ${heading({
        title: name, crumbs, badge: html`${state(a)}${isAdmin(a) ? badge('info', 'Administrator') : nothing}`,
        actions: usualActions(a, plural, 'accounts', { removal: { text: `Its tokens and ${keys.items.length ? `${keys.items.length} API keys` : 'API keys'} end at once. Role bindings that name it stay; delete them too.` } }),
      })}
      ${tabs(views)}
      ${tabOf(views) === 'yaml' ? yamlView(a) : html`<div class="grid">
        <div class="c7 stack">${credentials(ctx.org, name, a)}
          <section class="card"><header><h2>Roles</h2><span class="actions">${button('Give a role', { icon: 'plus', permission: 'cloud.rolebindings.create', onclick: () => newBinding(ctx.org, { kind: 'ServiceAccount', name }) })}</span></header>
            ${granted(ctx.org, bindings, name, isAdmin(a))}</section>
          <section class="card"><header><h2>API keys</h2><span class="actions">${button('New API key', { icon: 'plus', permission: 'cloud.apikeys.create', onclick: () => wizard(ctx.org, name) })}</span></header>
            ${keys.items.length ? html`<div class="rows-list">${keys.items.map(k => html`<div><a href=${link(ctx.org, 'keys', [k.metadata.name])}>${k.metadata.name}</a><span class="muted small">${k.spec.description}</span><span class="spacer"></span>${state(k)}</div>`)}</div>` : html`<p class="muted">None. A program can also use the credentials file.</p>`}</section>
          ${placed.items.length ? html`<section class="card"><h2>Placed at</h2><div class="rows-list">${placed.items.map(b => html`<div><span>${b.spec.poolMemberRef.namespace}/${b.spec.poolMemberRef.name}</span><span class="spacer"></span>${state(b)}</div>`)}</div></section>` : nothing}</div>
        <div class="c5 stack"><section class="card"><h2>Timeline</h2>${timeline(a, events(a))}</section><section class="card"><h2>Account</h2>${facts([['Created', ago(a.metadata.creationTimestamp)], ['UID', copyId(a.metadata.uid)]])}</section></div></div>`}`
  }
}

function credentials(org, name, a) {
  const data = a.status?.privateKeyData
  let file = null
  try { file = data && JSON.parse(new TextDecoder().decode(fromBase64(data))) } catch { /* not ours */ }
  return html`<section class="card"><header><h2>Credentials</h2><span class="actions">${button('Rotate', { icon: 'refresh', permission: 'cloud.serviceaccounts.update', onclick: () => rotate(org, name) })}
    ${data ? button('Download', { kind: 'primary', icon: 'down', onclick: () => saveCredentials(org, name, data) }) : nothing}</span></header>
    ${file ? html`<div class="endpoints"><div><span class="muted">Client ID</span>${copyField(file.client_id)}</div><div><span class="muted">Principal</span>${copyField(file.client_email)}</div><div><span class="muted">Issuer</span>${copyField(file.issuer_url)}</div></div>`
      : html`<p class="muted">${can(org, 'cloud.credentials.describe') ? a.status?.conditions?.[0]?.status === 'True' ? 'You do not see them: this account may do more than you.' : 'They come with the condition Ready.' : missing(org, 'cloud.credentials.describe')}</p>`}</section>`
}

function granted(org, bindings, name, admin) {
  const mine = grantsOf(bindings.items, 'ServiceAccount', name)
  if (bindings.state === 'denied') return html`<p class="muted">${bindings.error.message}</p>`
  if (!mine.length) return html`<p class="muted">${admin ? 'It is an administrator, and needs none.' : 'None: it may do nothing.'}</p>`
  return html`<div class="rows-list">${mine.map(b => html`<div><a href=${link(org, 'roles', [b.metadata.name])}>${b.spec.roleRef.name}</a><span class="muted small">by ${b.metadata.name}</span><span class="spacer"></span>${state(b)}</div>`)}</div>`
}
