// Messages of a topic as they come, without any subscription noticing: server-sent
// events over fetch, so the token stays in a header. What is kept is bounded.
import { lines } from './watch.js'
import { fromBase64 } from './format.js'
import { update } from './store.js'

export const mostRows = 1000, perSecond = 100, previewBytes = 65536
const idle = 15 * 60 * 1000

/** Events out of lines: {event, data, id}. */
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

/** A message of the API as the pages have it. */
export function received(m, now = Date.now()) {
  const bytes = m.encoding === 'base64' ? fromBase64(m.payload ?? '') : new TextEncoder().encode(m.encoding === 'json' ? JSON.stringify(m.payload) : m.payload ?? '')
  return {
    id: m.messageId, name: m.messageStringId, bytes, size: m.payloadSize ?? bytes.length, cut: m.payloadSize != null, isNull: !!m.nullValue,
    key: m.key, keyEncoding: m.keyEncoding, properties: m.properties ?? {}, headers: m.headers, publishTime: m.publishTime, eventTime: m.eventTime, producer: m.producerName,
    sequence: m.sequenceId, schemaVersion: m.schemaVersion, schemaId: m.schemaId, at: now,
  }
}

/**
 * The rows that are kept: at most 1,000, newest first. More than 100 a second, beyond
 * what fits at once, are counted and not shown; so is what comes while it is paused and
 * does not fit either.
 */
export class Ring {
  constructor(now = Date.now) {
    this.now = now
    this.clear()
  }

  clear() {
    Object.assign(this, { rows: [], held: [], seen: 0, skipped: 0, other: 0, paused: false, budget: mostRows, filled: this.now() })
  }

  add(m, wanted = () => true) {
    this.seen++
    const now = this.now()
    this.budget = Math.min(mostRows, this.budget + (now - this.filled) / 1000 * perSecond)
    this.filled = now
    if (!wanted(m)) { this.other++; return }
    if (this.budget < 1) { this.skipped++; return }
    this.budget--
    const list = this.paused ? this.held : this.rows
    list.unshift(m)
    if (list.length > mostRows) { list.pop(); if (this.paused) this.skipped++ }
  }

  pause() { this.paused = true }

  resume() {
    this.paused = false
    this.rows = [...this.held, ...this.rows].slice(0, mostRows)
    this.held = []
  }
}

/** What the columns of a message say, for the filter: key=…, name=value, payload. */
export const words = m => `${m.name} key=${m.key ?? ''} ${Object.entries(m.properties).map(([k, v]) => `${k}=${v}`).join(' ')}`

export class Tail {
  /** @param {{call: Function}} at @param {string} url of the topic's tail */
  constructor(at, url, signal, wanted) {
    Object.assign(this, { at, url, wanted, ring: new Ring(), state: 'stopped', error: null, last: '', since: 0, rows: [], ending: null })
    signal.addEventListener('abort', () => this.stop())
    let hidden = 0
    document.addEventListener('visibilitychange', () => {
      clearTimeout(hidden)
      if (document.hidden) hidden = setTimeout(() => { if (this.running) this.stop('It was stopped after 15 minutes that nobody looked.') }, idle)
    }, { signal })
  }

  get running() { return this.state === 'live' || this.state === 'connecting' || this.state === 'waiting' }

  changed() { this.rows = [...this.ring.rows]; update() }

  stop(why = '') {
    this.ending?.abort()
    this.state = 'stopped'
    this.why = why
    this.changed()
  }

  pause() { this.ring.pause(); this.changed() }
  resume() { this.ring.resume(); this.changed() }
  clear() { this.ring.clear(); this.changed() }

  /** Starts anew. @param {object} query from, since */
  async start(query) {
    this.stop()
    this.ring.clear()
    this.last = ''
    this.since = Date.now()
    const ending = this.ending = new AbortController()
    let delay = 1000
    while (!ending.signal.aborted) {
      this.state = this.state === 'live' ? 'waiting' : 'connecting'
      this.error = null
      this.changed()
      try {
        const q = new URLSearchParams({ ...(this.last ? { after: this.last } : query), payloadLimit: String(previewBytes) })
        const { response } = await this.at.call('GET', `${this.url}?${q}`, { stream: true, accept: 'text/event-stream', signal: ending.signal, background: !!this.last })
        this.state = 'live'
        this.changed()
        for await (const e of events(lines(response.body))) {
          if (ending.signal.aborted) return
          if (e.event === 'error') throw Object.assign(new Error(JSON.parse(e.data).reason), { status: JSON.parse(e.data).status })
          this.last = e.id
          this.ring.add(received(JSON.parse(e.data)), this.wanted)
          delay = 1000
          this.soon()
        }
      } catch (e) {
        if (e.name === 'AbortError' || ending.signal.aborted) return
        this.error = e
        if (e.status >= 400 && e.status < 500 && e.status !== 429) { this.state = 'stopped'; this.changed(); return }
      }
      this.state = 'waiting'
      this.changed()
      await new Promise(r => setTimeout(r, delay))
      delay = Math.min(delay * 2, 15000)
    }
  }

  /** Many messages at once are one change of the page. */
  soon() {
    if (this.asked) return
    this.asked = true
    setTimeout(() => { this.asked = false; this.changed() }, 50)
  }
}
