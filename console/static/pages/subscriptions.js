// Subscriptions of a topic, and the playground: consume, look, acknowledge, as three
// exchanges of HTTP that can be read.
import { html, nothing } from '../lib/html.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { bytes, count, fromBase64, short } from '../lib/format.js'
import { update } from '../lib/store.js'
import { confirm, toast } from '../lib/dialog.js'
import { ago, badge, button, copyField, copyText, denied, empty, facts, failure, field, loading, showAs } from '../lib/widgets.js'
import { input, select } from '../lib/objects.js'
import { form } from '../lib/plane.js'
import { textOf } from '../lib/payload.js'
import { fromHeaders, messageView } from './topic.js'

const name255 = '[\\-=:.\\w]{1,255}'
const move = 'messaging.subscriptions.update or messaging.topics.consume'

/** When that may be said: the publish time of the oldest message that is not acknowledged. */
async function oldestOf(page, sub, partitions) {
  const { at, t } = page
  const ask = async topic => {
    try {
      const { headers } = await at.call('GET', at.topic(t.tenant, t.namespace, topic, `/subscription/${encodeURIComponent(sub)}/position/1`), { bytes: true, background: true, accept: '*/*' })
      return Date.parse(headers.get('X-Pulsar-Publish-Time'))
    } catch { return NaN }
  }
  const all = await Promise.all(partitions ? Array.from({ length: Math.min(partitions, 16) }, (_, i) => ask(`${t.topic}-partition-${i}`)) : [ask(t.topic)])
  const known = all.filter(x => !Number.isNaN(x))
  return known.length ? Math.min(...known) : 0
}

