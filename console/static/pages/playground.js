// The playground: consume a message, read its headers, acknowledge it. Each step shows
// the HTTP request and response.
import { html, nothing } from '../lib/html.js'
import { copyField } from '../lib/copy.js'
import { fromBase64 } from '../lib/format.js'
import { textOf } from '../lib/payload.js'
import { link, route } from '../lib/router.js'
import { update } from '../lib/store.js'
import { button, empty, failure, loading, requestSnippets } from '../lib/widgets.js'
import { fromHeaders, messageView } from './message.js'

const idFields = { 1: 'ledgerId', 2: 'entryId', 3: 'partition', 4: 'batch_index', 6: 'batch_size' }

/** Reads the varint fields of a Protobuf message as [name, value]. */
function parseId(base64) {
  const fields = []
  try {
    const data = fromBase64(base64)
    let i = 0
    while (i < data.length) {
      const number = data[i++] >> 3
      let value = 0n
      for (let shift = 0n; i < data.length; shift += 7n) {
        const b = data[i++]
        value |= BigInt(b & 127) << shift
        if (b < 128) break
      }
      fields.push([idFields[number] ?? `field ${number}`, String(BigInt.asIntN(64, value))])
    }
  } catch { /* not base64: the fields so far are shown */ }
  return fields
}

/** Explains both forms of a message id: the parts of the string, and the fields of the base64 form. */
export function explainId(string, base64) {
  const [ledger, entry, partition, batch] = string.split(':')
  const rows = [
    ['ledger', ledger, 'the id of this topic; it is never reused'],
    ['entry', entry, 'the position in the partition'],
    ['partition', partition, partition === '-1' ? 'the topic has no partitions' : 'the number of the partition'],
    ['batch', batch, 'always 0'],
  ]
  return { rows, fields: parseId(base64) }
}

const shownHeader = /^(x-msg|content-(type|length)|x-request)/

export function playgroundTab(page) {
  const { client, stats } = page
  const v = {
    subscription: '', error: null, busy: false,
    consumed: null, acknowledged: null, // the requests and their responses
    message: null, acknowledgedId: '',
  }
  const url = () => page.messages(`/${encodeURIComponent(v.subscription)}/message`)

  /** Sends a request. Returns it with the response, or null after an error. */
  const exchange = async (method, options) => {
    v.busy = true
    v.error = null
    update()
    try {
      return await client.call(method, url(), { bytes: true, accept: '*/*', ...options })
    } catch (e) {
      v.error = e
      return null
    } finally {
      v.busy = false
      update()
    }
  }
  const reset = () => {
    v.consumed = null
    v.acknowledged = null
    v.message = null
  }
  const consume = async () => {
    reset()
    v.consumed = await exchange('POST', { body: { timeoutMillis: 1000 } })
    if (v.consumed?.status === 200) {
      v.message = fromHeaders(v.consumed.data, v.consumed.headers, 'X-Msg-')
      page.decoder.request(v.message)
    }
    update()
  }
  const acknowledge = async id => {
    v.acknowledged = await exchange('PUT', { body: id, contentType: 'text/plain' })
    if (v.acknowledged) {
      v.acknowledgedId = v.message.id
      stats.reload()
    }
    update()
  }
  const choose = name => {
    v.subscription = name
    reset()
    update()
  }
  const createSubscription = async () => {
    try {
      const options = { body: '"earliest"', contentType: 'application/json' }
      await client.call('PUT', page.path('/subscription/playground'), options)
    } catch (e) {
      if (e.status !== 409) v.error = e
    }
    v.subscription = 'playground'
    await stats.reload()
    update()
  }

  return () => {
    if (!stats.data) return stats.error ? failure(stats.error) : loading()
    const subscriptions = Object.keys(stats.data.subscriptions)
    if (!subscriptions.length) return noSubscription(createSubscription)
    v.subscription ||= subscriptions[0]
    const done = v.message && v.acknowledgedId === v.message.id
    const last = v.acknowledged ?? v.consumed
    return html`
      <ol class="walk">
        ${step(v.consumed, consumeStep(page, v, subscriptions, { consume, choose, done }))}
        ${step(v.message, headersStep(page, v.message))}
        ${step(done, acknowledgeStep(v, { acknowledge, done }))}
      </ol>
      ${failure(v.error)}
      ${last ? html`
        <details class="more">
          <summary class="muted small">The last request as a command</summary>
          ${requestSnippets(last.entry)}
        </details>` : nothing}`
  }
}

const noSubscription = create => empty({
  icon: 'play',
  title: 'Consume a message',
  text: 'Messages are consumed through a subscription. Create one that starts at the oldest message. Then consume a ' +
    'message, read its headers and acknowledge it, step by step.',
  action: button('Create the subscription “playground”', {
    kind: 'primary',
    permission: 'messaging.subscriptions.create or messaging.topics.consume',
    onclick: create,
  }),
})

