// Producing messages to a topic. Payloads can be encoded with the topic's schema or with
// a schema of the registry.
import { html, nothing } from '../lib/html.js'
import { encode } from '../lib/avro.js'
import { parseSchema, sample } from '../lib/avroschema.js'
import { topicSchemas } from '../lib/clusters.js'
import { field, readPairs, textArea } from '../lib/fields.js'
import { bytes } from '../lib/format.js'
import { kafkaName } from '../lib/names.js'
import { curlProduce, parsePayload, payloadBytes, pretty, produceHeaders } from '../lib/payload.js'
import { link, route } from '../lib/router.js'
import { update } from '../lib/store.js'
import { ago } from '../lib/timeago.js'
import { button, failure, loading, requestSnippets } from '../lib/widgets.js'

const plainForms = [['text', 'Text'], ['json', 'JSON'], ['base64', 'Bytes in base64']]

/** The bytes before a value that name its schema in the registry: a zero, then the id. */
const schemaPrefix = id => [0, id >>> 24, id >>> 16 & 255, id >>> 8 & 255, id & 255]

/** The schemas that a payload can have: {id, label, avro, prefix}. */
async function loadSchemas({ client, topic, decoder }) {
  const load = url => client.get(url, { background: true }).catch(() => null)
  const list = []
  const own = await load(`${topicSchemas(client, topic)}/schema`)
  const version = `the topic's schema (version ${own?.version})`
  if (own?.type === 'AVRO') {
    list.push({ id: 'topic', label: `Avro, ${version}`, avro: parseSchema(own.data), prefix: [] })
  }
  if (own?.type === 'JSON') list.push({ id: 'json', label: `JSON, ${version}` })
  for (const subject of [`${kafkaName(topic)}-value`, `${topic.full}-value`]) {
    const s = await load(`${client.registry}/subjects/${encodeURIComponent(subject)}/versions/latest`)
    if (!s || s.schemaType === 'PROTOBUF') continue
    const references = s.schemaType ? [] : await decoder.references(s.references ?? [])
    list.push({
      id: subject,
      label: `${s.schemaType === 'JSON' ? 'JSON' : 'Avro'} of ${subject}, version ${s.version}`,
      avro: s.schemaType ? null : parseSchema(s.schema, references),
      prefix: schemaPrefix(s.id),
    })
  }
  return list
}

export function produceTab(page) {
  const v = { key: '', properties: '', form: '', text: '', error: null, busy: false }
  let schemas = null // null until all are loaded, so that no payload is sent unchecked
  let started = false
  let last = null
  let sent = []

  const schema = () => schemas.find(s => s.id === v.form)
  const setForm = id => {
    v.form = id
    const s = schema()
    if (s) v.text = s.avro ? pretty(sample(s.avro)) : '{}'
  }
  const load = async () => {
    schemas = await loadSchemas(page)
    if (schemas.length && !v.text) setForm(schemas[0].id)
    v.form ||= 'text'
    update()
  }
  const payload = () => {
    const s = schema()
    if (!s) return payloadBytes(v.text, v.form)
    const value = parsePayload(v.text)
    const body = s.avro ? encode(s.avro, value) : new TextEncoder().encode(v.text)
    return Uint8Array.from([...(s.prefix ?? []), ...body])
  }
  const send = async () => {
    const data = payload()
    const message = { key: v.key, properties: readPairs(v.properties) }
    const isText = !schema()?.avro && v.form !== 'base64' && !schema()?.prefix?.length
    const url = page.messages('/message')
    const { headers, entry } = await page.client.call('POST', url, {
      body: isText ? v.text : data,
      contentType: 'application/octet-stream',
      headers: produceHeaders(message),
    })
    last = { ...entry, command: curlProduce(url, { bytes: data, ...message }) }
    const id = headers.get('X-Msg-Message-String-Id')
    sent = [{ id, at: Date.now(), size: data.length }, ...sent].slice(0, 20)
    page.stats.reload()
  }
  const submit = async e => {
    e.preventDefault()
    v.error = null
    v.busy = true
    update()
    try {
      await send()
    } catch (err) {
      v.error = err
    }
    v.busy = false
    update()
  }

  const formSelect = () => {
    const onchange = e => {
      setForm(e.target.value)
      update()
    }
    const options = [...schemas.map(s => [s.id, s.label]), ...plainForms]
    return html`
      <select name="form" @change=${onchange}>${options.map(([id, text]) => html`
        <option value=${id} ?selected=${id === v.form}>${text}</option>`)}</select>`
  }
  const keyInput = () => html`
    <input name="key" autocomplete="off" .value=${v.key} @input=${e => { v.key = e.target.value }}>`
  const formView = () => html`
    <form class="card c7 stack" @submit=${submit}>
      <div class="fields">
        ${field('Key', keyInput(), 'Messages with the same key keep their order, in one partition.')}
        ${field('Payload format', formSelect(),
          schema()?.avro ? 'Write JSON. The browser validates it and encodes it as Avro.' : '')}
      </div>
      ${field('Payload', textArea(v, 'text', { name: 'payload', rows: 10 }))}
      ${field('Properties', textArea(v, 'properties', { rows: 2, placeholder: 'name=value, one per line' }))}
      ${errorView(v.error)}
      <div class="cluster">
        ${button(v.busy ? 'Sending…' : 'Produce message', {
          kind: 'primary',
          icon: 'play',
          type: 'submit',
          permission: 'messaging.topics.produce',
          disabled: v.busy,
        })}
        <span class="muted small">The server responds when the message is stored on disk.</span>
      </div>
    </form>`

  return () => {
    if (!started) {
      started = true
      load()
    }
    if (!schemas) return loading(5)
    return html`
      <div class="grid">
        ${formView()}
        <section class="card c5 stack"><h2>Sent</h2>${sentView(page, sent, last)}</section>
      </div>`
  }
}

/** An error of the server with its advice, or an error of the form as text. */
function errorView(error) {
  if (!error) return nothing
  return error.status !== undefined ? failure(error) : html`<p class="callout bad" role="alert">${error.message}</p>`
}

function sentView(page, sent, last) {
  if (!sent.length) {
    return html`<p class="muted">The ids of the messages that you send appear here, with the request as a command.</p>`
  }
  const row = ({ id, at, size }) => html`
    <div>
      <a href=${link(page.org, 'topics', route.names, { msg: id, from: 'earliest' })}>${id}</a>
      <span class="spacer"></span>
      <span class="muted small">${bytes(size)} · ${ago(at)}</span>
    </div>`
  return html`<div class="rows-list">${sent.map(row)}</div>${last ? requestSnippets(last) : nothing}`
}
