// API keys: made and opened in the browser. The private key is never sent anywhere,
// and is forgotten with the dialog.
import { html, nothing } from '../lib/html.js'
import { call, get, patch, resource } from '../lib/api.js'
import { LiveList } from '../lib/watch.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { newKeyPair, openJWE } from '../lib/jose.js'
import { confirm, frame, modal, toast } from '../lib/dialog.js'
import { ago, badge, button, codeBlock, copyText, denied, download, dropZone, empty, facts, failure, field, heading, listed, liveMark, loading, timeline } from '../lib/widgets.js'
import { eventsOf, input, namePattern, nameTitle, remove, select } from '../lib/objects.js'

const plural = 'apikeys'
const day = 86400000
const is = (k, type) => k.status?.conditions?.find(c => c.type === type)?.status === 'True'
const ended = k => is(k, 'Revoked') || is(k, 'Expired')
const word = k => is(k, 'Revoked') ? 'Revoked' : is(k, 'Expired') ? 'Expired' : is(k, 'Issued') ? 'Issued' : k.status?.conditions?.[0]?.reason ?? 'Pending'
const mark = k => badge(ended(k) ? '' : is(k, 'Issued') ? 'ok' : 'warn', word(k))
const where = k => k.spec.instanceName || 'whole organization'

function expiry(k) {
  const at = k.status?.expiresAt ?? k.spec.expirationTime
  if (!at) return html`<span class="muted">never</span>`
  const left = Date.parse(at) - Date.now()
  return ended(k) ? ago(at) : html`<span class="badge ${left < 7 * day ? 'bad' : left < 30 * day ? 'warn' : ''}">${ago(at)}</span>`
}

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const keys = new LiveList(resource(ctx.org, plural), ctx.signal)
  const add = () => wizard(ctx.org)
  if (route.query.has('new')) { setQuery({ new: '' }); add() }
  const make = () => button('New API key', { kind: 'primary', icon: 'plus', permission: 'cloud.apikeys.create', onclick: add })
  return () => html`
    ${heading({ title: 'API keys', badge: liveMark(keys), sub: 'A key lets a program act as a service account. Its token is encrypted to a key pair of yours; nobody else can read it, this server included.', actions: make() })}
    ${listed(keys, 'API keys', 'cloud.apikeys.list', rows => rows.length ? table({
      rows, noun: rows.length === 1 ? 'key' : 'keys', label: 'API keys', href: k => link(ctx.org, 'keys', [k.metadata.name]), rowClass: k => ended(k) ? 'ended' : '',
      columns: [
        { title: 'Name', text: k => k.metadata.name },
        { title: 'State', text: word, cell: mark, width: '120px' },
        { title: 'Service account', text: k => k.spec.serviceAccountName, width: '150px' },
        { title: 'Good for', text: where, width: '160px', wide: true },
        { title: 'Description', text: k => k.spec.description ?? '', width: 'minmax(0,1.2fr)', wide: true },
        { title: 'Expires', text: k => k.spec.expirationTime ?? '9999', cell: expiry, width: '124px', said: true },
      ],
    }) : empty({ icon: 'keys', title: 'No API key yet', text: 'Make one for a service account: the key pair is made in this browser, and the token is shown to you alone.', action: make(), command: `kubectl get apikeys -n ${ctx.org}` }))}`
}

const lives = [['30', '30 days'], ['90', '90 days'], ['365', 'a year'], ['', 'never']]

