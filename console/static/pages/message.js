// One message: reading it by its id, and its view.
import { html, nothing } from '../lib/html.js'
import { copy, copyField, copyText } from '../lib/copy.js'
import { toast } from '../lib/dialog.js'
import { choice } from '../lib/fields.js'
import { download } from '../lib/files.js'
import { bytes, fromBase64 } from '../lib/format.js'
import { icon } from '../lib/icons.js'
import { curlProduce, payloadForms, payloadView } from '../lib/payload.js'
import { link } from '../lib/router.js'
import { preferences, update } from '../lib/store.js'
import { previewBytes } from '../lib/tail.js'
import { ago } from '../lib/timeago.js'
import { facts } from '../lib/widgets.js'

/** Reads a whole message by its id "ledger:entry:partition:batch". */
export async function fetchMessage({ topic, client }, id) {
  const [ledger, entry, partition] = id.split(':')
  const base = topic.topic.replace(/-partition-\d+$/, '')
  const name = Number(partition) >= 0 ? `${base}-partition-${partition}` : topic.topic
  const url = client.topic(topic.tenant, topic.namespace, name, `/ledger/${ledger}/entry/${entry}`)
  const { data, headers } = await client.call('GET', url, { bytes: true, accept: '*/*' })
  return fromHeaders(data, headers, 'X-Pulsar-', id)
}

function parseBase64JSON(text) {
  try {
    return JSON.parse(new TextDecoder().decode(fromBase64(text)))
  } catch {
    return undefined
  }
}

/** The properties of a message: one header with all of them, or a header for each. */
function propertiesOf(headers, prefix) {
  const encoded = headers.get(prefix + 'Properties')
  if (encoded) return parseBase64JSON(encoded) ?? {}
  const propertyPrefix = `${prefix}Property-`.toLowerCase()
  return Object.fromEntries([...headers]
    .filter(([k]) => k.startsWith(propertyPrefix))
    .map(([k, v]) => [k.slice(propertyPrefix.length), v]))
}

/** The message of a response whose body is the payload and whose headers have the rest. */
export function fromHeaders(data, headers, prefix, id) {
  const header = name => headers.get(prefix + name)
  const number = name => header(name) ? Number(header(name)) : undefined
  const published = header('Publish-Time')
  const eventTime = header('Event-Time')
  return {
    name: id ?? header('Message-String-Id'),
    id: header('Message-Id'),
    bytes: data,
    size: data.length,
    truncated: false,
    isNull: header('Null-Value') === 'true',
    key: header('Partition-Key') ?? undefined,
    keyEncoding: header('Partition-Key-Encoding') ?? undefined,
    properties: propertiesOf(headers, prefix),
    headers: header('Record-Headers') ? parseBase64JSON(header('Record-Headers')) : undefined,
    publishTime: /^\d+$/.test(published) ? Number(published) : Date.parse(published),
    producer: header('Producer-Name') ?? undefined,
    sequence: header('Sequence-Id'),
    schemaVersion: number('Long-Schema-Version'),
    schemaId: number('Schema-Id'),
    eventTime: eventTime ? Date.parse(eventTime) || Number(eventTime) : undefined,
    at: Date.now(),
  }
}

function factsOf(page, m) {
  const keyEncoding = m.keyEncoding ? html` <span class="muted small">${m.keyEncoding}</span>` : nothing
  const schemaId = m.decoded?.id
  const schemaLink = () => link(page.org, 'schemas', [page.client.name], { id: schemaId })
  return facts([
    ['Published', ago(m.publishTime)],
    ['Key', m.key != null ? html`${copyText(m.key)}${keyEncoding}` : 'none'],
    ['Size', bytes(m.size)],
    m.eventTime ? ['Event time', ago(m.eventTime)] : null,
    m.producer ? ['Producer', m.producer] : null,
    ['Sequence', m.sequence],
    m.schemaVersion != null ? ['Schema version', m.schemaVersion] : null,
    schemaId ? ['Schema id', html`<a href=${schemaLink()}>${schemaId}</a>`] : null,
  ])
}

const propertiesView = properties => html`
  <div>
    <h3>Properties</h3>
    <div class="rows-list">${properties.map(([k, v]) => html`
      <div><code>${k}</code><span class="spacer"></span>${copyText(v)}</div>`)}</div>
  </div>`

const idsView = m => html`
  <details class="more">
    <summary class="muted small">Ids</summary>
    <div class="stack tight">${copyField(m.name)}${copyField(m.id)}</div>
  </details>`

const truncationWarning = m => html`
  <p class="callout warn">
    Only the first ${bytes(Math.min(previewBytes, m.bytes.length))} of ${bytes(m.size)} were loaded. Download the
    message to get all of it.
  </p>`

/** A message with its metadata and payload. */
export function messageView(page, m, close) {
  const forms = payloadForms(m)
  const form = forms.find(f => f[0] === preferences.get('payload', ''))?.[0] ?? forms[0][0]
  const chooseForm = id => {
    preferences.set('payload', id)
    update()
  }
  const whole = async () => m.truncated ? fetchMessage(page, m.name) : m
  const showError = e => toast(e.message, 'bad')
  const save = async () => {
    const name = `${page.topic.topic}-${m.name.replace(/:/g, '-')}`
    download(name, (await whole()).bytes, 'application/octet-stream')
  }
  const copyCommand = async button => {
    copy(curlProduce(page.messages('/message'), await whole()), button)
    toast('Copied a command that produces this message again.')
  }
  const properties = Object.entries(m.properties)
  return html`
    <div class="stack">
      <header class="cluster">
        <h2>Message</h2>
        ${copyText(m.name)}
        <span class="spacer"></span>
        ${close ? html`
          <button class="ghost square" aria-label="Close the message" @click=${close}>${icon('x')}</button>` : nothing}
      </header>
      ${factsOf(page, m)}
      ${properties.length ? propertiesView(properties) : nothing}
      <div class="cluster">
        <h3>Payload</h3>
        <span class="spacer"></span>
        ${choice(form, forms, chooseForm, 'Payload as')}
      </div>
      ${m.truncated ? truncationWarning(m) : nothing}
      ${payloadView(m, form)}
      <div class="cluster">
        <button @click=${() => save().catch(showError)}>${icon('down', 16)}Download ${bytes(m.size)}</button>
        <button @click=${e => copyCommand(e.currentTarget).catch(showError)}>${icon('copy', 16)}Copy as curl</button>
      </div>
      ${m.id ? idsView(m) : nothing}
    </div>`
}
