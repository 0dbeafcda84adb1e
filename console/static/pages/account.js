// One service account: its credentials, roles and API keys.
import { html, nothing } from '../lib/html.js'
import { call, resource } from '../lib/api.js'
import { bindingList, bindingsOf } from '../lib/bindings.js'
import { copyField, copyId } from '../lib/copy.js'
import { frame, modal, toast } from '../lib/dialog.js'
import { field, select } from '../lib/fields.js'
import { download } from '../lib/files.js'
import { fromBase64, countOf } from '../lib/format.js'
import { eventsOf, objectActions, yamlView } from '../lib/objects.js'
import { can, missingPermission } from '../lib/perms.js'
import { link } from '../lib/router.js'
import { stateBadge, timeline } from '../lib/status.js'
import { ago } from '../lib/timeago.js'
import { LiveList } from '../lib/watch.js'
import { badge, button, facts, failure, heading, missingObject, tabOf, tabs } from '../lib/widgets.js'
import { newKey } from './newkey.js'
import { newBinding } from './newrole.js'

const plural = 'serviceaccounts'
export const roleAnnotation = 'annotations.cloud.vendor.io/service-account-role'
export const isAdmin = a => a.metadata.annotations?.[roleAnnotation] === 'admin'

const views = [['overview', 'Overview'], ['yaml', 'YAML']]

