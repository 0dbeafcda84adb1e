// The tail of a topic: its messages as they are produced.
import { html, nothing } from '../lib/html.js'
import { absolute, bytes, count } from '../lib/format.js'
import { icon } from '../lib/icons.js'
import { preview } from '../lib/payload.js'
import { link, route, setQuery } from '../lib/router.js'
import { preferences, update } from '../lib/store.js'
import { table } from '../lib/table.js'
import { Tail, searchText } from '../lib/tail.js'
import { badge, denied, empty, failure, loading } from '../lib/widgets.js'
import { fetchMessage, messageView } from './message.js'

const hour = 3600000

function matchesFilter(m) {
  const words = (route.query.get('q') ?? '').toLowerCase().trim().split(/\s+/).filter(Boolean)
  if (!words.length) return true
  const text = `${searchText(m)} ${preview(m)}`.toLowerCase()
  return words.every(w => text.includes(w))
}

const newestCount = 50

/** The start of the tail in the URL: newest, latest, earliest, or a time in ms. */
const startOf = () => route.query.get('from') || 'newest'
const isTime = from => /^\d+$/.test(from)

export function tailTab(page) {
  const { client, org, decoder, signal } = page
  const tail = new Tail(client, page.messages('/tail'), signal, matchesFilter)
  let started = false
  let single = null // the message of the URL if it is not in the tail: {name, m} or {name, error}

  const start = () => {
    const from = startOf()
    const filter = route.query.get('filter')
    const selection = filter ? { filter } : {}
    if (from === 'newest') tail.start({ last: newestCount, ...selection })
    else tail.start({ ...(isTime(from) ? { since: from } : { from }), ...selection })
  }
  const setStart = from => {
    setQuery({ from: from === 'newest' ? '' : from, msg: '' })
    start()
  }
  const setExpression = e => {
    e.preventDefault()
    const filter = new FormData(e.target).get('filter').trim()
    // The newest messages alone seldom have what an expression selects.
    const from = filter && startOf() === 'newest' ? 'earliest' : route.query.get('from')
    setQuery({ filter, from, msg: '' })
    start()
  }
  const loadSingle = async name => {
    single = { name }
    try {
      single = { name, m: await fetchMessage(page, name) }
    } catch (e) {
      single = { name, error: e }
    }
    update()
  }
  const selected = () => {
    const name = route.query.get('msg')
    if (!name) return null
    const row = tail.ring.rows.find(m => m.name === name)
    if (row) return row
    if (single?.name !== name) loadSingle(name)
    return single.m ?? single
  }
  const toggle = name => setQuery({ msg: route.query.get('msg') === name ? '' : name })
  const openMessage = e => {
    const a = e.target.closest('a[data-msg], .rows a')
    if (!a || e.metaKey || e.ctrlKey || e.shiftKey) return
    e.preventDefault()
    toggle(new URL(a.href).searchParams.get('msg'))
  }

  const messageTable = m => table({
    rows: tail.rows,
    columns: columnsOf(tail, !!m),
    noun: 'messages',
    label: 'Messages',
    tools: toolsView(tail, start, setStart),
    href: row => link(org, 'topics', route.names, {
      msg: row.name, from: route.query.get('from'), filter: route.query.get('filter'),
    }),
    rowClass: row => row === m ? 'chosen' : '',
  })
  const noMessages = () => empty({
    icon: 'topics',
    title: emptyTitle(tail),
    text: 'Messages appear here when they are produced. The tail uses no subscription and does not affect consumers.',
    action: html`
      <span class="cluster">
        <button class="primary" @click=${() => setStart('earliest')}>Show from the beginning</button>
        <button @click=${() => setQuery({ tab: 'produce' })}>Produce a message</button>
      </span>`,
    command: `curl -N -H "Authorization: Bearer $TOKEN" "$FRESHET_SERVER"${page.messages('/tail?from=earliest')}`,
  })
  const selectedView = m => {
    if (m.error) return failure(m.error)
    if (!m.bytes) return loading(3)
    decoder.request(m)
    return messageView(page, m, () => setQuery({ msg: '' }))
  }
  const rowsView = m => {
    if (tail.rows.length) return messageTable(m)
    return tail.error || m ? nothing : noMessages()
  }

  return () => {
    if (!started) {
      started = true
      start()
    }
    const isDenied = tail.error?.status === 401 || tail.error?.status === 403
    if (isDenied && !tail.rows.length) {
      return denied('the messages of this topic', tail.error, 'messaging.topics.consume')
    }
    tail.rows.slice(0, 60).forEach(row => decoder.request(row))
    const m = selected()
    return html`
      <div class="stack">
        ${expressionView(tail, setExpression)}
        ${tail.error ? failure(tail.error, start) : nothing}
        ${tail.why ? html`<p class="callout warn">${tail.why}</p>` : nothing}
        ${tail.rows.length || m ? nothing : html`
          <div class="tail-tools">${toolsView(tail, start, setStart)}</div>`}
        <div class=${m ? 'split' : ''} @click=${openMessage}>
          ${rowsView(m)}
          ${m ? html`<aside class="card message" aria-label="Message">${selectedView(m)}</aside>` : nothing}
        </div>
      </div>`
  }
}