/** Makes a key pair here, the API key there, and opens its token here. */
export async function wizard(org, account = '') {
  const names = kind => get(resource(org, kind), { background: true }).then(l => l.items.map(i => i.metadata.name), () => [])
  const [accounts, instances] = await Promise.all([names('serviceaccounts'), names('messaginginstances')])
  const v = { name: '', account: account || accounts[0] || '', instance: instances[0] ?? '', days: '90', description: '', bits: '2048' }
  let step = 'form', doing = '', error = null, pair = null, token = '', saved = false

  const run = async ctl => {
    step = 'working'
    error = null
    const say = text => { doing = text; ctl.update() }
    try {
      say('Making the key pair in this browser…')
      pair = await newKeyPair(+v.bits)
      say('Sending the public half…')
      const { data } = await call('POST', `${resource(org, plural)}?fieldManager=freshet-console`, {
        body: {
          apiVersion: 'cloud.vendor.io/v1alpha1', kind: 'APIKey', metadata: { name: v.name },
          spec: {
            serviceAccountName: v.account, ...(v.instance && { instanceName: v.instance }), ...(v.description && { description: v.description }),
            ...(v.days && { expirationTime: new Date(Date.now() + v.days * day).toISOString().replace(/\.\d+Z/, 'Z') }), encryptionKey: { pem: pair.publicPEM },
          },
        },
      })
      say('Waiting for the token…')
      const jwe = data.status?.encryptedToken?.jwe ?? await issued(org, v.name, ctl.signal)
      say('Opening it here…')
      token = await openJWE(jwe, pair.privatePEM)
      step = 'done'
    } catch (e) {
      error = e
      step = 'form'
    }
    ctl.update()
  }

  const form = ctl => html`
    ${failure(error)}
    ${isSecureContext ? nothing : html`<p class="callout warn">This page did not come over HTTPS, so the browser makes no keys. Open the HTTPS address, or localhost.</p>`}
    ${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: namePattern, title: nameTitle }))}
    <div class="fields">${field('Service account', select(v, 'account', ctl, accounts.map(a => [a])), 'The key can do what this account may do.')}
      ${field('Good for', select(v, 'instance', ctl, [...instances.map(i => [i, `Instance ${i}`]), ['', 'The whole organization']]), v.instance ? 'Topics and schemas of this instance only.' : 'The resource API too: take care.')}</div>
    <div class="fields">${field('Expires after', select(v, 'days', ctl, lives))}${field('Key size', select(v, 'bits', ctl, [['2048', 'RSA 2048'], ['3072', 'RSA 3072'], ['4096', 'RSA 4096']]))}</div>
    ${field('Description', input(v, 'description', ctl, { maxlength: 1024, placeholder: 'Where it is used' }))}`

  const working = () => html`<div class="empty plain" role="status"><div class="spinner"></div><h2>${doing}</h2><p>The private key stays in this browser.</p></div>`

  const done = () => html`
    <p class="callout ok"><span><b>${v.name} is issued.</b> The token is shown this once. Whoever loses it and the private key has lost it: nobody can read it again.</span></p>
    <div class="field"><span>Token</span>${codeBlock(token, 'Token', 'wrap')}</div>
    <div class="cluster">
      <button type="button" @click=${() => { saved = true; download(`${org}-${v.name}.env`, `FRESHET_URL=${location.origin}\nFRESHET_TOKEN=${token}\n`, 'text/plain') }}>Download .env</button>
      <button type="button" @click=${() => { saved = true; download(`${org}-${v.name}.pem`, pair.privatePEM, 'application/x-pem-file') }}>Save the private key</button></div>
    <div class="field"><span>Use it</span>${codeBlock(`TOKEN=…   # the token above\ncurl -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/octet-stream' --data 'hello' \\\n  ${location.origin}/clusters/${org}/CLUSTER/admin/rest/topics/v1/public/default/TOPIC/message`, 'How to use it')}</div>`

  const asked = await modal(ctl => frame(ctl, { form: 'New API key', working: 'New API key', done: 'Your new API key' }[step],
    html`<div class="stack">${step === 'form' ? form(ctl) : step === 'working' ? working() : done()}</div>`,
    step === 'form' ? html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button class="primary" ?disabled=${!isSecureContext}>Make the key</button>`
      : step === 'done' ? html`<button type="button" class="primary" @click=${() => ctl.close(v.name)}>${saved ? 'Done' : 'I have the token'}</button>` : nothing,
    { submit: e => { if (step === 'form' && e.target.reportValidity()) run(ctl) } }), { className: 'wide-box', dismissable: false })
  pair = null
  token = ''
  return asked
}

/** The encrypted token of a key that is issued a moment later. */
function issued(org, name, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The key is not issued yet. Open it from the list when it is: the private key is lost with this dialog, so make another one.')), 20000)
    signal.addEventListener('abort', () => reject(new DOMException('closed', 'AbortError')))
    new LiveList(resource(org, plural), signal, {
      selector: `metadata.name=${name}`, onchange: l => { const jwe = l.items[0]?.status?.encryptedToken?.jwe; if (jwe) { clearTimeout(timer); resolve(jwe) } },
    })
  })
}

/** Opens the token of a key that exists, with a private key from a file. */
function openExisting(k) {
  let error = null, token = ''
  const take = ctl => async pem => {
    error = null
    try { token = await openJWE(k.status.encryptedToken.jwe, pem) } catch (e) { error = { message: e.message } }
    ctl.update()
  }
  return modal(ctl => frame(ctl, `Open the token of ${k.metadata.name}`, html`<div class="stack">
    <p class="muted">Give the private key of the pair that the API key was made with, as PEM (PKCS #8 or PKCS #1). It is used here and sent nowhere.</p>
    ${failure(error)}
    ${token ? codeBlock(token, 'Token', 'wrap') : html`${dropZone('Drop the private key here, or choose the file', '.pem,.key', take(ctl))}
      ${field('Or paste it', html`<textarea rows="5" spellcheck="false" placeholder="-----BEGIN PRIVATE KEY-----" @change=${e => take(ctl)(e.target.value)}></textarea>`)}`}</div>`,
  html`<button type="button" @click=${() => { token = ''; ctl.close() }}>Close</button>`), { className: 'wide-box' })
}

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  const crumbs = [['API keys', link(ctx.org, 'keys')]]
  return () => {
    const k = found.items[0]
    if (!k) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this API key', found.error, 'cloud.apikeys.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'keys', title: 'There is no such key', text: 'It may have been deleted, or have gone with its service account.', href: link(ctx.org, 'keys'), more: 'All API keys' })}`
    }
    const path = resource(ctx.org, plural, name)
    return html`
      ${heading({
        title: name, crumbs, badge: mark(k), sub: k.spec.description,
        actions: html`${button('Open the token', { icon: 'keys', disabled: !k.status?.encryptedToken?.jwe, title: k.status?.encryptedToken?.jwe ? '' : 'It was made without an encryption key', onclick: () => openExisting(k) })}
          ${button('Revoke', { icon: 'x', kind: 'danger', permission: 'cloud.apikeys.update', disabled: is(k, 'Revoked'), onclick: () => confirm({ title: `Revoke ${name}?`, name, action: 'Revoke', text: 'Every program that uses it is refused from the moment the call returns. A key that was revoked stays so.', run: async () => { await patch(path, { spec: { revoke: true } }); toast(`${name} is revoked.`) } }) })}
          ${button('Delete', { icon: 'trash', kind: 'danger', permission: 'cloud.apikeys.delete', onclick: () => remove(k, plural, 'keys', { text: 'Programs that use it are refused at once, and nothing of it stays to be seen. Revoke it instead to keep a trace.' }) })}`,
      })}
      <div class="grid"><div class="c7 stack"><section class="card"><h2>Key</h2>${facts([
        ['Service account', html`<a href=${link(ctx.org, 'accounts', [k.spec.serviceAccountName])}>${k.spec.serviceAccountName}</a>`], ['Good for', where(k)], ['Expires', expiry(k)],
        ['Issued', ago(k.status?.issuedAt)], k.status?.revokedAt && ['Revoked', ago(k.status.revokedAt)], ['Key ID', k.status?.keyId ? copyText(k.status.keyId) : '–'],
        ['Encrypted with', k.spec.encryptionKey ? 'a key pair of its owner' : 'nothing: the token was in the answer to its creation'],
      ])}</section>
      ${Object.keys(k.spec.customizedMetadata ?? {}).length ? html`<section class="card"><h2>Metadata</h2>${facts(Object.entries(k.spec.customizedMetadata))}</section>` : nothing}</div>
      <section class="card c5"><h2>Timeline</h2>${timeline(k, events(k))}</section></div>`
  }
}