export function subscriptions(page) {
  const { at, org, t, stats } = page
  const path = (sub, rest = '') => page.path(`/subscription/${encodeURIComponent(sub)}${rest}`)
  const oldest = new Map()
  let asking = 0, peeked = null
  const refreshOldest = async () => {
    if (Date.now() - asking < 5000) return
    asking = Date.now()
    for (const [name, s] of Object.entries(stats.data?.subscriptions ?? {}).slice(0, 30)) {
      if (s.msgBacklog > 0) oldest.set(name, await oldestOf(page, name, t.partitions))
      else oldest.delete(name)
    }
    update()
  }
  const create = async () => {
    const v = { name: '', position: 'latest', lease: '', redeliver: '', dead: '' }
    const made = await form({
      title: 'New subscription', values: v,
      view: (v, ctl) => html`${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: name255, title: 'Letters, digits and - = : . _' }))}
        ${field('Starts at', select(v, 'position', ctl, [['latest', 'The end: what is produced from now on'], ['earliest', 'The beginning of what is kept']]))}
        <div class="fields">${field('Lease, seconds', input(v, 'lease', ctl, { type: 'number', min: 1, max: 43200, placeholder: '30' }), 'What is not acknowledged by then comes again.')}${field('Deliveries before the dead letter topic', input(v, 'redeliver', ctl, { type: 'number', min: 1, placeholder: 'never' }))}</div>
        ${v.redeliver ? field('Dead letter topic', input(v, 'dead', ctl, { placeholder: `${t.topic}-${v.name || '<subscription>'}-DLQ` })) : nothing}`,
      run: async v => {
        const more = { ...(v.lease && { ackTimeoutMillis: v.lease * 1000 }), ...(v.redeliver && { deadLetterPolicy: { maxRedeliverCount: Math.max(0, v.redeliver - 1), ...(v.dead && { deadLetterTopic: v.dead }) } }) }
        await at.call('PUT', path(v.name), { body: JSON.stringify(Object.keys(more).length ? { position: v.position, ...more } : v.position), contentType: 'application/json' })
        toast(`${v.name} is created.`)
        return v.name
      },
    })
    if (made) { await stats.again(); setQuery({ sub: made }) }
  }
  const reset = sub => form({
    title: `Move ${sub}`, values: { to: 'earliest', time: '' }, action: 'Move',
    view: (v, ctl) => html`<p>What is before the place counts as acknowledged, what is after it is delivered, again if need be. Leases end.</p>
      ${field('To', select(v, 'to', ctl, [['earliest', 'The beginning of what is kept'], ['latest', 'The end: skip everything'], ['time', 'A time']]))}
      ${v.to === 'time' ? field('Time', input(v, 'time', ctl, { type: 'datetime-local', required: true }), 'Yours, not UTC.') : nothing}`,
    run: async v => {
      if (v.to === 'time') await at.call('POST', path(sub, `/resetcursor/${new Date(v.time).getTime()}`))
      else await at.call('POST', path(sub, '/resetcursor'), { body: JSON.stringify(v.to), contentType: 'application/json' })
      toast(`${sub} is moved.`)
      asking = 0
      stats.again()
    },
  })
  const remove = sub => {
    let force = false
    confirm({
      title: `Delete ${sub}?`, name: sub, text: html`<p>Who consumes by this name is told that it is gone. Messages that nobody else waits for are no longer kept for it.</p><label class="check"><input type="checkbox" @change=${e => { force = e.target.checked }}> Also when somebody consumes right now</label>`,
      run: async () => { await at.call('DELETE', path(sub, force ? '?force=true' : '')); toast(`${sub} is deleted.`); setQuery({ sub: '' }); stats.again() },
    })
  }
  const peek = async (sub, n) => {
    peeked = { sub, n, busy: true }
    update()
    const topic = t.partitions ? `${t.topic}-partition-0` : t.topic
    try {
      const { data, headers } = await at.call('GET', at.topic(t.tenant, t.namespace, topic, `/subscription/${encodeURIComponent(sub)}/position/${n}`), { bytes: true, accept: '*/*' })
      const m = fromHeaders(data, headers, 'X-Pulsar-', `${headers.get('X-Pulsar-Message-ID')}:${t.partitions ? 0 : -1}:0`)
      page.decoder.look(m)
      peeked = { sub, n, m }
    } catch (e) { peeked = { sub, n, error: e } }
    update()
  }
  const add = () => button('New subscription', { kind: 'primary', icon: 'plus', permission: 'messaging.subscriptions.create or messaging.topics.consume', onclick: create })
  const deadOf = (s, name) => s.subscriptionProperties?.maxRedeliverCount != null ? (s.subscriptionProperties.deadLetterTopic || `${t.topic}-${name}-DLQ`) : ''
  const deadLink = dead => { const m = /^(?:persistent:\/\/)?([^/]+)\/([^/]+)\/(.+)$/.exec(dead); return link(org, 'topics', [at.name, ...(m ? m.slice(1) : [t.tenant, t.namespace, dead])], { from: 'earliest' }) }
  const one = (name, s) => html`<section class="card stack">
    <header class="cluster"><h2>${copyText(name)}</h2><span class="spacer"></span>
      ${button('Peek', { permission: 'messaging.topics.consume', onclick: () => peek(name, 1) })}
      ${button('Move…', { icon: 'clock', permission: move, onclick: () => reset(name) })}
      ${button('Delete', { icon: 'trash', kind: 'danger', permission: 'messaging.subscriptions.delete or messaging.topics.consume', onclick: () => remove(name) })}</header>
    ${facts([['Backlog', `${count(s.msgBacklog)} messages, ${bytes(s.backlogSize)}`], ['On lease', count(s.unackedMessages)], ['Oldest', oldest.get(name) ? ago(oldest.get(name)) : '–'], ['Delayed', count(s.msgDelayed)], ['Delivered', `${count(s.msgOutCounter)}, ${short(s.msgRateOut)}/s`], ['Delivered again', count(s.redelivered)], ['Waiting consumers', count(s.waitingConsumers)],
      ['Lease', s.subscriptionProperties?.ackTimeoutMillis ? `${s.subscriptionProperties.ackTimeoutMillis / 1000} s` : '30 s'], ['Dead letters', deadOf(s, name) ? html`<a href=${deadLink(deadOf(s, name))}>${deadOf(s, name)}</a> <span class="muted small">after ${Number(s.subscriptionProperties.maxRedeliverCount) + 1} deliveries</span>` : 'kept and delivered again']])}
    ${peeked?.sub === name ? html`<div class="stack"><div class="cluster"><h3>Message ${peeked.n} of the backlog${t.partitions ? ', partition 0' : ''}</h3><span class="spacer"></span><button ?disabled=${peeked.n <= 1 || peeked.busy} @click=${() => peek(name, peeked.n - 1)}>Before</button><button ?disabled=${peeked.busy || !!peeked.error} @click=${() => peek(name, peeked.n + 1)}>Next</button></div>
      ${peeked.error ? peeked.error.status === 404 ? html`<p class="muted">There is no message at that place.</p>` : failure(peeked.error) : peeked.m ? messageView(page, peeked.m) : loading(2)}</div>` : nothing}</section>`
  return () => {
    if (stats.state !== 'ready') return stats.error ? stats.state === 'denied' ? denied('subscriptions', stats.error, 'messaging.subscriptions.list') : failure(stats.error) : loading()
    refreshOldest()
    const all = Object.entries(stats.data.subscriptions).map(([name, s]) => ({ name, ...s }))
    const groups = Object.entries(stats.data.groups ?? {})
    const chosen = all.find(s => s.name === route.query.get('sub'))
    return html`<div class="stack">
      ${all.length ? html`<div class="cluster"><p class="muted">Each subscription keeps its own account of what was acknowledged.</p><span class="spacer"></span>${add()}</div>${table({
        rows: all, noun: all.length === 1 ? 'subscription' : 'subscriptions', label: 'Subscriptions', href: s => link(org, 'topics', route.names, { tab: 'subscriptions', sub: s.name }), rowClass: s => s === chosen ? 'chosen' : '',
        columns: [
          { title: 'Name', text: s => s.name }, { title: 'Backlog', text: s => s.msgBacklog, cell: s => count(s.msgBacklog), num: true, width: '100px', said: true }, { title: 'On lease', text: s => s.unackedMessages, cell: s => count(s.unackedMessages), num: true, width: '90px', said: true },
          { title: 'Oldest', text: s => oldest.get(s.name) ?? 0, cell: s => oldest.get(s.name) ? ago(oldest.get(s.name)) : '–', width: '110px', said: true }, { title: 'Out', text: s => s.msgRateOut, cell: s => `${short(s.msgRateOut)}/s`, num: true, width: '80px', wide: true },
          { title: 'Dead letters', text: s => deadOf(s, s.name), cell: s => deadOf(s, s.name) ? html`<a href=${deadLink(deadOf(s, s.name))}>${deadOf(s, s.name)}</a>` : '–', width: 'minmax(0,.8fr)', wide: true },
        ],
      })}${chosen ? one(chosen.name, chosen) : nothing}` : empty({ icon: 'groups', title: 'No subscription yet', text: 'A subscription remembers which messages were acknowledged. Any number of programs can consume by one.', action: add(), command: `curl -X PUT -H "Authorization: Bearer $TOKEN" "$BASE_URL"${path('my-subscription')}` })}
      ${groups.length ? html`<section class="card"><h2>Groups of the stream protocol</h2><div class="rows-list">${groups.map(([name, g]) => html`<div><a href=${link(org, 'groups', [at.name, t.tenant, name])}>${name}</a>${badge(g.members ? 'ok' : '', g.state)}<span class="spacer"></span><span class="muted">${count(g.lag)} behind</span></div>`)}</div></section>` : nothing}</div>`
  }
}