/** The field of an expression that the server evaluates for every message. */
function expressionView(tail, onsubmit) {
  const filter = route.query.get('filter') ?? ''
  return html`
    <form class="expression" @submit=${onsubmit}>
      <input type="search" name="filter" class="mono" aria-label="Expression" .value=${filter} spellcheck="false"
        autocomplete="off" placeholder=${'Expression: payload.total > 100 && key.startsWith("k")'}>
      <button>${icon('search', 16)}Find</button>
      ${filter ? progressView(tail) : nothing}
    </form>`
}

function progressView({ progress, running, state }) {
  if (!progress) return html`<span class="muted small" role="status">${running ? 'Reading…' : ''}</span>`
  const failed = progress.failed ? html`, <b title=${progress.failure ?? ''}>${count(progress.failed)} failed</b>` : ''
  const read = `${count(progress.scanned)} read, ${count(progress.matched)} selected`
  return html`<span class="muted small" role="status">${read}${failed}${state === 'stopped' ? ', stopped' : ''}</span>`
}

function emptyTitle(tail) {
  if (!tail.running) return 'Stopped'
  if (route.query.get('filter')) return 'No message was selected yet'
  return startOf() === 'newest' && tail.state === 'live' ? 'No messages yet' : 'Waiting for messages'
}

const states = {
  live: ['ok', 'Live'],
  connecting: ['warn', 'Connecting'],
  waiting: ['warn', 'Reconnecting'],
  stopped: ['', 'Stopped'],
}

function statusView({ ring, state }) {
  const shown = state === 'live' && ring.paused ? ['warn', 'Paused'] : states[state]
  const skipped = ring.skipped ? html`, <b>${count(ring.skipped)} skipped</b>` : nothing
  const filtered = ring.filtered ? `, ${count(ring.filtered)} not matching` : ''
  const held = ring.held.length ? html`, <b>${count(ring.held.length)} waiting</b>` : nothing
  return html`
    ${badge(...shown)}
    <span class="muted small" role="status">${count(ring.seen)} received${skipped}${filtered}${held}</span>`
}

const starts = [
  ['newest', `the newest ${newestCount}`],
  ['latest', 'now'],
  ['earliest', 'the beginning'],
  ['hour', 'an hour ago'],
  ['day', 'a day ago'],
]

function startMenu(setStart) {
  const from = startOf()
  const onchange = e => {
    const ago = { hour, day: 24 * hour }[e.target.value]
    setStart(ago ? String(Date.now() - ago) : e.target.value)
  }
  const time = () => html`
    <option selected value=${from}>${absolute(Number(from), preferences.get('utc', false))}</option>`
  return html`
    <label class="inline-select">
      <span class="muted small">from</span>
      <select aria-label="Start" @change=${onchange}>
        ${starts.map(([id, text]) => html`<option value=${id} ?selected=${from === id}>${text}</option>`)}
        ${isTime(from) ? time() : nothing}
      </select>
    </label>`
}

function toolsView(tail, start, setStart) {
  const { paused } = tail.ring
  const pauseOrResume = () => paused ? tail.resume() : tail.pause()
  const running = () => html`
    <button @click=${pauseOrResume}>${icon(paused ? 'play' : 'pause', 16)}${paused ? 'Resume' : 'Pause'}</button>
    <button @click=${() => tail.stop()}>Stop</button>`
  return html`
    <span class="cluster">
      ${statusView(tail)}
      ${startMenu(setStart)}
      ${tail.running ? running() : html`<button class="primary" @click=${start}>${icon('play', 16)}Start</button>`}
      ${tail.rows.length ? html`<button class="ghost" @click=${() => tail.clear()}>Clear</button>` : nothing}
    </span>`
}

function timeOf(ms) {
  const d = new Date(ms)
  if (preferences.get('utc', false)) return d.toISOString().slice(11, 23)
  return `${absolute(ms).slice(11)}.${String(d.getMilliseconds()).padStart(3, '0')}`
}

/** The columns of the table; fewer next to an open message. */
function columnsOf(tail, hasDetail) {
  const latency = m => Math.max(0, m.at - m.publishTime)
  const more = [
    {
      title: 'Properties',
      text: m => Object.entries(m.properties).map(p => p.join('=')).join(' '),
      width: 'minmax(0,.5fr)',
      wideOnly: true,
    },
    {
      title: 'Latency',
      text: latency,
      cell: m => m.publishTime >= tail.since ? `${latency(m)} ms` : '–', // older messages have no latency
      num: true,
      width: '76px',
      wideOnly: true,
    },
  ]
  return [
    {
      title: 'Published',
      text: m => m.publishTime,
      cell: m => html`<span class="mono">${timeOf(m.publishTime)}</span>`,
      width: '104px',
      num: false,
    },
    {
      title: 'Key',
      text: searchText,
      cell: m => m.key ?? html`<span class="muted">–</span>`,
      width: hasDetail ? 'minmax(0,.55fr)' : 'minmax(0,.35fr)',
    },
    {
      title: 'Payload',
      text: preview,
      cell: m => html`<span class="mono small">${preview(m)}</span>`,
      width: 'minmax(0,1.4fr)',
    },
    ...(hasDetail ? [] : more),
    {
      title: 'Size',
      text: m => m.size,
      cell: m => html`${bytes(m.size)}${m.truncated ? html` ${icon('warn', 14)}` : nothing}`,
      num: true,
      width: '104px',
      wideOnly: true,
    },
  ]
}