const step = (done, content) => html`<li class=${done ? 'ok' : ''}><div class="card stack">${content}</div></li>`

/** A request and its response as HTTP. */
function exchangeView({ entry, status, headers, data }) {
  const request = ['Authorization: Bearer …']
  if (entry.contentType) request.push(`Content-Type: ${entry.contentType}`)
  if (entry.body) request.push('', entry.body)
  const response = [...headers].filter(([k]) => shownHeader.test(k)).map(([k, value]) => `${k}: ${value}`)
  if (data.length) response.push('', textOf(data)?.slice(0, 2000) ?? `${data.length} bytes`)
  const statusText = { 200: 'OK', 204: 'No Content' }[status] ?? ''
  const statusLine = html`<b class=${status < 300 ? 'good' : ''}>${status} ${statusText}</b>`
  return html`
    <div class="http">
      <pre tabindex="0" aria-label="Request"><b>${entry.method} ${entry.url}</b>${'\n' + request.join('\n')}</pre>
      <pre tabindex="0" aria-label="Response">${statusLine}${'\n' + response.join('\n')}</pre>
    </div>`
}

function consumeStep(page, v, subscriptions, { consume, choose, done }) {
  const produceLink = link(page.org, 'topics', route.names, { tab: 'produce' })
  const noMessage = html`
    <p class="callout">
      <span>204: no message arrived within a second. <a href=${produceLink}>Produce one</a>, or reset the
        position of the subscription.</span>
    </p>`
  return html`
    <h2>Consume</h2>
    <p class="muted">
      Leases the next message for 30 seconds. Other consumers of the subscription do not get it in this time.
    </p>
    <div class="cluster">
      <label class="inline-select">
        <span class="muted small">subscription</span>
        <select name="playground-subscription" aria-label="Subscription" @change=${e => choose(e.target.value)}>
          ${subscriptions.map(name => html`<option ?selected=${name === v.subscription}>${name}</option>`)}
        </select>
      </label>
      ${button('Consume one message', {
        kind: v.message && !done ? '' : 'primary',
        icon: 'play',
        permission: 'messaging.topics.consume',
        disabled: v.busy,
        onclick: consume,
      })}
      <span class="muted small">other consumers of this subscription will not get the message</span>
    </div>
    ${v.consumed ? exchangeView(v.consumed) : nothing}
    ${v.consumed && !v.message ? noMessage : nothing}`
}

function idView(m) {
  const { rows, fields } = explainId(m.name, m.id)
  return html`
    <div class="grid">
      <div class="c6 stack tight">
        <h3>String</h3>
        ${copyField(m.name)}
        <dl class="idparts">${rows.map(([name, value, text]) => html`
          <div><dt>${name}</dt><dd><code>${value}</code> <span class="muted small">${text}</span></dd></div>`)}</dl>
      </div>
      <div class="c6 stack tight">
        <h3>Base64</h3>
        ${copyField(m.id)}
        <dl class="idparts">${fields.map(([name, value]) => html`
          <div><dt>${name}</dt><dd><code>${value}</code></dd></div>`)}</dl>
        <p class="muted small">
          MessageIdData of Pulsar, encoded in Protobuf. If the message was redelivered, this id is valid for this
          delivery only.
        </p>
      </div>
    </div>`
}

const headersStep = (page, m) => html`
  <h2>Read the headers</h2>
  <p class="muted">
    The body is the payload. Headers that start with <code>X-Msg-</code> have the metadata. The id has two forms
    with the same meaning.
  </p>
  ${m ? html`
    ${idView(m)}
    <details class="more"><summary class="muted small">Payload</summary>${messageView(page, m)}</details>`
    : html`<p class="muted small">No message yet.</p>`}`

function acknowledgeStep(v, { acknowledge, done }) {
  const permission = 'messaging.topics.consume'
  const disabled = !v.message || v.busy
  return html`
    <h2>Acknowledge</h2>
    <p class="muted">
      Confirms that the message is processed. Without an acknowledgement it is redelivered when the lease ends.
    </p>
    <div class="cluster">
      ${button('Acknowledge by base64 id', {
        kind: v.message && !done ? 'primary' : '',
        icon: 'check',
        permission,
        disabled,
        onclick: () => acknowledge(v.message.id),
      })}
      ${button('Acknowledge by string id', { permission, disabled, onclick: () => acknowledge(v.message.name) })}
    </div>
    ${v.acknowledged ? exchangeView(v.acknowledged) : nothing}
    ${done ? html`
      <p class="callout ok">
        The acknowledgement is stored on disk. The message will not be delivered to ${v.subscription} again.
      </p>` : nothing}`
}