// --- playground ---

/** What the two forms of an id say. */
export function explainId(name, base64) {
  const parts = name.split(':')
  const rows = [['ledger', parts[0], 'the topic’s incarnation: never used again'], ['entry', parts[1], 'the place in its partition'], ['partition', parts[2], parts[2] === '-1' ? 'the topic has none' : 'which one'], ['batch', parts[3], 'always 0 here']]
  const fields = []
  try {
    const data = fromBase64(base64)
    for (let i = 0; i < data.length;) {
      const tag = data[i++]
      let v = 0n, shift = 0n
      for (; i < data.length; shift += 7n) { const b = data[i++]; v |= BigInt(b & 127) << shift; if (b < 128) break }
      const n = tag >> 3
      fields.push([{ 1: 'ledgerId', 2: 'entryId', 3: 'partition', 4: 'batch_index', 6: 'batch_size' }[n] ?? `field ${n}`, String(BigInt.asIntN(64, v))])
    }
  } catch { /* shown as it is */ }
  return { rows, fields }
}

export function playground(page) {
  const { at, org, t, stats } = page
  const v = { sub: '', step: 0, error: null, busy: false, exchanges: [], message: null }
  const url = rest => page.messages(`/${encodeURIComponent(v.sub)}${rest}`)
  const exchange = async (title, method, path, o) => {
    v.busy = true
    v.error = null
    update()
    try {
      const r = await at.call(method, path, { bytes: true, accept: '*/*', ...o })
      v.exchanges = [...v.exchanges, { title, entry: r.entry, status: r.status, headers: [...r.headers].filter(([k]) => /^(x-msg|content-(type|length)|x-request)/.test(k)), body: r.data }]
      return r
    } catch (e) { v.error = e; return null } finally { v.busy = false; update() }
  }
  const consume = async () => {
    v.exchanges = []
    v.message = null
    const r = await exchange('1. Consume', 'POST', url('/message'), { body: { timeoutMillis: 1000 } })
    if (r?.status === 200) { v.message = fromHeaders(r.data, r.headers, 'X-Msg-'); page.decoder.look(v.message) } else if (r) v.none = true
    update()
  }
  const ack = async form => { if (await exchange('3. Acknowledge', 'PUT', url('/message'), { body: form === 'string' ? v.message.name : v.message.id, contentType: 'text/plain' })) { v.acked = v.message.id; stats.again() } update() }
  const makeOwn = async () => {
    await at.call('PUT', page.path('/subscription/playground'), { body: '"earliest"', contentType: 'application/json' }).catch(e => { if (e.status !== 409) v.error = e })
    v.sub = 'playground'
    await stats.again()
    update()
  }
  const shownBody = e => { const text = textOf(e.body); return e.body.length ? text != null ? text.slice(0, 2000) : `${e.body.length} bytes` : '' }
  const show = e => html`<div class="http"><pre tabindex="0" aria-label="Request"><b>${e.entry.method} ${e.entry.url}</b>
Authorization: Bearer …${e.entry.contentType ? `\nContent-Type: ${e.entry.contentType}` : ''}${e.entry.body ? `\n\n${e.entry.body}` : ''}</pre>
    <pre tabindex="0" aria-label="Answer"><b class=${e.status < 300 ? 'good' : ''}>${e.status} ${{ 200: 'OK', 204: 'No Content' }[e.status] ?? ''}</b>
${e.headers.map(([k, x]) => `${k}: ${x}`).join('\n')}${shownBody(e) ? `\n\n${shownBody(e)}` : ''}</pre></div>`
  return () => {
    if (!stats.data) return stats.error ? failure(stats.error) : loading()
    const subs = Object.keys(stats.data.subscriptions)
    if (!v.sub && subs.length) v.sub = subs[0]
    if (!subs.length) return empty({ icon: 'play', title: 'Try consuming', text: 'Messages are consumed by a subscription. Make one that begins with the oldest message, and go through consume, look and acknowledge step by step.', action: button('Make the subscription “playground”', { kind: 'primary', permission: 'messaging.subscriptions.create or messaging.topics.consume', onclick: makeOwn }) })
    const first = v.exchanges.find(e => e.title[0] === '1'), third = v.exchanges.find(e => e.title[0] === '3')
    const id = v.message ? explainId(v.message.name, v.message.id) : null
    const done = v.message && v.acked === v.message.id
    return html`<ol class="walk">
      <li class=${first ? 'ok' : ''}><div class="card stack"><h2>Consume</h2><p class="muted">Borrows the next message for 30 seconds. Nobody else of the subscription gets it meanwhile.</p>
        <div class="cluster"><label class="inline-select"><span class="muted small">subscription</span><select name="playground-subscription" aria-label="Subscription" @change=${e => { v.sub = e.target.value; v.exchanges = []; v.message = null; update() }}>${subs.map(s => html`<option ?selected=${s === v.sub}>${s}</option>`)}</select></label>
        ${button('Consume one message', { kind: v.message && !done ? '' : 'primary', icon: 'play', permission: 'messaging.topics.consume', disabled: v.busy, onclick: consume })}<span class="muted small">takes it from those who consume by this subscription</span></div>
        ${first ? show(first) : nothing}${first && !v.message ? html`<p class="callout"><span>204: no message came within a second. <a href=${link(org, 'topics', route.names, { tab: 'produce' })}>Produce one</a>, or move the subscription back.</span></p>` : nothing}</div></li>
      <li class=${v.message ? 'ok' : ''}><div class="card stack"><h2>Read the headers</h2><p class="muted">The body is the payload, and everything else is in <code>X-Msg-</code> headers. The id comes in two forms that mean the same.</p>
        ${v.message ? html`<div class="grid"><div class="c6 stack tight"><h3>String</h3>${copyField(v.message.name)}<dl class="idparts">${id.rows.map(([k, x, text]) => html`<div><dt>${k}</dt><dd><code>${x}</code> <span class="muted small">${text}</span></dd></div>`)}</dl></div>
          <div class="c6 stack tight"><h3>Base64</h3>${copyField(v.message.id)}<dl class="idparts">${id.fields.map(([k, x]) => html`<div><dt>${k}</dt><dd><code>${x}</code></dd></div>`)}</dl><p class="muted small">Pulsar’s MessageIdData in protobuf. Of a message that was delivered before it holds for that delivery only.</p></div></div>
          <details class="more"><summary class="muted small">The payload</summary>${messageView(page, v.message)}</details>` : html`<p class="muted small">Nothing yet.</p>`}</div></li>
      <li class=${done ? 'ok' : ''}><div class="card stack"><h2>Acknowledge</h2><p class="muted">Says that the work is done. Without it the message comes again when the lease has run out.</p>
        <div class="cluster">${button('Acknowledge by base64 id', { kind: v.message && !done ? 'primary' : '', icon: 'check', permission: 'messaging.topics.consume', disabled: !v.message || v.busy, onclick: () => ack('base64') })}${button('by string id', { permission: 'messaging.topics.consume', disabled: !v.message || v.busy, onclick: () => ack('string') })}</div>
        ${third ? show(third) : nothing}${done ? html`<p class="callout ok">Acknowledged, on disk. It will not be delivered to ${v.sub} again.</p>` : nothing}</div></li></ol>
      ${v.error ? failure(v.error) : nothing}${v.exchanges.length ? html`<details class="more"><summary class="muted small">The last request as a command</summary>${showAs(v.exchanges.at(-1).entry)}</details>` : nothing}`
  }
}