export function accountDetail(ctx) {
  const { org, signal } = ctx
  const name = ctx.names[0]
  const ofAccount = { selector: `spec.serviceAccountName=${name}` }
  const accounts = new LiveList(resource(org, plural), signal, { selector: `metadata.name=${name}` })
  const lists = {
    keys: new LiveList(resource(org, 'apikeys'), signal, ofAccount),
    bindings: new LiveList(resource(org, 'rolebindings'), signal),
    placements: new LiveList(resource(org, 'serviceaccountbindings'), signal, ofAccount),
  }
  const events = eventsOf(ctx)
  const crumbs = [['Service accounts', link(org, 'accounts')]]
  const missing = () => missingObject(accounts, {
    title: name,
    crumbs,
    denied: 'this service account',
    permission: 'cloud.serviceaccounts.describe',
    empty: {
      icon: 'accounts',
      title: 'The service account does not exist',
      text: 'It may have been deleted.',
      href: link(org, 'accounts'),
      more: 'All service accounts',
    },
  })
  const removalText = () => {
    const n = lists.keys.items.length
    return `Its tokens and ${n ? countOf(n, 'API key') : 'API keys'} become invalid immediately. ` +
      'Role bindings that name it remain; delete them too.'
  }
  return () => {
    const a = accounts.items[0]
    if (!a) return missing()
    a.path = resource(org, plural, name)
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: html`${stateBadge(a)}${isAdmin(a) ? badge('info', 'Administrator') : nothing}`,
        actions: objectActions(a, plural, 'accounts', { removal: { text: removalText() } }),
      })}
      ${tabs(views)}
      ${tabOf(views) === 'yaml' ? yamlView(a) : overview(org, a, lists, events(a))}`
  }
}

function overview(org, a, { keys, bindings, placements }, events) {
  const { name } = a.metadata
  const grantButton = button('Grant a role', {
    icon: 'plus',
    permission: 'cloud.rolebindings.create',
    onclick: () => newBinding(org, { kind: 'ServiceAccount', name }),
  })
  const keyButton = button('New API key', {
    icon: 'plus',
    permission: 'cloud.apikeys.create',
    onclick: () => newKey(org, name),
  })
  return html`
    <div class="grid">
      <div class="c7 stack">
        ${credentialsCard(org, a)}
        <section class="card">
          <header><h2>Roles</h2><span class="actions">${grantButton}</span></header>
          ${rolesView(org, a, bindings)}
        </section>
        <section class="card">
          <header><h2>API keys</h2><span class="actions">${keyButton}</span></header>
          ${keysView(org, keys.items)}
        </section>
        ${placements.items.length ? placementsCard(placements.items) : nothing}
      </div>
      <div class="c5 stack">
        <section class="card"><h2>Timeline</h2>${timeline(a, events)}</section>
        <section class="card">
          <h2>Account</h2>
          ${facts([['Created', ago(a.metadata.creationTimestamp)], ['UID', copyId(a.metadata.uid)]])}
        </section>
      </div>
    </div>`
}

function rolesView(org, a, bindings) {
  const granted = bindingsOf(bindings.items, 'ServiceAccount', a.metadata.name)
  if (bindings.state === 'denied') return html`<p class="muted">${bindings.error.message}</p>`
  if (granted.length) return bindingList(org, granted)
  return html`<p class="muted">${isAdmin(a)
    ? 'An administrator needs no roles.'
    : 'None: the service account has no permissions.'}</p>`
}

const keyRow = (org, k) => html`
  <div>
    <a href=${link(org, 'keys', [k.metadata.name])}>${k.metadata.name}</a>
    <span class="muted small">${k.spec.description}</span>
    <span class="spacer"></span>
    ${stateBadge(k)}
  </div>`

const keysView = (org, keys) => keys.length
  ? html`<div class="rows-list">${keys.map(k => keyRow(org, k))}</div>`
  : html`<p class="muted">None. A program can also use the credentials file.</p>`

const placementRow = b => html`
  <div>
    <span>${b.spec.poolMemberRef.namespace}/${b.spec.poolMemberRef.name}</span>
    <span class="spacer"></span>
    ${stateBadge(b)}
  </div>`

const placementsCard = placements => html`
  <section class="card">
    <h2>Pool members</h2>
    <div class="rows-list">${placements.map(placementRow)}</div>
  </section>`

const decodeFile = data => new TextDecoder().decode(fromBase64(data))
const saveCredentials = (org, name, data) => download(`${org}-${name}.json`, decodeFile(data))

function parseFile(data) {
  try {
    return data && JSON.parse(decodeFile(data))
  } catch {
    return null
  }
}

/** Why the caller does not see the credentials. */
function hiddenReason(org, a) {
  if (!can(org, 'cloud.credentials.describe')) return missingPermission(org, 'cloud.credentials.describe')
  return a.status?.conditions?.[0]?.status === 'True'
    ? 'The credentials are hidden: this service account has permissions that you do not have.'
    : 'The credentials appear when the service account is ready.'
}

function credentialsCard(org, a) {
  const { name } = a.metadata
  const data = a.status?.privateKeyData
  const file = parseFile(data)
  const rotateButton = button('Rotate', {
    icon: 'refresh',
    permission: 'cloud.serviceaccounts.update',
    onclick: () => rotate(org, name),
  })
  const downloadButton = () => button('Download', {
    kind: 'primary',
    icon: 'down',
    onclick: () => saveCredentials(org, name, data),
  })
  const row = (title, value) => html`<div><span class="muted">${title}</span>${copyField(value)}</div>`
  return html`
    <section class="card">
      <header>
        <h2>Credentials</h2>
        <span class="actions">${rotateButton}${data ? downloadButton() : nothing}</span>
      </header>
      ${file ? html`
        <div class="endpoints">
          ${row('Client ID', file.client_id)}
          ${row('Principal', file.client_email)}
          ${row('Issuer', file.issuer_url)}
        </div>` : html`<p class="muted">${hiddenReason(org, a)}</p>`}
    </section>`
}

const overlaps = [['0', 'not at all'], ['3600', 'an hour'], ['86400', 'a day'], ['604800', 'a week']]

/** Creates new credentials. The old ones stay valid for the chosen time. */
function rotate(org, name) {
  const v = { overlap: '86400' }
  let busy = false
  let error = null
  let created = null
  const submit = async ctl => {
    if (created) return
    busy = true
    try {
      const body = { spec: { overlapSeconds: +v.overlap } }
      const { data } = await call('POST', resource(org, plural, name) + '/rotate', { body })
      created = data.status
      toast(`${name} has new credentials.`)
    } catch (e) {
      error = e
    }
    busy = false
    ctl.update()
  }
  const result = () => html`
    <p class="callout ok">
      The new credentials are valid now. Save the file, and give it to the program before the old credentials expire.
    </p>
    <button type="button" class="primary" @click=${() => saveCredentials(org, name, created.privateKeyData)}>
      Download the new file
    </button>`
  const form = ctl => html`
    <p>
      The service account gets a new client ID and secret. Tokens that were issued with the old ones expire together
      with them. API keys stay valid.
    </p>
    ${field('The old credentials stay valid for', select(v, 'overlap', ctl, overlaps))}`
  const buttons = ctl => created
    ? html`<button type="button" @click=${() => ctl.close()}>Close</button>`
    : html`
      <button type="button" @click=${() => ctl.close()}>Cancel</button>
      <button class="primary" ?disabled=${busy}>Rotate</button>`
  const content = ctl => html`<div class="stack">${failure(error)}${created ? result() : form(ctl)}</div>`
  return modal(ctl => frame(ctl, `Rotate the credentials of ${name}`, content(ctl), buttons(ctl),
    { submit: () => submit(ctl) }))
}
