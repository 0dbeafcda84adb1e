// Live lists: one list request, then a watch that resumes at its last version.
import { call, ApiError } from './api.js'
import { on, update } from './store.js'

// Without HTTP/2 a browser opens six connections to a server. Watches use at most three
// of them; further lists are polled.
const usesHTTP2 = () => performance.getEntriesByType('navigation')[0]?.nextHopProtocol === 'h2'
const maxWatches = 3
const pollInterval = 4000
let openWatches = 0

const wait = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => {
    clearTimeout(timer)
    reject(new DOMException('the page was closed', 'AbortError'))
  })
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

const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0

/**
 * A list of objects that stays up to date. `items` is always complete and sorted by name.
 * `state` is loading, live, polling, waiting (the server is unreachable), denied or failed.
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
    on('signedin', () => {
      if (this.state === 'denied') this.run()
    }, signal)
    this.run()
  }

  get items() {
    return this.sorted ??= [...this.byKey.values()].sort((a, b) =>
      compare(a.metadata.name, b.metadata.name) || compare(a.metadata.namespace, b.metadata.namespace))
  }

  /** One object of the list. */
  find(name, org) {
    return this.items.find(x => x.metadata.name === name && (!org || x.metadata.namespace === org))
  }

  get loaded() {
    return this.state !== 'loading' && (this.state !== 'waiting' || this.version)
  }

  changed() {
    this.sorted = null
    this.changedAt = Date.now()
    this.onchange(this)
    update()
  }

  setState(state) {
    this.state = state
    update()
  }

  async run() {
    let delay = 500
    while (!this.signal.aborted) {
      try {
        if (!this.version) await this.list()
        if (usesHTTP2() || openWatches < maxWatches) {
          openWatches++
          try {
            await this.watch()
          } finally {
            openWatches--
          }
        } else {
          this.setState('polling')
          await wait(pollInterval, this.signal)
          this.version = ''
        }
        delay = 500
      } catch (e) {
        if (e.name === 'AbortError') return
        this.error = e
        if (e.status === 410) { // the version is too old to resume at
          this.version = ''
          continue
        }
        if (e.status === 403 || e.status === 404) {
          this.setState('denied')
          return
        }
        const retryable = !(e.status >= 400 && e.status < 500) || e.status === 401 || e.status === 429
        this.setState(retryable ? 'waiting' : 'failed')
        if (!retryable) return
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
    const byKey = new Map()
    let token = ''
    do {
      const url = this.query({ limit: '500', ...(token && { continue: token }) })
      const { data } = await call('GET', url, { signal: this.signal, background: this.state !== 'loading' })
      for (const item of data.items ?? []) byKey.set(keyOf(item), item)
      token = data.metadata?.continue ?? ''
      this.version = data.metadata?.resourceVersion ?? ''
    } while (token)
    this.byKey = byKey
    this.error = null
    this.state = 'live'
    this.changed()
  }

  async watch() {
    const url = this.query({
      watch: 'true', allowWatchBookmarks: 'true', resourceVersion: this.version, timeoutSeconds: '600',
    })
    const { response } = await call('GET', url, { signal: this.signal, stream: true, background: true })
    if (this.state !== 'live') {
      this.error = null
      this.setState('live')
    }
    for await (const line of lines(response.body)) {
      if (!line.trim()) continue
      const { type, object } = JSON.parse(line)
      if (type === 'ERROR') throw new ApiError(object.code ?? 500, object.message)
      this.version = object.metadata.resourceVersion
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') this.byKey.delete(keyOf(object))
      else this.byKey.set(keyOf(object), object)
      this.changed()
    }
  }
}

const keyOf = item => `${item.metadata.namespace ?? ''}/${item.metadata.name}`

/** Calls f now and at every interval while the tab is visible, until the signal aborts. */
export async function poll(f, interval, signal) {
  while (!signal.aborted) {
    if (!document.hidden) {
      await f().catch(e => {
        if (e.name !== 'AbortError') console.debug('poll failed', e.message)
      })
    }
    await wait(interval, signal).catch(() => {})
  }
}
