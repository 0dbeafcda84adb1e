// One topic: its messages as they come, producing, and the tabs of the other files.
import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/watch.js'
import { go, link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { absolute, bytes, count, fromBase64, short } from '../lib/format.js'
import { icon } from '../lib/icons.js'
import { taste, update } from '../lib/store.js'
import { confirm, toast } from '../lib/dialog.js'
import { ago, badge, button, copy, copyField, copyText, denied, download, empty, facts, failure, field, heading, loading, showAs, tabOf, tabs } from '../lib/widgets.js'
import { asked, choice, readPairs, streamName } from '../lib/plane.js'
import { encode, parseSchema, sample } from '../lib/avro.js'
import { Decoder, bytesOf, curlProduce, forms, payloadView, preview, pretty, produceHeaders } from '../lib/payload.js'
import { Tail, previewBytes, words } from '../lib/tail.js'
import { playground, subscriptions } from './subscriptions.js'
import { schemaTab, settings } from './topicsettings.js'

export function detail(ctx) {
  const [, tenant, namespace, topic] = ctx.names
  const { at, org } = ctx
  const t = { tenant, namespace, topic, full: `persistent://${tenant}/${namespace}/${topic}`, partitions: 0 }
  const page = { ...ctx, t, path: rest => at.topic(tenant, namespace, topic, rest), messages: rest => at.messagesOf(tenant, namespace, topic, rest), decoder: new Decoder(at, t) }
  const stats = page.stats = asked(async o => {
    t.partitions = (await at.get(page.path('/partitions'), { background: true, ...o })).partitions
    return at.get(page.path(t.partitions ? '/partitioned-stats?perPartition=true' : '/stats'), { background: true, ...o })
  })
  poll(() => stats.again(), 3000, ctx.signal)
  const parts = { tail: tailTab(page), produce: produceTab(page), subscriptions: subscriptions(page), playground: playground(page), schema: schemaTab(page), settings: settings(page) }
  const crumbs = [['Topics', link(org, 'topics', [at.name])], [`${tenant}/${namespace}`, link(org, 'topics', [at.name], { ns: `${tenant}/${namespace}` })]]
  const views = () => [['tail', 'Tail'], ['produce', 'Produce'], ['subscriptions', 'Subscriptions', stats.data ? Object.keys(stats.data.subscriptions).length : null], ['playground', 'Playground'], ['schema', 'Schema'], ['settings', 'Settings']]
  const remove = () => {
    let force = false
    confirm({
      title: `Delete ${topic}?`, name: topic, text: html`<p>Its messages, subscriptions and schema are deleted with it. It cannot be undone.</p><label class="check"><input type="checkbox" @change=${e => { force = e.target.checked }}> Also when somebody consumes from it right now</label>`,
      run: async () => {
        await at.call('DELETE', page.path(`${t.partitions ? '/partitions' : ''}${force ? '?force=true' : ''}`))
        toast(`${topic} is deleted.`)
        go(link(org, 'topics', [at.name]))
      },
    })
  }
  return () => {
    if (stats.state === 'denied') return html`${heading({ title: topic, crumbs })}${denied('this topic', stats.error, 'messaging.topics.describe')}`
    if (stats.state === 'gone') return html`${heading({ title: topic, crumbs })}${empty({ icon: 'topics', title: 'There is no such topic', text: 'It may have been deleted.', href: link(org, 'topics', [at.name]), more: 'All topics' })}`
    const s = stats.data
    const now = tabOf(views())
    return html`${heading({
      title: topic, crumbs, badge: html`${t.partitions ? badge('info', `${t.partitions} partitions`) : nothing}`, sub: copyText(t.full),
      actions: button('Delete', { icon: 'trash', kind: 'danger', permission: 'messaging.topics.delete', onclick: remove }),
    })}
    ${stats.error && !s ? failure(stats.error, () => stats.again()) : nothing}
    ${s ? html`<div class="stats slim">${[['In', `${short(s.msgRateIn)}/s`], ['Out', `${short(s.msgRateOut)}/s`], ['Messages in', count(s.msgInCounter), 'since the server started'], ['Stored', bytes(s.storageSize)], ['Backlog', count(Object.values(s.subscriptions).reduce((n, x) => n + x.msgBacklog, 0))], ['Latest', s.lastPublishTimestamp ? ago(s.lastPublishTimestamp) : 'never']].map(([k, v, title]) => html`<div class="card stat" title=${title ?? nothing}><span>${k}</span><b>${v}</b></div>`)}</div>` : nothing}
    ${tabs(views())}${parts[now]()}`
  }
}

// --- tail ---

function tailTab(page) {
  const { at, org, decoder, t, signal } = page
  const matches = m => { const q = (route.query.get('q') ?? '').toLowerCase().trim().split(/\s+/).filter(Boolean); if (!q.length) return true; const text = `${words(m)} ${preview(m)}`.toLowerCase(); return q.every(w => text.includes(w)) }
  const tail = new Tail(at, page.messages('/tail'), signal, matches)
  let begun = false, single = null
  const start = () => {
    const from = route.query.get('from') || 'latest'
    tail.start(/^\d+$/.test(from) ? { since: from } : { from })
  }
  const setFrom = from => { setQuery({ from: from === 'latest' ? '' : from, msg: '' }); start() }
  const inTime = m => Math.max(0, m.at - m.publishTime)
  const latency = m => m.publishTime >= tail.since ? `${inTime(m)} ms` : '–' // what was there before did not come late
  const open = name => setQuery({ msg: route.query.get('msg') === name ? '' : name })
  const selected = () => {
    const name = route.query.get('msg')
    if (!name) return null
    const found = tail.ring.rows.find(m => m.name === name)
    if (found) return found
    if (single?.name !== name) { single = { name }; fetchOne(page, name).then(m => { single = { name, m } }, e => { single = { name, error: e } }).finally(update) }
    return single.m ?? single
  }
  const follow = m => { if (!m.asked) decoder.look(m); return m }
  const startMenu = () => html`<label class="inline-select"><span class="muted small">from</span><select aria-label="Start" @change=${e => setFrom(e.target.value === 'hour' ? String(Date.now() - 3600000) : e.target.value === 'day' ? String(Date.now() - 86400000) : e.target.value)}>
    ${[['latest', 'now'], ['earliest', 'the beginning'], ['hour', 'an hour ago'], ['day', 'a day ago']].map(([id, text]) => html`<option value=${id} ?selected=${(route.query.get('from') || 'latest') === id}>${text}</option>`)}
    ${/^\d+$/.test(route.query.get('from') ?? '') ? html`<option selected value=${route.query.get('from')}>${absolute(Number(route.query.get('from')), taste.get('utc', false))}</option>` : nothing}</select></label>`
  const status = () => {
    const r = tail.ring
    const word = { live: r.paused ? ['warn', 'Paused'] : ['ok', 'Live'], connecting: ['warn', 'Connecting'], waiting: ['warn', 'Reconnecting'], stopped: ['', 'Stopped'] }[tail.state]
    return html`${badge(...word)}<span class="muted small" role="status">${count(r.seen)} seen${r.skipped ? html`, <b>${count(r.skipped)} skipped</b>` : nothing}${r.other ? `, ${count(r.other)} not matching` : ''}${r.held.length ? html`, <b>${count(r.held.length)} waiting</b>` : nothing}</span>`
  }
  const tools = () => html`<span class="cluster">${status()}${startMenu()}
    ${tail.running ? html`<button @click=${() => tail.ring.paused ? tail.resume() : tail.pause()}>${icon(tail.ring.paused ? 'play' : 'pause', 16)}${tail.ring.paused ? 'Resume' : 'Pause'}</button><button @click=${() => tail.stop()}>Stop</button>`
      : html`<button class="primary" @click=${start}>${icon('play', 16)}Start</button>`}
    ${tail.rows.length ? html`<button class="ghost" @click=${() => tail.clear()}>Clear</button>` : nothing}</span>`
  return () => {
    if (!begun) { begun = true; start() }
    if (tail.error && (tail.error.status === 401 || tail.error.status === 403) && !tail.rows.length) return denied('the messages of this topic', tail.error, 'messaging.topics.consume')
    tail.rows.slice(0, 60).forEach(follow)
    const m = selected()
    const rows = tail.rows
    return html`<div class="stack">${tail.error ? failure(tail.error, start) : nothing}${tail.why ? html`<p class="callout warn">${tail.why}</p>` : nothing}
      ${rows.length || m ? nothing : html`<div class="tail-tools">${tools()}</div>`}
      <div class=${m ? 'split' : ''} @click=${e => { const a = e.target.closest('a[data-msg], .rows a'); if (a && !e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); open(new URL(a.href).searchParams.get('msg')) } }}>
      ${rows.length ? table({
        rows, noun: 'messages', label: 'Messages', tools: tools(), href: x => link(org, 'topics', route.names, { msg: x.name, from: route.query.get('from') }), rowClass: x => x === m ? 'chosen' : '',
        columns: [
          { title: 'Published', text: x => x.publishTime, cell: x => html`<span class="mono">${timeOf(x.publishTime)}</span>`, width: '104px', num: false },
          { title: 'Key', text: x => words(x), cell: x => x.key ?? html`<span class="muted">–</span>`, width: m ? 'minmax(0,.55fr)' : 'minmax(0,.35fr)' },
          { title: 'Payload', text: x => preview(x), cell: x => html`<span class="mono small">${preview(x)}</span>`, width: 'minmax(0,1.4fr)' },
          ...(m ? [] : [{ title: 'Properties', text: x => Object.entries(x.properties).map(p => p.join('=')).join(' '), width: 'minmax(0,.5fr)', wide: true }, { title: 'Latency', text: x => inTime(x), cell: latency, num: true, width: '76px', wide: true }]),
          { title: 'Size', text: x => x.size, cell: x => html`${bytes(x.size)}${x.cut ? html` ${icon('warn', 14)}` : nothing}`, num: true, width: '104px', wide: true },
        ],
      }) : tail.error || m ? nothing : empty({ icon: 'topics', title: tail.running ? 'Waiting for messages' : 'Stopped', text: 'What is produced from now on appears here. No subscription is used, so nobody misses anything.', action: html`<span class="cluster"><button class="primary" @click=${() => setFrom('earliest')}>Show from the beginning</button><button @click=${() => setQuery({ tab: 'produce' })}>Produce one</button></span>`, command: `curl -N -H "Authorization: Bearer $TOKEN" "$BASE_URL"${page.messages('/tail?from=earliest')}` })}
      ${m ? html`<aside class="card message" aria-label="Message">${m.bytes ? messageView(page, follow(m), () => setQuery({ msg: '' })) : m.error ? failure(m.error) : loading(3)}</aside>` : nothing}</div></div>`
  }
}

const timeOf = ms => { const d = new Date(ms); return (taste.get('utc', false) ? d.toISOString().slice(11, 23) : `${absolute(ms).slice(11)}.${String(d.getMilliseconds()).padStart(3, '0')}`) }

/** One message whole, by its id. */
export async function fetchOne(page, name) {
  const [ledger, entry, partition] = name.split(':')
  const { t, at } = page
  const topic = Number(partition) >= 0 ? `${t.topic.replace(/-partition-\d+$/, '')}-partition-${partition}` : t.topic
  const { data, headers } = await at.call('GET', at.topic(t.tenant, t.namespace, topic, `/ledger/${ledger}/entry/${entry}`), { bytes: true, accept: '*/*' })
  return fromHeaders(data, headers, 'X-Pulsar-', name)
}

/** A message of an answer whose body is the payload. */
export function fromHeaders(data, headers, prefix, name) {
  const h = k => headers.get(prefix + k)
  const json = text => { try { return JSON.parse(new TextDecoder().decode(fromBase64(text))) } catch { return undefined } }
  const properties = h('Properties') ? json(h('Properties')) : Object.fromEntries([...headers].filter(([k]) => k.startsWith(`${prefix}Property-`.toLowerCase())).map(([k, v]) => [k.slice(prefix.length + 9), v]))
  const published = h('Publish-Time')
  return {
    name: name ?? h('Message-String-Id'), id: h('Message-Id'), bytes: data, size: data.length, cut: false, isNull: h('Null-Value') === 'true', key: h('Partition-Key') ?? undefined, keyEncoding: h('Partition-Key-Encoding') ?? undefined,
    properties: properties ?? {}, headers: h('Record-Headers') ? json(h('Record-Headers')) : undefined, publishTime: /^\d+$/.test(published) ? Number(published) : Date.parse(published), producer: h('Producer-Name') ?? undefined, sequence: h('Sequence-Id'),
    schemaVersion: h('Long-Schema-Version') ? Number(h('Long-Schema-Version')) : undefined, schemaId: h('Schema-Id') ? Number(h('Schema-Id')) : undefined, eventTime: h('Event-Time') ? Date.parse(h('Event-Time')) || Number(h('Event-Time')) : undefined, at: Date.now(),
  }
}

/** A message with everything that it has. */
export function messageView(page, m, close) {
  const list = forms(m), form = list.find(f => f[0] === taste.get('payload', ''))?.[0] ?? list[0][0]
  const whole = async () => download(`${page.t.topic}-${m.name.replace(/:/g, '-')}`, m.cut ? (await fetchOne(page, m.name)).bytes : m.bytes, 'application/octet-stream')
  const again = async () => m.cut ? fetchOne(page, m.name) : m
  const properties = Object.entries(m.properties)
  return html`<div class="stack">
    <header class="cluster"><h2>Message</h2>${copyText(m.name)}<span class="spacer"></span>${close ? html`<button class="ghost square" aria-label="Close the message" @click=${close}>${icon('x')}</button>` : nothing}</header>
    ${facts([['Published', html`${ago(m.publishTime)}`], ['Key', m.key != null ? html`${copyText(m.key)}${m.keyEncoding ? html` <span class="muted small">${m.keyEncoding}</span>` : nothing}` : 'none'], ['Size', bytes(m.size)], m.eventTime ? ['Event time', ago(m.eventTime)] : null, m.producer ? ['Producer', m.producer] : null, ['Sequence', m.sequence],
      m.schemaVersion != null ? ['Schema version', m.schemaVersion] : null, m.decoded?.id ? ['Schema id', html`<a href=${link(page.org, 'schemas', [page.at.name], { id: m.decoded.id })}>${m.decoded.id}</a>`] : null])}
    ${properties.length ? html`<div><h3>Properties</h3><div class="rows-list">${properties.map(([k, v]) => html`<div><code>${k}</code><span class="spacer"></span>${copyText(v)}</div>`)}</div></div>` : nothing}
    <div class="cluster"><h3>Payload</h3><span class="spacer"></span>${choice(form, list, f => { taste.set('payload', f); update() }, 'Payload as')}</div>
    ${m.cut ? html`<p class="callout warn">Only the first ${bytes(Math.min(previewBytes, m.bytes.length))} of ${bytes(m.size)} were sent here. The download has all of it.</p>` : nothing}
    ${payloadView(m, form)}
    <div class="cluster"><button @click=${() => whole().catch(e => toast(e.message, 'bad'))}>${icon('down', 16)}Download ${bytes(m.size)}</button>
      <button @click=${e => { const b = e.currentTarget; again().then(x => { copy(curlProduce(page.messages('/message'), x), b); toast('Copied: a command that produces this message again.') }, err => toast(err.message, 'bad')) }}>${icon('copy', 16)}Copy as curl</button></div>
    ${m.id ? html`<details class="more"><summary class="muted small">Ids</summary><div class="stack tight">${copyField(m.name)}${copyField(m.id)}</div></details>` : nothing}</div>`
}

// --- produce ---

function produceTab(page) {
  const { at, t } = page
  const v = { key: '', properties: '', form: '', text: '', error: null, busy: false }
  let schemas = null, asked = false, last = null, sent = []
  const load = async () => {
    asked = true
    const list = [] // shown when it is whole: what is sent before would not be checked
    const own = await at.get(`${at.admin}/schemas/${[t.tenant, t.namespace, t.topic].map(encodeURIComponent).join('/')}/schema`, { background: true }).catch(() => null)
    if (own?.type === 'AVRO') list.push({ id: 'topic', label: `Avro, the topic's schema (version ${own.version})`, avro: parseSchema(own.data), prefix: [] })
    if (own?.type === 'JSON') list.push({ id: 'json', label: `JSON, the topic's schema (version ${own.version})` })
    for (const subject of [`${streamName(t)}-value`, `${t.full}-value`]) {
      const found = await at.get(`${at.registry}/subjects/${encodeURIComponent(subject)}/versions/latest`, { background: true }).catch(() => null)
      if (!found || found.schemaType === 'PROTOBUF') continue
      const prefix = [0, found.id >>> 24, found.id >>> 16 & 255, found.id >>> 8 & 255, found.id & 255]
      list.push({ id: subject, label: `${found.schemaType === 'JSON' ? 'JSON' : 'Avro'} of ${subject}, version ${found.version}`, avro: found.schemaType ? null : parseSchema(found.schema, await page.decoder.references(found.references ?? [])), prefix })
    }
    schemas = list
    const first = schemas[0]
    if (first && !v.text) { v.form = first.id; fill(first) }
    v.form ||= 'text'
    update()
  }
  const fill = s => { v.text = s?.avro ? pretty(sample(s.avro)) : s ? '{}' : v.text }
  const payload = () => {
    const s = schemas.find(x => x.id === v.form)
    if (!s) return bytesOf(v.text, v.form)
    let value
    try { value = JSON.parse(v.text) } catch (e) { throw new Error(`It is not JSON: ${e.message}`) }
    const body = s.avro ? encode(s.avro, value) : new TextEncoder().encode(v.text)
    return Uint8Array.from([...(s.prefix ?? []), ...body])
  }
  const send = async e => {
    e.preventDefault()
    v.error = null
    v.busy = true
    update()
    try {
      const data = payload()
      const readable = !schemas.find(x => x.id === v.form)?.avro && v.form !== 'base64'
      const { headers, entry } = await at.call('POST', page.messages('/message'), { body: readable && !schemas.find(x => x.id === v.form)?.prefix?.length ? v.text : data, contentType: 'application/octet-stream', headers: produceHeaders({ key: v.key, properties: readPairs(v.properties) }) })
      last = { ...entry, command: curlProduce(page.messages('/message'), { bytes: data, key: v.key, properties: readPairs(v.properties) }) }
      sent = [{ name: headers.get('X-Msg-Message-String-Id'), at: Date.now(), size: data.length }, ...sent].slice(0, 20)
      page.stats.again()
    } catch (err) { v.error = err }
    v.busy = false
    update()
  }
  return () => {
    if (!asked) load()
    if (!schemas) return loading(5)
    return html`<div class="grid"><form class="card c7 stack" @submit=${send}>
      <div class="fields">${field('Key', html`<input name="key" autocomplete="off" .value=${v.key} @input=${e => { v.key = e.target.value }}>`, 'Messages of one key keep their order, and one partition.')}
      ${field('Payload is', html`<select name="form" @change=${e => { v.form = e.target.value; const s = schemas.find(x => x.id === v.form); if (s) fill(s); update() }}>${[...schemas.map(s => [s.id, s.label]), ['text', 'Text'], ['json', 'JSON'], ['base64', 'Bytes in base64']].map(([id, text]) => html`<option value=${id} ?selected=${id === v.form}>${text}</option>`)}</select>`, schemas.find(s => s.id === v.form)?.avro ? 'Write JSON: it is checked and encoded here, in the browser.' : '')}</div>
      ${field('Payload', html`<textarea name="payload" rows="10" spellcheck="false" .value=${v.text} @input=${e => { v.text = e.target.value }}></textarea>`)}
      ${field('Properties', html`<textarea name="properties" rows="2" spellcheck="false" placeholder="name=value, one a line" .value=${v.properties} @input=${e => { v.properties = e.target.value }}></textarea>`)}
      ${v.error ? v.error.status !== undefined ? failure(v.error) : html`<p class="callout bad" role="alert">${v.error.message}</p>` : nothing}
      <div class="cluster">${button(v.busy ? 'Sending…' : 'Produce message', { kind: 'primary', icon: 'play', type: 'submit', permission: 'messaging.topics.produce', disabled: v.busy })}<span class="muted small">It is stored on disk when the answer comes.</span></div></form>
      <section class="card c5 stack"><h2>Sent</h2>${sent.length ? html`<div class="rows-list">${sent.map(s => html`<div><a href=${link(page.org, 'topics', route.names, { msg: s.name, from: 'earliest' })}>${s.name}</a><span class="spacer"></span><span class="muted small">${bytes(s.size)} · ${ago(s.at)}</span></div>`)}</div>${last ? showAs(last) : nothing}` : html`<p class="muted">Ids of what you send appear here, with the request as a command.</p>`}</section></div>`
  }
}
