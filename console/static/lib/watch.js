// Live lists: list once, then watch, resumed where it ended.
import { call, ApiError } from './api.js'
import { on, update } from './store.js'

// Browsers open six connections to a server without HTTP/2. Watches take at most
// three of them, the rest of the lists ask every few seconds.
const h2 = () => performance.getEntriesByType('navigation')[0]?.nextHopProtocol === 'h2'
const mostStreams = 3, pollEvery = 4000
let streams = 0

const wait = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => { clearTimeout(timer); reject(new DOMException('left', 'AbortError')) })
})

/** Splits a stream of text into lines. @param {ReadableStream<Uint8Array>} body */
export async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const parts = (rest + value).split('\n')
      rest = parts.pop()
      yield* parts
    }
    if (rest) yield rest
  } finally {
    reader.cancel().catch(() => {})
  }
}

/**
 * A list that follows the server. `items` is always whole and sorted by name; `state`
 * is loading, live, polling, waiting (the server is away), denied or failed.
 */
export class LiveList {
  constructor(path, signal, o = {}) {
    this.path = path
    this.signal = signal
    this.selector = o.selector ?? ''
    this.onchange = o.onchange ?? (() => {})
    this.state = 'loading'
    this.error = null
    this.changedAt = 0
    /** @type {Map<string, any>} */
    this.byKey = new Map()
    this.sorted = null
    on('signedin', () => { if (this.state === 'denied') this.run() }, signal)
    this.run()
  }

  get items() {
    return this.sorted ??= [...this.byKey.values()].sort((a, b) => a.metadata.name < b.metadata.name ? -1 : a.metadata.name > b.metadata.name ? 1 : a.metadata.namespace < b.metadata.namespace ? -1 : 1)
  }

  /** One object of the list. */
  find(name, org) {
    return this.items.find(x => x.metadata.name === name && (!org || x.metadata.namespace === org))
  }

  get loaded() { return this.state !== 'loading' && (this.state !== 'waiting' || this.version) }

  changed() {
    this.sorted = null
    this.changedAt = Date.now()
    this.onchange(this)
    update()
  }

  async run() {
    let delay = 500
    while (!this.signal.aborted) {
      try {
        if (!this.version) await this.list()
        if (h2() || streams < mostStreams) {
          streams++
          try { await this.watch() } finally { streams-- }
        } else {
          this.state = 'polling'
          update()
          await wait(pollEvery, this.signal)
          this.version = ''
        }
        delay = 500
      } catch (e) {
        if (e.name === 'AbortError') return
        this.error = e
        if (e.status === 410) { this.version = ''; continue }
        if (e.status === 403 || e.status === 404) { this.state = 'denied'; update(); return }
        this.state = e.status >= 400 && e.status < 500 && e.status !== 401 && e.status !== 429 ? 'failed' : 'waiting'
        update()
        if (this.state === 'failed') return
        await wait(delay + Math.random() * delay, this.signal).catch(() => {})
        delay = Math.min(delay * 2, 15000)
      }
    }
  }

  query(more) {
    const q = new URLSearchParams(more)
    if (this.selector) q.set('fieldSelector', this.selector)
    return `${this.path}?${q}`
  }

  async list() {
    const found = new Map()
    let token = ''
    do {
      const { data } = await call('GET', this.query({ limit: '500', ...(token && { continue: token }) }), { signal: this.signal, background: this.state !== 'loading' })
      for (const item of data.items ?? []) found.set(key(item), item)
      token = data.metadata?.continue ?? ''
      this.version = data.metadata?.resourceVersion ?? ''
    } while (token)
    this.byKey = found
    this.error = null
    this.state = 'live'
    this.changed()
  }

  async watch() {
    const { response } = await call('GET', this.query({ watch: 'true', allowWatchBookmarks: 'true', resourceVersion: this.version, timeoutSeconds: '600' }),
      { signal: this.signal, stream: true, background: true })
    if (this.state !== 'live') { this.state = 'live'; this.error = null; update() }
    for await (const line of lines(response.body)) {
      if (!line.trim()) continue
      const { type, object } = JSON.parse(line)
      if (type === 'ERROR') throw new ApiError(object.code ?? 500, object.message)
      this.version = object.metadata.resourceVersion
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') this.byKey.delete(key(object))
      else this.byKey.set(key(object), object)
      this.changed()
    }
  }
}

const key = item => `${item.metadata.namespace ?? ''}/${item.metadata.name}`

/** Calls f now and every so often while the page is looked at, until the signal ends. */
export async function poll(f, every, signal) {
  while (!signal.aborted) {
    if (!document.hidden) await f().catch(e => { if (e.name !== 'AbortError') console.debug('poll', e.message) })
    await wait(every, signal).catch(() => {})
  }
}
