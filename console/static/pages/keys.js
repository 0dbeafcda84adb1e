// API keys: the list, and one key.
import { html, nothing } from '../lib/html.js'
import { patch, resource } from '../lib/api.js'
import { copyText } from '../lib/copy.js'
import { confirm, toast } from '../lib/dialog.js'
import { eventsOf, remove } from '../lib/objects.js'
import { link, route, setQuery } from '../lib/router.js'
import { timeline } from '../lib/status.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { LiveList } from '../lib/watch.js'
import { badge, button, empty, facts, heading, listView, liveIndicator, missingObject } from '../lib/widgets.js'
import { decryptToken } from './decrypttoken.js'
import { newKey } from './newkey.js'

const plural = 'apikeys'
const day = 86400000
const hasCondition = (k, type) => k.status?.conditions?.some(c => c.type === type && c.status === 'True')
const hasEnded = k => hasCondition(k, 'Revoked') || hasCondition(k, 'Expired')
const scopeText = k => k.spec.instanceName || 'whole organization'

function stateText(k) {
  const state = ['Revoked', 'Expired', 'Issued'].find(type => hasCondition(k, type))
  return state ?? k.status?.conditions?.[0]?.reason ?? 'Pending'
}

function keyState(k) {
  if (hasEnded(k)) return badge('', stateText(k))
  return badge(hasCondition(k, 'Issued') ? 'ok' : 'warn', stateText(k))
}

function expiry(k) {
  const at = k.status?.expiresAt ?? k.spec.expirationTime
  if (!at) return html`<span class="muted">never</span>`
  if (hasEnded(k)) return ago(at)
  const left = Date.parse(at) - Date.now()
  const kind = left < 7 * day ? 'bad' : left < 30 * day ? 'warn' : ''
  return html`<span class="badge ${kind}">${ago(at)}</span>`
}

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

const columns = [
  { title: 'Name', text: k => k.metadata.name },
  { title: 'State', text: stateText, cell: keyState, width: '120px' },
  { title: 'Service account', text: k => k.spec.serviceAccountName, width: '150px' },
  { title: 'Valid for', text: scopeText, width: '160px', wideOnly: true },
  { title: 'Description', text: k => k.spec.description ?? '', width: 'minmax(0,1.2fr)', wideOnly: true },
  { title: 'Expires', text: k => k.spec.expirationTime ?? '9999', cell: expiry, width: '124px', labeled: true },
]

function list(ctx) {
  const keys = new LiveList(resource(ctx.org, plural), ctx.signal)
  const add = () => newKey(ctx.org)
  if (route.query.has('new')) {
    setQuery({ new: '' })
    add()
  }
  const addButton = () => button('New API key', {
    kind: 'primary',
    icon: 'plus',
    permission: 'cloud.apikeys.create',
    onclick: add,
  })
  const keyTable = rows => table({
    rows,
    columns,
    noun: rows.length === 1 ? 'key' : 'keys',
    label: 'API keys',
    href: k => link(ctx.org, 'keys', [k.metadata.name]),
    rowClass: k => hasEnded(k) ? 'ended' : '',
  })
  const noKeys = () => empty({
    icon: 'keys',
    title: 'No API key yet',
    text: 'Create one for a service account. This browser creates the key pair, and only you see the token.',
    action: addButton(),
    command: `kubectl get apikeys -n ${ctx.org}`,
  })
  return () => html`
    ${heading({
      title: 'API keys',
      badge: liveIndicator(keys),
      sub: 'A program authenticates as a service account with an API key. The token is encrypted with your public ' +
        'key: only you can decrypt it, and this server cannot.',
      actions: addButton(),
    })}
    ${listView(keys, 'API keys', 'cloud.apikeys.list', rows => rows.length ? keyTable(rows) : noKeys())}`
}

const revoke = (name, path) => confirm({
  title: `Revoke ${name}?`,
  name,
  action: 'Revoke',
  text: 'The server rejects every program that uses it immediately. You cannot undo this.',
  run: async () => {
    await patch(path, { spec: { revoke: true } })
    toast(`${name} was revoked.`)
  },
})

function actions(k, path) {
  const { name } = k.metadata
  const encrypted = k.status?.encryptedToken?.jwe
  return html`
    ${button('Decrypt the token', {
      icon: 'keys',
      disabled: !encrypted,
      title: encrypted ? '' : 'The key was created without an encryption key',
      onclick: () => decryptToken(k),
    })}
    ${button('Revoke', {
      icon: 'x',
      kind: 'danger',
      permission: 'cloud.apikeys.update',
      disabled: hasCondition(k, 'Revoked'),
      onclick: () => revoke(name, path),
    })}
    ${button('Delete', {
      icon: 'trash',
      kind: 'danger',
      permission: 'cloud.apikeys.delete',
      onclick: () => remove(k, plural, 'keys', {
        text: 'The server rejects every program that uses it immediately, and no record of the key remains. ' +
          'To keep a record, revoke the key instead.',
      }),
    })}`
}

function detail(ctx) {
  const { org } = ctx
  const name = ctx.names[0]
  const keys = new LiveList(resource(org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  const crumbs = [['API keys', link(org, 'keys')]]
  const missing = () => missingObject(keys, {
    title: name,
    crumbs,
    denied: 'this API key',
    permission: 'cloud.apikeys.describe',
    empty: {
      icon: 'keys',
      title: 'The API key does not exist',
      text: 'It may have been deleted, alone or with its service account.',
      href: link(org, 'keys'),
      more: 'All API keys',
    },
  })
  return () => {
    const k = keys.items[0]
    if (!k) return missing()
    const metadata = Object.entries(k.spec.customizedMetadata ?? {})
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: keyState(k),
        sub: k.spec.description,
        actions: actions(k, resource(org, plural, name)),
      })}
      <div class="grid">
        <div class="c7 stack">
          <section class="card"><h2>Key</h2>${keyFacts(org, k)}</section>
          ${metadata.length ? html`<section class="card"><h2>Metadata</h2>${facts(metadata)}</section>` : nothing}
        </div>
        <section class="card c5"><h2>Timeline</h2>${timeline(k, events(k))}</section>
      </div>`
  }
}

function keyFacts(org, k) {
  const account = k.spec.serviceAccountName
  return facts([
    ['Service account', html`<a href=${link(org, 'accounts', [account])}>${account}</a>`],
    ['Valid for', scopeText(k)],
    ['Expires', expiry(k)],
    ['Issued', ago(k.status?.issuedAt)],
    k.status?.revokedAt && ['Revoked', ago(k.status.revokedAt)],
    ['Key ID', k.status?.keyId ? copyText(k.status.keyId) : '–'],
    [
      'Encrypted with',
      k.spec.encryptionKey ? 'the public key of its owner' : 'nothing: the create response had the token',
    ],
  ])
}
