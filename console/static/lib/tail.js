// The messages of a topic as they are produced, without a subscription. Server-sent
// events are read with fetch, so that the token stays in a header. The number of kept
// messages is limited.
import { lines } from './watch.js'
import { fromBase64 } from './format.js'
import { update } from './store.js'

export const maxRows = 1000
export const previewBytes = 65536
const maxRate = 100 // messages per second
const backgroundLimit = 15 * 60 * 1000

/** Parses lines of an event stream into events {event, data, id}. */
export async function* events(source) {
  let e = { event: 'message', data: '', id: '' }
  for await (const raw of source) {
    const line = raw.replace(/\r$/, '')
    if (line === '') {
      if (e.data) yield e
      e = { event: 'message', data: '', id: e.id }
      continue
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)
    if (name === 'data') e.data += (e.data && '\n') + value
    else if (name === 'event' || name === 'id') e[name] = value
  }
}

function payloadOf({ payload, encoding }) {
  if (encoding === 'base64') return fromBase64(payload ?? '')
  return new TextEncoder().encode(encoding === 'json' ? JSON.stringify(payload) : payload ?? '')
}

/** Converts a message of the API into the form that the pages use. */
export function received(m, now = Date.now()) {
  const bytes = payloadOf(m)
  return {
    id: m.messageId,
    name: m.messageStringId,
    bytes,
    size: m.payloadSize ?? bytes.length,
    truncated: m.payloadSize != null,
    isNull: !!m.nullValue,
    key: m.key,
    keyEncoding: m.keyEncoding,
    properties: m.properties ?? {},
    headers: m.headers,
    publishTime: m.publishTime,
    eventTime: m.eventTime,
    producer: m.producerName,
    sequence: m.sequenceId,
    schemaVersion: m.schemaVersion,
    schemaId: m.schemaId,
    at: now,
  }
}

/**
 * The last 1,000 messages, newest first by publish time. A token bucket limits them to 100 per second
 * with bursts of 1,000; messages beyond it are only counted. While the ring is paused,
 * messages are held back, and those that do not fit are counted too.
 */
export class Ring {
  constructor(now = Date.now) {
    this.now = now
    this.clear()
  }

  clear() {
    this.rows = []
    this.held = []
    this.seen = 0
    this.skipped = 0
    this.filtered = 0
    this.paused = false
    this.tokens = maxRows
    this.refilledAt = this.now()
  }

  add(m, matches = () => true) {
    this.seen++
    const now = this.now()
    this.tokens = Math.min(maxRows, this.tokens + (now - this.refilledAt) / 1000 * maxRate)
    this.refilledAt = now
    if (!matches(m)) {
      this.filtered++
      return
    }
    if (this.tokens < 1) {
      this.skipped++
      return
    }
    this.tokens--
    const list = this.paused ? this.held : this.rows
    // Stored messages of several partitions arrive out of order.
    let at = 0
    while (at < list.length && list[at].publishTime > m.publishTime) at++
    list.splice(at, 0, m)
    if (list.length > maxRows) {
      list.pop()
      if (this.paused) this.skipped++
    }
  }

  pause() { this.paused = true }

  resume() {
    this.paused = false
    this.rows = [...this.held, ...this.rows].slice(0, maxRows)
    this.held = []
  }
}

/** Adds the progress of a connection to that of the earlier ones. */
export function addProgress(earlier, now) {
  if (!earlier) return now
  const sum = name => (earlier[name] ?? 0) + (now[name] ?? 0)
  const failure = earlier.failure || now.failure
  return { scanned: sum('scanned'), matched: sum('matched'), failed: sum('failed'), failure }
}

/** The text of a message that the filter searches: its id, key=…, name=value. */
export function searchText(m) {
  const properties = Object.entries(m.properties).map(([k, v]) => `${k}=${v}`)
  return `${m.name} key=${m.key ?? ''} ${properties.join(' ')}`
}

/** Reads the tail of a topic, and reconnects after errors. state: stopped, connecting, live or waiting. */
export class Tail {
  /** @param {{call: Function}} client @param {string} url of the topic's tail */
  constructor(client, url, signal, matches) {
    this.client = client
    this.url = url
    this.matches = matches
    this.ring = new Ring()
    this.state = 'stopped'
    this.error = null
    this.why = '' // why it was stopped, if not by the user
    this.lastId = ''
    this.progress = null // of a filter on the server: {scanned, matched, failed, failure}
    this.since = 0
    this.rows = []
    this.connection = null
    this.scheduled = false
    signal.addEventListener('abort', () => this.stop())
    let timer = 0
    document.addEventListener('visibilitychange', () => {
      clearTimeout(timer)
      if (!document.hidden) return
      timer = setTimeout(() => {
        if (this.running) this.stop('The tail was stopped after 15 minutes in a background tab.')
      }, backgroundLimit)
    }, { signal })
  }

  get running() { return this.state === 'live' || this.state === 'connecting' || this.state === 'waiting' }

  changed() {
    this.rows = [...this.ring.rows]
    update()
  }

  setState(state) {
    this.state = state
    this.changed()
  }

  stop(why = '') {
    this.connection?.abort()
    this.why = why
    this.setState('stopped')
  }

  pause() {
    this.ring.pause()
    this.changed()
  }

  resume() {
    this.ring.resume()
    this.changed()
  }

  clear() {
    this.ring.clear()
    this.changed()
  }

  /** Starts at a position. @param {object} query from, last or since, and perhaps filter */
  async start(query) {
    this.stop()
    this.ring.clear()
    this.lastId = ''
    this.progress = null
    this.since = Date.now()
    this.connection = new AbortController()
    const { signal } = this.connection
    let delay = 1000
    const onmessage = () => { delay = 1000 }
    while (!signal.aborted) {
      this.error = null
      this.setState(this.state === 'live' ? 'waiting' : 'connecting')
      try {
        await this.read(query, signal, onmessage)
        if (signal.aborted) return
      } catch (e) {
        if (e.name === 'AbortError' || signal.aborted) return
        this.error = e
        if (e.status >= 400 && e.status < 500 && e.status !== 429) {
          this.setState('stopped')
          return
        }
      }
      this.setState('waiting')
      await new Promise(resolve => setTimeout(resolve, delay))
      delay = Math.min(delay * 2, 15000)
    }
  }

  /** Reads messages until the connection ends. */
  async read(query, signal, onmessage) {
    const { filter } = query
    const position = this.lastId ? { after: this.lastId, ...(filter && { filter }) } : query
    const earlier = this.progress
    const q = new URLSearchParams({ ...position, payloadLimit: String(previewBytes) })
    const { response } = await this.client.call('GET', `${this.url}?${q}`, {
      stream: true, accept: 'text/event-stream', signal, background: !!this.lastId,
    })
    this.setState('live')
    for await (const e of events(lines(response.body))) {
      if (signal.aborted) return
      const data = JSON.parse(e.data)
      if (e.event === 'error') throw Object.assign(new Error(data.reason), { status: data.status })
      this.lastId = e.id
      if (e.event === 'progress') this.progress = addProgress(earlier, data)
      else this.ring.add(received(data), this.matches)
      onmessage()
      this.scheduleChange()
    }
  }

  /** Updates the page once for many messages. */
  scheduleChange() {
    if (this.scheduled) return
    this.scheduled = true
    setTimeout(() => {
      this.scheduled = false
      this.changed()
    }, 50)
  }
}
